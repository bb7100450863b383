internal import CipherConfigurationText
internal import CipherPriorSystems
internal import CipherSchemaMigration

extension Configuration.SchemaSourceKind {
    /// The keys of a configuration that name a schema source.
    static let keys = ["dbTables", "updates", "template", "tableVersions"]

    /// Reads the configuration's only schema source.
    init(_ section: ConfigurationSection, databaseName: String) throws {
        if let options = section["tableOptions"], section["dbTables"] == nil {
            throw options.failure(
                sentence: "\(options.subject) is not allowed without dbTables", advice: "omit this key")
        }
        let given = Self.keys.filter { section[$0] != nil }
        guard let key = given.first, let node = section[key] else {
            self = .none
            return
        }
        if let other = given.dropFirst().first, let second = section[other] {
            throw second.failure(
                "a configuration can have only one schema source, but \"\(key)\" is also present",
                advice: "remove one of the two keys")
        }
        switch key {
        case "dbTables":
            let tables = try DeclaredTable.list(node)
            self = .tables(try section["tableOptions"].map { try DeclaredTable.addOptions($0, to: tables) } ?? tables)
        case "updates": self = .steps(try node.steps(leadingTo: try section.required("dbVersion")))
        case "template": self = .template(try SchemaTemplate(node, databaseName: databaseName))
        default: self = .tableVersions(try VersionedTable.list(node))
        }
    }

    /// The place of the recorded version if the configuration does not specify one.
    var defaultRecordedVersion: RecordedVersion {
        switch self {
        case .steps: .stepRecords
        case .template: SchemaTemplate.recordedVersion
        case .none, .tables, .tableVersions: .userVersion
        }
    }
}
