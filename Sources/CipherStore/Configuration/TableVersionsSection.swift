internal import CipherConfigurationText
internal import CipherPriorSystems
internal import CipherSQLText
internal import CipherSchemaMigration

extension VersionedTable {
    /// Reads the `tableVersions` dictionary, in the order of the names.
    static func list(_ node: ConfigurationNode) throws -> [VersionedTable] {
        var tables: [VersionedTable] = []
        var names: Set<SQLName> = []
        for (name, table) in try node.entries() {
            try DeclaredTable.checkTableName(name, node)
            guard names.insert(SQLName(name)).inserted else {
                throw table.failure("the table is declared twice; names are not case-sensitive in SQLite")
            }
            guard SQLName(name) != SQLName(TableVersionRecord.table) else {
                throw table.failure("this table stores the versions of the other tables", advice: "omit this table")
            }
            tables.append(try VersionedTable(name, table))
        }
        guard !tables.isEmpty else {
            throw node.failure(
                sentence: "\(node.subject) lists no tables",
                advice: "omit the key if the app creates its tables itself")
        }
        return tables
    }

    private init(_ name: String, _ node: ConfigurationNode) throws {
        let section = try ConfigurationSection(
            node,
            keys: ["version", "sql", "columns", "renamedColumns", "indexes", "triggers", "leftover", "leftoverRows"])
        let definition: Definition
        if let sql = section["sql"] {
            try section.forbid(["columns"], because: "together with \"sql\"")
            definition = .sql(try sql.text())
        } else {
            guard let columns = section["columns"] else {
                throw section.failure("the key \"columns\" or \"sql\" is missing")
            }
            definition = .columns(try DeclaredTable.columns(columns))
        }
        self.init(
            name: name, version: try section.required("version").tableVersion(), definition: definition,
            renamedColumns: try section["renamedColumns"]?.renames() ?? [:],
            indexes: try section["indexes"]?.elements().map { try $0.text() } ?? [],
            triggers: try section["triggers"]?.elements().map { try $0.text() } ?? [],
            leftover: try section["leftover"]?.schemaName(),
            leftoverRows: try section["leftoverRows"]?.choice())
    }
}

extension ConfigurationNode {
    /// Reads the version of one table: a non-negative number, with or without a fraction, or text that represents one.
    fileprivate func tableVersion() throws -> Double {
        let number: Double? =
            switch value {
            case .integer(let integer): Double(integer)
            case .real(let real): real
            case .text(let text): VersionedTable.version(text)
            case .boolean, .list, .dictionary, .other: nil
            }
        guard let number, number >= 0, number < 1e15 else {
            throw failure(sentence: "\(subject) must be a non-negative number, such as 1.4")
        }
        return number
    }
}
