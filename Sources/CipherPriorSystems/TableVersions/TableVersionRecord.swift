internal import CipherCatalog
internal import CipherErrors
internal import CipherSQLText
internal import CipherSQLite
internal import CipherSchemaMigration

/// The table in which an app records a version for each of its tables.
package struct TableVersionRecord {
    package static let table = "tableVersion"
    package static let createSQL =
        "CREATE TABLE tableVersion(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, version DOUBLE)"

    /// The versions of each table, from all rows that name it.
    private var versions: [SQLName: [Double]] = [:]
    /// The names, as they are recorded, of the other tables that have a version.
    private(set) var undeclared: [SQLName: String] = [:]
    /// Whether the database has the table.
    private(set) var isThere = false
    /// Whether a row can be added with only a name and a version.
    private var addsRows = true

    /// Reads the versions of the tables that the app declares; of other tables, only the names are read.
    ///
    /// - Throws: ``StoreError`` with the code `recordedVersion` if a version is negative or not a number; the message
    ///   never contains the value.
    init(in state: DatabaseState, of tables: [VersionedTable]) throws {
        guard let found = state.table(Self.table) else { return }
        isThere = true
        addsRows = try !state.needsValue(found, besides: ["name", "version"])
        for column in ["name", "version"] where found.column(column) == nil {
            throw Self.failure(
                state, "the table \(Self.table), which records the versions, has no column \(column)")
        }
        let known = Set(tables.map { SQLName($0.name) })
        try state.connection.forEachRow("SELECT name, version FROM main.tableVersion") { row in
            guard case .text(let name) = row.value(at: 0) else { return }
            guard known.contains(SQLName(name)) else {
                undeclared[SQLName(name)] = name
                return
            }
            let version: Double? =
                switch row.value(at: 1) {
                case .integer(let integer): Double(integer)
                case .real(let real): real
                case .text(let text): VersionedTable.version(text)
                case .blob, .null: nil
                }
            guard let version else {
                throw Self.failure(state, "the version of \(name) in \(Self.table) is not a number")
            }
            guard version >= 0 else {
                throw Self.failure(state, "the version of \(name) in \(Self.table) is negative")
            }
            versions[SQLName(name), default: []].append(version)
        }
    }

    /// Returns the version of a table, or the highest of several versions; `nil` if no version is recorded.
    func version(of table: String) -> Double? {
        versions[SQLName(table)]?.max()
    }

    /// Returns the operation that updates the record of a table to its version; `nil` if the record has it, or if the
    /// missing row needs other values.
    ///
    /// Rows with lower versions stay: a table may have a row for each version that was ever reached.
    func operation(for table: VersionedTable) -> Plan.Operation? {
        let found = version(of: table.name)
        guard found.map({ $0 != table.version }) ?? addsRows else { return nil }
        let name = SQL.quoted(text: table.name)
        let version = Self.literal(table.version)
        return Plan.Operation(
            .sql, table: Self.table, object: "\(Self.table).\(table.name)",
            sql: [
                found == nil
                    ? "INSERT INTO main.tableVersion (name, version) VALUES (\(name), \(version))"
                    : "UPDATE main.tableVersion SET version = \(version) WHERE name = \(name) COLLATE NOCASE AND "
                        + "CAST(version AS REAL) = (SELECT max(CAST(version AS REAL)) FROM main.tableVersion WHERE name = "
                        + "\(name) COLLATE NOCASE)"
            ],
            reason: "the recorded version of \(table.name) is \(found.map(Self.literal) ?? "missing")")
    }

    /// Returns a version in its usual form: 2 rather than 2.0.
    static func literal(_ version: Double) -> String {
        Int64(exactly: version).map { "\($0)" } ?? "\(version)"
    }

    private static func failure(_ state: DatabaseState, _ detail: String) -> StoreError {
        StoreError(
            .recordedVersion, path: state.connection.path, detail,
            advice: "correct the table \(table): each version must be a non-negative number", changed: .nothing)
    }
}
