internal import CipherCatalog
internal import CipherConfigurationText
internal import CipherErrors
package import CipherHistory
internal import CipherPlatform
package import CipherSQLText
package import CipherSQLite
internal import CipherSystemFiles

extension RecordedVersion {
    /// Reads the version that a database or the app has recorded, without changing anything.
    ///
    /// - Parameters:
    ///   - fractions: How to read a number that is not whole.
    ///   - assumed: The version to assume for a property list that was truncated, for example by a kill while the app
    ///     wrote it.
    /// - Returns: The version; `nil` if nothing is recorded because the table, the row, the property list or its key
    ///   does not exist. A `user_version` that was never set is 0.
    /// - Throws: ``StoreError`` with the code `recordedVersion` if the recorded value is not a valid version; the
    ///   message never contains the value. ``StoreError`` with the code `downgrade` if more migrations were applied
    ///   than the list contains. `DatabaseError` if SQLite fails, and any error thrown by the app's own closure.
    package func read(
        from connection: Connection, databasePath: String, _ fractions: Fractions, assumed: SchemaVersion? = nil
    ) throws -> SchemaVersion? {
        switch self {
        case .userVersion:
            let number = try connection.value(Int.self, "PRAGMA user_version") ?? 0
            guard number >= 0 else {
                throw StoreError(
                    .recordedVersion, path: databasePath, "PRAGMA user_version is negative",
                    advice: "set user_version to the version of the schema")
            }
            return SchemaVersion(number)
        case .table(let column):
            return try column.read(from: connection, databasePath: databasePath, fractions)
        case .stepRecords:
            for column in VersionColumn.ofSteps {
                if let version = try column.read(from: connection, databasePath: databasePath, fractions) {
                    return version
                }
            }
            let version = try Self.userVersion.read(from: connection, databasePath: databasePath, fractions)
            // A database whose version was never set returns 0.
            return version == .zero ? nil : version
        case .migrations(let migrations):
            return try migrations.read(from: connection, databasePath: databasePath)
        case .propertyList(let file, let key):
            return try Self.readPropertyList(file: file, key: key, databasePath: databasePath, fractions, assumed)
        case .custom(let body):
            let version = try body(databasePath)
            guard version?.components.contains(where: { $0 < 0 }) != true else {
                throw StoreError(
                    .recordedVersion, path: databasePath, "the app's closure returned a negative version",
                    advice: "return nil from the closure if no version is recorded")
            }
            return version
        }
    }

    private static func readPropertyList(
        file: String, key: String, databasePath: String, _ fractions: Fractions, _ assumed: SchemaVersion?
    ) throws -> SchemaVersion? {
        let path = FileName.sibling(file, of: databasePath)
        func failure(_ detail: String, _ advice: String) -> StoreError {
            StoreError(.recordedVersion, path: path, detail, advice: advice)
        }
        if let fault = FileName.fault(of: file) {
            throw failure(
                "the file name of the property list that contains the recorded version \(fault)",
                "specify the name of a file next to the database")
        }
        guard let bytes = try contents(of: path, besides: databasePath, failure: failure) else { return nil }
        let value: ConfigurationValue
        do {
            value = try ConfigurationSyntax.parse(bytes)
        } catch let reason {
            if let assumed { return assumed }
            throw StoreError.unknownVersion(
                path, "the recorded version could not be read: \(reason.detail)", first: "restore the file")
        }
        guard case .dictionary(let entries) = value else {
            throw failure("the property list is not a dictionary", "check recordedVersion.file")
        }
        guard let entry = entries[key] else { return nil }
        let subject = "the value of \"\(ConfigurationNode.shown(key))\""
        guard let version = try RecordedValue(entry)?.version(fractions, of: subject, path: path) else {
            throw failure(
                "\(subject) is not a valid version",
                "a version must be a whole number or a dotted version such as 2.0.0; check recordedVersion.key")
        }
        return version
    }

    private static func contents(
        of path: String, besides databasePath: String, failure: (_ detail: String, _ advice: String) -> StoreError
    ) throws -> [UInt8]? {
        guard !SmallFile.isSame(path, databasePath) else {
            throw failure(
                "the property list that contains the recorded version must not be the database itself",
                "specify a property list next to the database")
        }
        do {
            return try SmallFile(path: path).bytes(limit: ConfigurationSyntax.maximumSize)
        } catch SmallFile.Failure.missing {
            return nil
        } catch let reason {
            throw failure("the recorded version could not be read: \(reason)", "check the file")
        }
    }
}

