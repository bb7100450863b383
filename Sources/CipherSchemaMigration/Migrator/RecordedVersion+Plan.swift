internal import CipherCatalog
internal import CipherErrors
internal import CipherHistory
internal import CipherSQLText
internal import CipherSQLite

extension RecordedVersion {
    /// Returns the operation that updates the app's own record in the database to a version; `nil` if there is nothing
    /// to do.
    ///
    /// With an outdated version, leftover code of the app, or an older release after a decryption, would run the old
    /// upgrades again. A record outside the database is not part of the transaction, and is left to the app.
    func operation(recording version: SchemaVersion, in state: DatabaseState) throws -> Plan.Operation? {
        if case .migrations(let migrations) = self { return try migrations.operation(recording: version, in: state) }
        for column in columns where state.table(column.table) != nil {
            let found: SchemaVersion?
            do {
                found = try column.read(
                    from: state.connection, databasePath: state.connection.path,
                    version.isDotted ? .refused : .asWritten)
            } catch let error as StoreError where error.code == .recordedVersion {
                // The record is no longer used, or another version is assumed.
                return nil
            }
            if found == nil, column != columns.last(where: { state.table($0.table) != nil }) { continue }
            guard found ?? .zero < version, let value = try column.value(recording: version, besides: found, state)
            else { return nil }
            return Plan.Operation(
                .sql, table: column.table, object: "\(column.table).\(column.column)",
                sql: column.statements(recording: value),
                reason: "the app's own record of the version is \(found?.description ?? "missing")")
        }
        return nil
    }
}

extension RecordedVersion.AppliedMigrations {
    /// Returns the operation that adds the migrations up to a version to the table; `nil` if no migration is missing,
    /// or if the table requires more than names.
    fileprivate func operation(recording version: SchemaVersion, in state: DatabaseState) throws -> Plan.Operation? {
        guard let present = state.table(table),
            present.columns.allSatisfy({ !$0.isNotNull || SQLName($0.name) == SQLName(column) || $0.defaultSQL != nil })
        else { return nil }
        let found: SchemaVersion
        do {
            found = try read(from: state.connection, databasePath: state.connection.path)
        } catch let error as StoreError where [.recordedVersion, .downgrade].contains(error.code) {
            // The record is no longer used, or another version is assumed.
            return nil
        }
        let missing = identifiers.indices.filter { found < SchemaVersion($0 + 1) && SchemaVersion($0 + 1) <= version }
        guard !missing.isEmpty else { return nil }
        let (target, name) = ("main.\(SQL.quoted(identifier: table))", SQL.quoted(identifier: column))
        return Plan.Operation(
            .sql, table: table, object: "\(table).\(column)",
            sql: missing.map {
                let text = SQL.quoted(text: identifiers[$0])
                // A template or a step may have added the row in the meantime.
                return "INSERT INTO \(target) (\(name)) SELECT \(text) "
                    + "WHERE NOT EXISTS (SELECT 1 FROM \(target) WHERE \(name) = \(text))"
            },
            reason: "the app's own record of the version is \(found)")
    }
}

extension RecordedVersion.VersionColumn {
    /// Returns a version as it is to be written, in the form of the current value; `nil` if this form cannot express
    /// it.
    fileprivate func value(
        recording version: SchemaVersion, besides found: SchemaVersion?, _ state: DatabaseState
    ) throws -> Value? {
        var isText = false
        if let found, case .text = try value(of: found, in: state.connection) { isText = true }
        guard let number = version.wholeNumber, !isText || offset != 0 else {
            return offset == 0 && !becomesNumber(version, in: state) ? .text(version.description) : nil
        }
        let (difference, overflow) = number.subtractingReportingOverflow(offset)
        guard !overflow else { return nil }
        return isText ? .text("\(difference)") : .integer(Int64(difference))
    }

    /// Returns the stored value that records a version, exactly as it was written.
    private func value(of version: SchemaVersion, in connection: Connection) throws -> Value? {
        var found: Value?
        try connection.forEachRow(
            SQL(text: "SELECT \(SQL.quoted(column: column)) FROM \(target)\(condition)")
        ) { row in
            let value = row.value(at: 0)
            let other = try RecordedValue(value)?
                .version(.asWritten, offset: offset, of: column, path: connection.path)
            if other == version { found = value }
        }
        return found
    }

    /// Returns whether the column would store the text as a number, which would turn 1.10 into 1.1.
    private func becomesNumber(_ version: SchemaVersion, in state: DatabaseState) -> Bool {
        guard version.wholeNumber == nil, Double(version.description) != nil,
            let type = state.table(table)?.column(column)?.type
        else { return false }
        return switch Affinity(type) {
        case .integer, .real, .numeric: true
        case .text, .none: false
        }
    }

    /// Returns the statements that record a version in the existing rows, or in a new one.
    fileprivate func statements(recording value: Value) -> [String] {
        let names = filter.keys.sorted()
        let columns = (names + [column]).map { SQL.quoted(identifier: $0) }.joined(separator: ", ")
        let values = (names.map { SQL.quoted(text: filter[$0] ?? "") } + [literal(value)]).joined(separator: ", ")
        return [
            "UPDATE \(target) SET \(SQL.quoted(identifier: column)) = \(literal(value))\(condition)",
            "INSERT INTO \(target) (\(columns)) SELECT \(values) "
                + "WHERE NOT EXISTS (SELECT 1 FROM \(target)\(condition))",
        ]
    }

    /// The SQL condition for the rows that record the version; empty if all rows do.
    package var terms: String {
        filter.sorted { $0.key < $1.key }
            .map { "\(SQL.quoted(column: $0.key)) = \(SQL.quoted(text: $0.value))" }.joined(separator: " AND ")
    }

    /// The same condition as a WHERE clause.
    package var condition: String { terms.isEmpty ? "" : " WHERE \(terms)" }

    private var target: String { "main.\(SQL.quoted(identifier: table))" }

    private func literal(_ value: Value) -> String {
        switch value {
        case .integer(let integer): "\(integer)"
        case .real(let real): "\(real)"
        case .text(let text): SQL.quoted(text: text)
        case .null, .blob: "NULL"
        }
    }
}
