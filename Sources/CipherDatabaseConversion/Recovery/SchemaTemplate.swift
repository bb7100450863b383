internal import CipherErrors
internal import CipherKeyProviders
internal import CipherRecovery
internal import CipherSQLite
internal import CipherSQLiteFormat

/// The schema of a healthy database, for a damaged one whose own schema is lost.
struct SchemaTemplate {
    let entries: [SchemaText]
    let encoding: TextEncoding?
    let geometry: PageGeometry?

    /// Reads a template.
    ///
    /// - Parameter provider: Provides the template's key. It is called only if the template is encrypted.
    /// - Throws: The same errors as for any database that is read.
    init(_ path: String, provider: any KeyProvider, formats: [CipherSettings], _ options: ConversionOptions) throws {
        let paths = try DatabasePaths(path)
        (entries, encoding, geometry) = try StoreError.typing(paths.database) {
            try DatabaseReader(options.inspector(paths)).read(provider: provider, formats: formats) { connection, _ in
                let entries = try connection.transaction(.deferred) {
                    let entries = try Self.entries(connection)
                    try connection.checkAuthenticity()
                    return entries
                }
                let encoding: TextEncoding? =
                    switch try connection.value(String.self, "PRAGMA encoding") {
                    case "UTF-16le": .utf16LittleEndian
                    case "UTF-16be": .utf16BigEndian
                    default: .utf8
                    }
                let size = try Int(connection.pageSize(of: "main"))
                return (entries, encoding, PageGeometry(pageSize: size, reserved: 0))
            }
        }
    }

    /// Creates the template from the schema that a closure creates in an empty in-memory database.
    ///
    /// - Throws: ``StoreError`` with the code `missingCollation` or a similar one; any error thrown by the closure.
    init(_ extensions: SQLExtensions, madeBy make: (Connection) throws -> Void) throws {
        let connection = try MemoryDatabase().connect(.migrating.with(extensions: extensions))
        defer { connection.close() }
        try make(connection)
        // Only the damaged database can show how text is stored.
        (entries, encoding, geometry) = (try Self.entries(connection), nil, nil)
    }

    private static func entries(_ connection: Connection) throws -> [SchemaText] {
        var entries: [SchemaText] = []
        try connection.forEachRow("SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master ORDER BY rowid") {
            row in
            entries.append(
                SchemaText(
                    type: try row.get(at: 0), name: try row.get(at: 1), table: try row.get(at: 2),
                    root: UInt32(clamping: try row.get(Int64?.self, at: 3) ?? 0),
                    sql: try row.get(SchemaName?.self, at: 4)?.bytes))
        }
        return entries
    }
}
