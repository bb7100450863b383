internal import CipherConfigurationText
internal import CipherSQLText
internal import CipherSchemaMigration

extension DeclaredTable {
    /// Reads the `tableOptions` dictionary, and adds the options to the tables that it names.
    static func addOptions(_ node: ConfigurationNode, to tables: [DeclaredTable]) throws -> [DeclaredTable] {
        var tables = tables
        var seen: Set<SQLName> = []
        for (name, options) in try node.entries() {
            guard let index = tables.firstIndex(where: { SQLName($0.name) == SQLName(name) }) else {
                let suggestion = Suggestion.nearest(to: name, among: tables.map(\.name))
                throw options.failure(
                    "dbTables does not declare this table", advice: suggestion.map { "did you mean \"\($0)\"?" } ?? "")
            }
            guard seen.insert(SQLName(name)).inserted else {
                throw options.failure("the options for this table are specified twice")
            }
            try tables[index].add(options)
        }
        try checkRenames(tables, node)
        return tables
    }

    private static func checkRenames(_ tables: [DeclaredTable], _ node: ConfigurationNode) throws {
        var hints: [SQLName: String] = [:]
        for table in tables {
            hints[SQLName(table.name)] = table.renamedFrom
            let columns = Dictionary(
                table.renamedColumns.map { (SQLName($0.key), $0.value) }, uniquingKeysWith: { first, _ in first })
            guard let fault = RenameFault.first(in: columns) else { continue }
            throw node.failure(
                at: "\(table.name).renamedColumns.\(fault.new.text)", fault.detail, advice: fault.advice)
        }
        guard let fault = RenameFault.first(in: hints) else { return }
        throw node.failure(at: "\(fault.new.text).renamedFrom", fault.detail, advice: fault.advice)
    }

    private mutating func add(_ node: ConfigurationNode) throws {
        let section = try ConfigurationSection(
            node, keys: ["renamedFrom", "renamedColumns", "withoutRowid", "strict", "constraints", "indexes"])
        if let value = section["renamedFrom"] { renamedFrom = try value.schemaName() }
        if let value = section["renamedColumns"] { try addRenames(value) }
        if let value = section["withoutRowid"] { isWithoutRowID = try value.boolean() }
        if let value = section["strict"] { isStrict = try value.boolean() }
        if let value = section["constraints"] { constraints = try value.elements().map { try $0.sqlPart() } }
        if let value = section["indexes"] {
            let names = Set(columns.map { SQLName($0.name) })
            indexes = try value.entries().map { try Index(name: $0.name, $0.node, names) }
        }
    }

    private mutating func addRenames(_ node: ConfigurationNode) throws {
        for (new, old) in try node.entries() {
            guard columns.contains(where: { SQLName($0.name) == SQLName(new) }) else {
                let suggestion = Suggestion.nearest(to: new, among: columns.map(\.name))
                throw old.failure(
                    "the table does not declare this column",
                    advice: suggestion.map { "did you mean \"\($0)\"? Use the new name as the key" }
                        ?? "use the new name as the key and the old name as the value")
            }
            renamedColumns[new] = try old.schemaName()
        }
    }
}

extension DeclaredTable.Index {
    /// Reads a list of columns, or a dictionary with further keys.
    ///
    /// - Parameter names: The names of the table's columns.
    fileprivate init(name: String, _ node: ConfigurationNode, _ names: Set<SQLName>) throws {
        if let fault = SQLName.fault(of: name) { throw node.failure("the index's name \(fault)") }
        if let prefix = SQLName(name).reservedPrefix {
            throw node.failure(
                "the index's name begins with \(prefix), which is reserved", advice: "choose another name")
        }
        self.init(name: name, columns: [])
        guard case .dictionary = node.value else {
            try read(columns: node, names)
            return
        }
        let section = try ConfigurationSection(node, keys: ["columns", "unique", "where"])
        try read(columns: section.required("columns"), names)
        if let value = section["unique"] { isUnique = try value.boolean() }
        if let value = section["where"] { condition = try value.sqlPart() }
    }

    private mutating func read(columns node: ConfigurationNode, _ names: Set<SQLName>) throws {
        columns = try node.elements().map { part in
            // A name is quoted, so it may contain anything.
            if case .text(let text) = part.value, names.contains(SQLName(text)) { return text }
            return try part.sqlPart()
        }
        guard !columns.isEmpty else { throw node.failure("an index needs at least one column") }
    }
}

extension ConfigurationNode {
    /// Reads a fragment of SQL, which must not be able to end the clause that will contain it.
    fileprivate func sqlPart() throws -> String {
        let text = try text()
        guard !text.isEmpty else { throw failure("the SQL is empty") }
        if let fault = SQLFragment.fault(in: text) { throw failure("the SQL \(fault)") }
        return text
    }
}