extension RecordedVersion {
    /// The columns that may contain the version; the first column that contains a version is used.
    var columns: [VersionColumn] {
        switch self {
        case .table(let column): [column]
        case .stepRecords: VersionColumn.ofSteps
        case .userVersion, .migrations, .propertyList, .custom: []
        }
    }

    /// The app's tables that contain only its record of the version.
    package var tables: Set<SQLName> {
        if case .migrations(let migrations) = self { return [SQLName(migrations.table)] }
        return Set(columns.map { SQLName($0.table) })
    }

    /// A description of the record that a database with tables must have; `nil` if the version may be missing.
    package var place: String? {
        switch self {
        case .table(let column): "the value of \(column.table).\(column.column)"
        case .propertyList(let file, let key): "the value of \"\(ConfigurationNode.shown(key))\" in \(file)"
        // The sources that change the schema in steps report more about a database without a version.
        case .userVersion, .stepRecords, .migrations, .custom: nil
        }
    }
}

extension RecordedVersion.VersionColumn {
    /// The columns in which the systems of numbered steps and of app versions recorded the version.
    fileprivate static let ofSteps = [
        Self(table: "db_version", column: "db_version_num", offset: -1),
        Self(table: "tb_clientstage", column: "version", filter: ["id": "1", "tableno": "0"]),
    ]

    /// Reads the highest version of the rows that match; `nil` if there is no such table or no such row.
    func read(
        from connection: Connection, databasePath: String, _ fractions: RecordedVersion.Fractions
    ) throws -> SchemaVersion? {
        var highest: SchemaVersion?
        try forEachValue(from: connection, databasePath: databasePath) { value in
            let value = RecordedValue(value)
            guard let version = try value?.version(fractions, offset: offset, of: place, path: databasePath) else {
                throw StoreError(
                    .recordedVersion, path: databasePath, "\(place) contains a value that is not a valid version",
                    advice: "a version must be a non-negative integer after the offset is added; if "
                        + "there is no offset, it may also be text such as 2.0.0")
            }
            highest = highest.map { max($0, version) } ?? version
        }
        return highest
    }

    /// The column, for errors.
    var place: String { "the column \"\(column)\" of the table \"\(table)\"" }

    /// Calls `body` with the value of each matching row, if the table exists.
    func forEachValue(
        from connection: Connection, databasePath: String, _ body: (Value) throws -> Void
    ) throws {
        guard let name = try ownTable(connection, databasePath) else { return }
        try checkColumns(of: name, connection, databasePath)
        // SQLite treats a bare name in double quotes as text if no column has that name.
        var query: SQL = "SELECT record.\(identifier: column) FROM main.\(identifier: name) AS record"
        for (index, (column, text)) in filter.sorted(by: { $0.key < $1.key }).enumerated() {
            query = "\(query)\(SQL(text: index == 0 ? " WHERE " : " AND "))record.\(identifier: column) = \(text)"
        }
        try connection.withinSteps {
            try connection.forEachRow(query) { try body($0.value(at: 0)) }
        }
    }

    /// Returns the table's name as the schema spells it.
    ///
    /// A view or a virtual table is refused, because reading it would run code that the file specifies.
    private func ownTable(_ connection: Connection, _ databasePath: String) throws -> String? {
        var found: (name: String, hasRows: Bool)?
        try connection.forEachRow(
            """
            SELECT name, type = 'table' AND ifnull(rootpage, 0) > 0, CAST(sql AS TEXT) FROM main.sqlite_master
            WHERE type IN ('table', 'view') AND name = \(table) COLLATE NOCASE
            """
        ) { row in
            let sql = try row.get(String?.self, at: 2) ?? ""
            let hasRows =
                try row.get(Int?.self, at: 1) == 1 && SchemaEntryCheck.isShape(of: sql, "table", hasRoot: true)
            found = (try row.get(at: 0), hasRows)
        }
        guard let found else { return nil }
        guard found.hasRows else {
            throw StoreError(
                .recordedVersion, path: databasePath,
                "\"\(table)\", which should record the version, is not an ordinary table",
                advice: "check recordedVersion in the configuration, and check where the database comes from")
        }
        return found.name
    }

    private func checkColumns(of name: String, _ connection: Connection, _ databasePath: String) throws {
        let present = Set(try ColumnState.read(table: name, from: connection).map { SQLName($0.name) })
        for wanted in [column] + filter.keys.sorted() where !present.contains(SQLName(wanted)) {
            throw StoreError(
                .recordedVersion, path: databasePath,
                "the table \"\(table)\", which records the version, has no column \"\(wanted)\"",
                advice: "check recordedVersion in the configuration")
        }
    }
}
