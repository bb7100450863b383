internal import CipherSQLite

extension Configuration {
    /// A database of the wanted shape that the app ships, with rows that it brings.
    public struct Template: Sendable, Equatable {
        /// The path of the template: a plaintext database that is only read.
        public var file: String
        /// The name, beside the database, of the copy that the app's own upgrade was filling.
        ///
        /// By default the database's name with `Temp` before its extension: `dbLocalTemp.db` for `dbLocal.db`.
        public var temporary: String?
        /// Which file counts where an upgrade of the app's own did not end and that cannot be told; with `nil` such a
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
        func temporaryName(of database: String) -> String {
            if let temporary { return temporary }
            guard let dot = database.utf8.lastIndex(of: UInt8(ascii: ".")), dot > database.utf8.startIndex else {
                return database + "Temp"
            }
            return database[..<dot] + "Temp" + database[dot...]
        }
    }
}

extension Configuration.Template {
    /// Where the apps that ship a template keep the version, in the template and in the user's database.
    static let recordedVersion = RecordedVersion.table(
        .init(table: "Records", column: "value", filter: ["name": "DBVersion"]))

    /// Reads the `template` dictionary.
    init(_ node: ConfigurationNode, databaseName: String) throws {
        let section = try ConfigurationSection(
            node, keys: ["file", "temporary", "leftover", "renamedTables", "renamedColumns"])
        self.init(
            file: try section.required("file").path(),
            temporary: try section["temporary"].map { try Self.temporary($0, databaseName) },
            leftover: try section["leftover"]?.choice(),
            renamedTables: try section["renamedTables"]?.renames() ?? [:],
            renamedColumns: try section["renamedColumns"].map(Self.columns) ?? [:])
    }

    private static func temporary(_ node: ConfigurationNode, _ databaseName: String) throws -> String {
        let name = try node.fileName()
        guard name != databaseName else {
            throw node.failure("is the database itself", advice: "name the copy that the app's own upgrade made")
        }
        return name
    }

    private static func columns(_ node: ConfigurationNode) throws -> [String: [String: String]] {
        var columns: [String: [String: String]] = [:]
        for (table, names) in try node.entries() { columns[table] = try names.renames() }
        return columns
    }
}

extension ConfigurationNode {
    /// The path of a file, relative to the folder of the configuration where it does not begin with a slash.
    func path() throws -> String {
        let text = try text()
        guard !text.isEmpty else { throw failure("is empty") }
        let path = SystemPath.text(text.utf8)
        return path.utf8.first == UInt8(ascii: "/") ? path : FileName.sibling(path, of: file)
    }

    /// New names with the old ones.
    func renames() throws -> [String: String] {
        var names: [String: String] = [:]
        for (new, old) in try entries() {
            if let fault = SQLName.fault(of: new) { throw failure("a new name \(fault)") }
            names[new] = try old.schemaName()
        }
        let hints = Dictionary(names.map { (SQLName($0.key), $0.value) }, uniquingKeysWith: { first, _ in first })
        if let fault = RenameFault.first(in: hints) { throw failure(at: fault.new.text, fault.detail) }
        return names
    }
}
