package import CipherSchemaMigration

/// A database that the app ships, with the target schema and rows to add.
public struct SchemaTemplate: Sendable, Equatable {
    /// The path of the template, a plaintext database that is only read.
    public var file: String
    /// The name of the copy, beside the database, that the app's own upgrade fills.
    ///
    /// By default, it is the database's name with `Temp` before its extension: `dbLocalTemp.db` for `dbLocal.db`.
    public var temporary: String?
    /// The file to use if an upgrade by the app itself did not finish and CipherStore cannot determine which file is
    /// current; with `nil`, the database is then refused.
    public var leftover: Leftover?
    /// The new table names, each with the old name.
    public var renamedTables: [String: String]
    /// The new column names, each with the old name, by the table's new name.
    public var renamedColumns: [String: [String: String]]

    /// The file of an unfinished upgrade that is current.
    public enum Leftover: String, Sendable, CaseIterable {
        /// The copy that the upgrade was filling, and its WAL.
        case copy
        /// The database; the copy and its WAL are left where they are.
        case database
    }

    /// Creates a template.
    public init(
        file: String, temporary: String? = nil, leftover: Leftover? = nil, renamedTables: [String: String] = [:],
        renamedColumns: [String: [String: String]] = [:]
    ) {
        self.file = file
        self.temporary = temporary
        self.leftover = leftover
        self.renamedTables = renamedTables
        self.renamedColumns = renamedColumns
    }

    /// Returns the name of the copy that the app's own upgrade fills.
    package func temporaryName(of database: String) -> String {
        if let temporary { return temporary }
        guard let dot = database.utf8.lastIndex(of: UInt8(ascii: ".")), dot > database.utf8.startIndex else {
            return database + "Temp"
        }
        return database[..<dot] + "Temp" + database[dot...]
    }

    /// The place where apps that ship a template record the version, in the template and in the user's database.
    package static let recordedVersion = RecordedVersion.table(
        .init(table: "Records", column: "value", filter: ["name": "DBVersion"]))
}
