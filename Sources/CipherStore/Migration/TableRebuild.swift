/// Makes a table anew and copies its rows, by the twelve steps that SQLite gives for what ALTER TABLE cannot do.
///
/// The new table is filled under a name of its own, the old one dropped, and only then the new one renamed: renaming the
/// old one first would make foreign keys, triggers and views of other tables follow it.
///
/// Source: SQLite, "ALTER TABLE": Making Other Kinds Of Table Schema Changes.
package struct TableRebuild {
    /// The table in the database.
    package var existing: TableShape
    /// The table as it is to be, under the same name.
    package var wanted: TableShape
    /// New column name to old, where they differ.
    package var renamedColumns: [SQLName: String]
    /// The statements that make its indexes and triggers again.
    package var objects: [String]

    package init(
        of existing: TableShape, to wanted: TableShape, renamedColumns: [SQLName: String] = [:], objects: [String] = []
    ) {
        self.existing = existing
        self.wanted = wanted
        self.renamedColumns = renamedColumns
        self.objects = objects
    }

    /// The statements, in order; to be run in a transaction, with foreign keys off.
    package var statements: [String] { objects }
}
