internal import CipherConfigurationText
internal import CipherSQLText
internal import CipherSchemaMigration

extension DeclaredTable {
    /// Reads the `dbTables` list.
    ///
    /// Each element is a dictionary with one table, which contains a list of dictionaries with one column each.
    static func list(_ node: ConfigurationNode) throws -> [DeclaredTable] {
        var tables: [DeclaredTable] = []
        var places: [SQLName: String] = [:]
        let elements = try node.elements()
        guard !elements.isEmpty else {
            throw node.failure(
                sentence: "\(node.subject) lists no tables",
                advice: "omit the key if the app creates its tables itself")
        }
        for element in elements {
            let (name, columns) = try element.singleEntry("table")
            try checkTableName(name, element)
            if let other = places.updateValue(element.place, forKey: SQLName(name)) {
                throw element.failure("the table \"\(ConfigurationNode.shown(name))\" is also declared at \(other)")
            }
            tables.append(DeclaredTable(name: name, columns: try Self.columns(columns)))
        }
        return tables
    }

    static func checkTableName(_ name: String, _ node: ConfigurationNode) throws {
        if let fault = SQLName.fault(of: name) { throw node.failure("the table's name \(fault)") }
        if let prefix = SQLName(name).reservedPrefix {
            throw node.failure(
                "the table's name \"\(ConfigurationNode.shown(name))\" begins with \(prefix), which is reserved",
                advice: "choose another name")
        }
    }

    static func columns(_ node: ConfigurationNode) throws -> [Column] {
        var columns: [Column] = []
        var places: [SQLName: String] = [:]
        for element in try node.elements() {
            let (name, definition) = try element.singleEntry("column")
            if let fault = SQLName.fault(of: name) { throw element.failure("the column's name \(fault)") }
            if let other = places.updateValue(element.place, forKey: SQLName(name)) {
                throw element.failure("the column \"\(ConfigurationNode.shown(name))\" is also declared at \(other)")
            }
            let text = try definition.text()
            if let fault = SQLFragment.fault(in: text, isColumn: true) {
                throw definition.failure("the definition \(fault)")
            }
            columns.append(Column(name: name, definition: text))
        }
        guard !columns.isEmpty else { throw node.failure("a table needs at least one column") }
        return columns
    }
}
