internal import CipherConfigurationText
internal import CipherSchemaMigration

extension RecordedVersion {
    private enum Source: String, CaseIterable {
        case userVersion, table, migrations, plist

        var keys: [String] {
            switch self {
            case .userVersion: []
            case .table: ["table", "column", "where", "offset"]
            case .migrations: ["identifiers", "merged", "table", "column"]
            case .plist: ["file", "key"]
            }
        }

        static let allKeys = ["table", "column", "where", "offset", "identifiers", "merged", "file", "key"]
    }

    /// Reads the `recordedVersion` dictionary.
    ///
    /// - Parameter leftOut: The place of the recorded version if the dictionary only specifies which version to assume.
    init(_ node: ConfigurationNode, databaseName: String, leftOut: RecordedVersion) throws {
        let section = try ConfigurationSection(node, keys: ["source", "assume"] + Source.allKeys)
        if section["source"] == nil, section["assume"] != nil {
            try section.forbid(Source.allKeys, because: "without a source")
            self = leftOut
            return
        }
        let source = try section.required("source").choice(Source.self)
        try section.forbid(
            Source.allKeys.filter { !source.keys.contains($0) }, because: "if the source is \"\(source.rawValue)\"")
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
        case .migrations:
            self = .migrations(try Self.migrations(section))
        case .plist:
            let file = try section.required("file")
            let name = try file.fileName()
            // Opening and closing a database file other than through SQLite drops the locks that SQLite holds on it.
            guard !["", "-wal", "-shm", "-journal"].contains(where: { databaseName + $0 == name }) else {
                throw file.failure(
                    sentence: "\(file.subject) must not be one of the database's own files",
                    advice: "specify the name of a property list in the database's folder")
            }
            self = .propertyList(file: name, key: try section.required("key").text())
        }
    }

    private static func migrations(_ section: ConfigurationSection) throws -> AppliedMigrations {
        var migrations = AppliedMigrations(try names(try section.required("identifiers")))
        for (name, parts) in try section["merged"]?.entries() ?? [] { migrations.merged[name] = try names(parts) }
        if let table = section["table"] { migrations.table = try table.schemaName() }
        if let column = section["column"] { migrations.column = try column.schemaName() }
        if let fault = migrations.fault { throw try section.required(fault.key).failure(fault.detail) }
        return migrations
    }

    private static func names(_ node: ConfigurationNode) throws -> [String] {
        try node.elements().map { element in
            // Some systems identify a migration by a number.
            if case .integer(let number) = element.value { return String(number) }
            return try element.text()
        }
    }

    private static func filter(_ node: ConfigurationNode) throws -> [String: String] {
        var filter: [String: String] = [:]
        for (column, value) in try node.entries() {
            guard !column.isEmpty, !column.utf8.contains(0) else {
                throw node.failure("a column name is empty or contains a NUL character")
            }
            // Numbers are compared as text, as in the app's own statement: `where id = '1'`.
            if case .integer(let number) = value.value {
                filter[column] = String(number)
            } else {
                filter[column] = try value.text()
            }
        }
        return filter
    }
}
