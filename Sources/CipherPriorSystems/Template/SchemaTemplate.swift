package import CipherSchemaMigration

/// A database of the wanted shape that the app ships, with rows that it brings.
public struct SchemaTemplate: Sendable, Equatable {
    /// The path of the template: a plaintext database that is only read.
    public var file: String
    /// The name, beside the database, of the copy that the app's own upgrade was filling.
    ///
    /// By default the database's name with `Temp` before its extension: `dbLocalTemp.db` for `dbLocal.db`.
    public var temporary: String?
    /// Which file counts where an upgrade by the app itself did not finish and that cannot be told; with `nil` such a
    /// database is refused.
    public var leftover: Leftover?
    /// New table name to old.
    public var renamedTables: [String: String]
    /// New column name to old, by the table's new name.
    public var renamedColumns: [String: [String: String]]

    /// Which file of an upgrade that did not end counts.
    public enum Leftover: String, Sendable, CaseIterable {
        /// The copy that the upgrade was filling, and its log.
        case copy
        /// The database; the copy and its log are left where they are.
        case database
    }

    /// A template.
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

    /// The name of the copy that the app's own upgrade was filling.
    package func temporaryName(of database: String) -> String {
        if let temporary { return temporary }
        guard let dot = database.utf8.lastIndex(of: UInt8(ascii: ".")), dot > database.utf8.startIndex else {
            return database + "Temp"
        }
        return database[..<dot] + "Temp" + database[dot...]
    }

    /// Where the apps that ship a template keep the version, in the template and in the user's database.
    package static let recordedVersion = RecordedVersion.table(
        .init(table: "Records", column: "value", filter: ["name": "DBVersion"]))
}
