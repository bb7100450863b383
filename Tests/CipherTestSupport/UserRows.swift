public import CipherSQLite
public import Foundation

/// The rows of a database, as SQLite alone reads them: with plain SQLite before an upgrade, and with the key after it.
///
/// It is written for the tests and independent of the library. The order of rows and columns does not count, nor does
/// the rowid of a table without its own key.
public struct UserRows: Sendable {
    /// Each row as its columns with their values, by storage class.
    private var tables: [String: [[String: String]]] = [:]

    /// Reads all tables except SQLite's, CipherStore's and those that are left out.
    public init(_ connection: Connection, without leftOut: Set<String> = []) throws {
        let names = try connection.values(
            String.self,
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name NOT LIKE 'cipherstore%'"
        )
        for table in names where !leftOut.contains(table) {
            var columns: [String] = []
            try connection.forEachRow("PRAGMA table_info(\(identifier: table))") { columns.append(try $0.get(at: 1)) }
            var rows: [[String: String]] = []
            try connection.forEachRow("SELECT * FROM \(identifier: table)") { row in
                var values: [String: String] = [:]
                for (index, column) in columns.enumerated() { values[column] = "\(row.value(at: index))" }
                rows.append(values)
            }
            tables[table] = rows
        }
    }

    /// The number of rows.
    public var count: Int { tables.values.reduce(0) { $0 + $1.count } }

    /// Returns the rows that another database lacks, compared by the columns that both have.
    public func missing(in other: UserRows) -> [String] {
        tables.sorted { $0.key < $1.key }.flatMap { table, rows -> [String] in
            guard let theirs = other.tables[table] else { return rows.map { "\(table): \($0)" } }
            let columns = rows.first?.keys.filter { theirs.first?[$0] != nil }.sorted() ?? []
            func line(_ row: [String: String]) -> String { columns.map { row[$0] ?? "" }.joined(separator: " | ") }
            var counts = Dictionary(theirs.map { (line($0), 1) }, uniquingKeysWith: +)
            return rows.map(line).filter { line in
                counts[line, default: 0] -= 1
                return counts[line, default: 0] < 0
            }.map { "\(table): \($0)" }
        }
    }
}

/// The files of a folder at one moment, as a kill leaves them.
///
/// The index of a log is left out, as after a restart.
public struct FolderState: Sendable {
    /// The content of each file by its name.
    public var files: [String: Data]

    /// Files by their names.
    public init(files: [String: Data]) {
        self.files = files
    }

    /// Reads the files.
    public init(_ folder: TemporaryFolder) throws {
        files = [:]
        for name in try folder.names where !name.hasSuffix("-shm") {
            files[name] = try Data(contentsOf: folder.url.appending(path: name))
        }
    }

    /// Returns the same files, with one under another name.
    public func renaming(_ old: String, to new: String) -> FolderState {
        var state = self
        state.files[new] = state.files.removeValue(forKey: old)
        return state
    }

    /// Returns the same files without some of them.
    public func without(_ names: String...) -> FolderState {
        var state = self
        for name in names { state.files[name] = nil }
        return state
    }

    /// Returns the files of both.
    public func with(_ other: FolderState) -> FolderState {
        var state = self
        state.files.merge(other.files) { $1 }
        return state
    }

    /// Writes the files into a folder.
    public func write(to folder: TemporaryFolder) throws {
        for (name, content) in files { try content.write(to: folder.url.appending(path: name)) }
    }
}
