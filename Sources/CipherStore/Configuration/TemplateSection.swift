internal import CipherConfigurationText
internal import CipherErrors
internal import CipherPriorSystems
internal import CipherSQLText
internal import CipherSchemaMigration
internal import CipherSystemFiles

extension SchemaTemplate {
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
            throw node.failure(
                sentence: "\(node.subject) must not be the database itself",
                advice: "specify the name of the new file that the app's own upgrade populated")
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
    /// Reads the path of a file, which is relative to the configuration's folder unless it begins with a slash.
    func path() throws -> String {
        let text = try text()
        guard !text.isEmpty else { throw failure(sentence: "\(subject) is empty") }
        let path = SystemPath.text(text.utf8)
        return path.utf8.first == UInt8(ascii: "/") ? path : FileName.sibling(path, of: file)
    }

    /// Reads a dictionary that maps new names to old ones.
    func renames() throws -> [String: String] {
        var names: [String: String] = [:]
        for (new, old) in try entries() {
            if let fault = SQLName.fault(of: new) { throw failure("a new name \(fault)") }
            names[new] = try old.schemaName()
        }
        let hints = Dictionary(names.map { (SQLName($0.key), $0.value) }, uniquingKeysWith: { first, _ in first })
        if let fault = RenameFault.first(in: hints) {
            throw failure(at: fault.new.text, fault.detail, advice: fault.advice)
        }
        return names
    }
}
