public import CipherHistory

/// The place where the version of a legacy database is recorded.
///
/// After CipherStore has opened a database, its version is in `PRAGMA user_version` and in the history table. If other
/// code has changed one of them, the higher version is used.
public enum RecordedVersion: Sendable {
    /// `PRAGMA user_version`.
    case userVersion
    /// A column of a table in the database. If several rows match, the highest version is used.
    case table(VersionColumn)
    /// The places used by apps that update in steps: `db_version.db_version_num`, which is the next update to run, else
    /// `tb_clientstage.version` of the row `id` = 1 and `tableno` = 0, else a `PRAGMA user_version` above 0.
    case stepRecords
    /// A table with a row for each migration that was applied, such as GRDB's; the version is their number.
    case migrations(AppliedMigrations)
    /// A number or a string in a property list beside the database.
    case propertyList(file: String, key: String)
    /// A closure of the app that receives the path of the database, and returns `nil` if nothing is recorded.
    case custom(@Sendable (String) throws -> SchemaVersion?)

    /// A table's column that contains a version.
    public struct VersionColumn: Sendable, Equatable {
        /// The table's name.
        public var table: String
        /// The column's name.
        public var column: String
        /// The columns by which rows are selected, each with the text that it must equal, such as `name` = `DBVersion`.
        public var filter: [String: String]
        /// The number that is added to the recorded number, such as -1 if the recorded number is the next update to
        /// run.
        public var offset: Int

        /// Creates a column that contains a version.
        public init(table: String, column: String, filter: [String: String] = [:], offset: Int = 0) {
            self.table = table
            self.column = column
            self.filter = filter
            self.offset = offset
        }
    }
}
