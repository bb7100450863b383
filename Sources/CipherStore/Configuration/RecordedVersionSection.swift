internal import CipherConfigurationText
internal import CipherSchemaMigration

extension RecordedVersion {
    private enum Source: String, CaseIterable { case userVersion, table, plist }

    /// Reads the `recordedVersion` dictionary.
    ///
    /// - Parameter leftOut: Where the version is recorded when the dictionary only tells which one to assume.
    init(_ node: ConfigurationNode, databaseName: String, leftOut: RecordedVersion) throws {
        let ofTable = ["table", "column", "where", "offset"]
        let ofPropertyList = ["file", "key"]
        let section = try ConfigurationSection(node, keys: ["source", "assume"] + ofTable + ofPropertyList)
        if section["source"] == nil, section["assume"] != nil {
            try section.forbid(ofTable + ofPropertyList, because: "where no source is given")
            self = leftOut
            return
        }
        let source = try section.required("source").choice(Source.self)
        let reason = "where the source is \"\(source.rawValue)\""
        if source != .table { try section.forbid(ofTable, because: reason) }
        if source != .plist { try section.forbid(ofPropertyList, because: reason) }
        switch source {
        case .userVersion:
            self = .userVersion
        case .table:
            self = .table(
                VersionColumn(
                    table: try section.required("table").schemaName(),
                    column: try section.required("column").schemaName(),
                    filter: try section["where"].map(Self.filter) ?? [:],
                    offset: try section["offset"]?.wholeNumber(in: Int(Int32.min)...Int(Int32.max)) ?? 0))
        case .plist:
            let file = try section.required("file")
            let name = try file.fileName()
            // Reading a database by other means than SQLite's own drops the locks that SQLite holds on it.
            guard !["", "-wal", "-shm", "-journal"].contains(where: { databaseName + $0 == name }) else {
                throw file.failure("is the database itself", advice: "name the property list beside it")
            }
            self = .propertyList(file: name, key: try section.required("key").text())
        }
    }

    private static func filter(_ node: ConfigurationNode) throws -> [String: String] {
        var filter: [String: String] = [:]
        for (column, value) in try node.entries() {
            guard !column.isEmpty, !column.utf8.contains(0) else { throw node.failure("names no column") }
            // Numbers are compared as their text, as the statement of the app did: `where id = '1'`.
            if case .integer(let number) = value.value {
                filter[column] = String(number)
            } else {
                filter[column] = try value.text()
            }
        }
        return filter
    }
}
