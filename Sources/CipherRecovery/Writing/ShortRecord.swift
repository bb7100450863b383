internal import CipherCatalog
internal import CipherErrors
internal import CipherSQLite
internal import CipherSQLiteFormat

/// A record that ends before a table's last columns, as SQLite reads it under the table's own definition.
///
/// The proof takes the values of missing columns from here. ``TableForm`` finds them in another way, by adding each
/// column to a table; only the layout of the record, and the value at the first place, are taken from it.
struct ShortRecord {
    private let values: [HeldValue]
    private let table: TableForm

    /// Stores the shortest record that the table can have in a database in memory, and reads it.
    ///
    /// - Throws: ``DatabaseError`` if SQLite does not accept the definition.
    init(of table: TableForm, _ encoding: TextEncoding) throws {
        self.table = table
        let connection = try MemoryDatabase().connect(
            .recovering(Int64(table.definition.count) * (encoding == .utf8 ? 1 : 2)))
        defer { connection.close() }
        try connection.execute(encoding.pragma)
        let key = table.isWithoutRowID ? Set(table.key.map(\.position)).count : 1
        let columns = (0..<key).map { "c\($0)" }.joined(separator: ", ")
        let form = table.isWithoutRowID ? "(\(columns), PRIMARY KEY(\(columns))) WITHOUT ROWID" : "(\(columns))"
        try connection.execute(SQL(text: "CREATE TABLE cipherstore_short\(form)"))
        let ones = (0..<key).map { _ in "1" }.joined(separator: ", ")
        try connection.execute(SQL(text: "INSERT INTO cipherstore_short VALUES (\(ones))"))
        try connection.execute("PRAGMA writable_schema = ON")
        let rename = try Statement("UPDATE sqlite_master SET name = ?1, tbl_name = ?1, sql = ?2", on: connection)
        let (name, definition) = (HeldBytes(table.name.bytes), HeldBytes(table.definition))
        try rename.bind(text: name.bytes, .utf8, at: 1)
        try rename.bind(text: definition.bytes, .utf8, at: 2)
        try rename.step()
        withExtendedLifetime((name, definition)) {}
        try connection.forgetSchemas()
        let read = table.stored.indices.map { "\(table.name).\(table.column($0).schemaName)" as SQL }
        values = try connection.standingInForAbsentFunctions {
            try connection.heldValues(read, from: "\(table.name) NOT INDEXED")
        }
    }

    /// Returns the value at a place that a record does not reach.
    ///
    /// The first value is missing only from a record without values, which SQLite never stores.
    func value(_ place: Int) -> RecordValue {
        place > 0 && place < values.count ? values[place].value : table.defaults[place].value
    }
}
