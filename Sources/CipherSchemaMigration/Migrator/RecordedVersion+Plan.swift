internal import CipherCatalog
internal import CipherErrors
internal import CipherHistory
internal import CipherSQLText
internal import CipherSQLite

extension RecordedVersion {
    /// Returns the operation that updates the app's own record in the database to a version; `nil` if there is nothing
    /// to do, or if the missing row needs other values.
    ///
    /// With an outdated version, leftover code of the app, or an older release after a decryption, would run the old
    /// upgrades again. A record outside the database is not part of the transaction, and is left to the app. So is a
    /// record whose table does not accept the new version, for example because of a CHECK or a trigger. A trigger that
    /// may roll back the transaction is not tried, because it would also undo the migration.
    func operation(recording version: SchemaVersion, in state: DatabaseState) throws -> Plan.Operation? {
        guard var operation = try update(recording: version, in: state) else { return nil }
        let (table, sql) = (SQLName(operation.table ?? ""), operation.sql)
        operation.trial = .init("the app's own record of the version in \(operation.subject)") { connection in
            func violations(_ state: DatabaseState) throws -> ForeignKeyViolations {
                let children = state.tables.filter { SQLName($0.name) == table || $0.references.contains(table) }
                return try ForeignKeyViolations(in: connection, of: children, tables: state.tables)
            }
            let before = try violations(DatabaseState(of: connection, countsRows: false) { nil })
            for statement in sql {
                guard try !connection.mayRollBack(statement) else {
                    throw StoreError(.migration, path: connection.path, "a trigger may roll back the transaction")
                }
                try connection.execute(SQL(text: statement))
            }
            let state = try DatabaseState(of: connection, countsRows: false) { nil }
            try violations(state).requireNoneBeyond(before, origins: [:], path: connection.path)
            guard let left = try update(recording: version, in: state) else { return }
            throw StoreError(.migration, path: connection.path, "after the update, \(left.reason)")
        }
        return operation
    }

    private func update(recording version: SchemaVersion, in state: DatabaseState) throws -> Plan.Operation? {
        if case .migrations(let migrations) = self { return try migrations.update(recording: version, in: state) }
        for column in columns {
            guard let table = state.table(column.table) else { continue }
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
            let addsRow = try !state.needsValue(table, besides: column.filter.keys + [column.column])
            guard found ?? .zero < version, found != nil || addsRow else { return nil }
            let recorded = try column.recorded(in: state.connection)
            let current = recorded.first { $0.version == found }?.value
            guard let value = column.value(recording: version, besides: current, state) else { return nil }
            let sql: [String]
            if try column.isReferenced(in: state) {
                // The rows that reference the current value would reference a missing row.
                guard addsRow, column.filter.isEmpty else { return nil }
                sql = [column.insertion(of: value, unless: column.selection(of: value))]
            } else {
                // A version may be written in several forms, but only one row may be given the new value.
                sql = column.statements(
                    recording: value, keeping: recorded.map(\.value).filter { $0 != current }, addsRow: addsRow)
            }
            return Plan.Operation(
                .sql, table: column.table, object: "\(column.table).\(column.column)", sql: sql,
                reason: "the app's own record of the version is \(found?.description ?? "missing")")
        }
        return nil
    }
}

extension Connection {
    /// Returns whether SQLite's program for a statement, including the triggers that it fires, may roll back the whole
    /// transaction.
    ///
    /// Source: SQLite, `sqlite3ExprCodeTarget` (`TK_RAISE`) and `OP_Halt`, whose P2 is `OE_Rollback`.
    fileprivate func mayRollBack(_ statement: String) throws -> Bool {
        var found = false
        try forEachRow(SQL(text: "EXPLAIN \(statement)")) { row in
            let (operation, action): (String, Int) = (try row.get(at: 1), try row.get(at: 3))
            if operation == "Halt", action == 1 { found = true }
        }
        return found
    }
}

extension RecordedVersion.AppliedMigrations {
    /// Returns the operation that adds the migrations up to a version to the table; `nil` if no migration is missing,
    /// or if the table requires more than names.
    fileprivate func update(recording version: SchemaVersion, in state: DatabaseState) throws -> Plan.Operation? {
        guard let present = state.table(table), try !state.needsValue(present, besides: [column]) else { return nil }
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
                return "INSERT OR ABORT INTO \(target) (\(name)) SELECT \(text) "
                    + "WHERE NOT EXISTS (SELECT 1 FROM \(target) WHERE \(name) = \(text))"
            },
            reason: "the app's own record of the version is \(found)")
    }
}

extension RecordedVersion.VersionColumn {
    /// Returns a version as it is to be written, in the form of the current value; `nil` if this form cannot express
    /// it.
    fileprivate func value(
        recording version: SchemaVersion, besides found: Value?, _ state: DatabaseState
    ) -> Value? {
        var isText = false
        if case .text = found { isText = true }
        guard let number = version.wholeNumber, !isText || offset != 0 else {
            return offset == 0 && !becomesNumber(version, in: state) ? .text(version.description) : nil
        }
        let (difference, overflow) = number.subtractingReportingOverflow(offset)
        guard !overflow else { return nil }
        return isText ? .text("\(difference)") : .integer(Int64(difference))
    }

    /// Returns the stored values, exactly as they were written, with the versions that they record.
    fileprivate func recorded(in connection: Connection) throws -> [(value: Value, version: SchemaVersion?)] {
        var found: [(Value, SchemaVersion?)] = []
        try connection.forEachRow(
            SQL(text: "SELECT \(SQL.quoted(column: column)) FROM \(target)\(condition)")
        ) { row in
            let value = row.value(at: 0)
            let version = try RecordedValue(value)?
                .version(.asWritten, offset: offset, of: column, path: connection.path)
            found.append((value, version))
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

    /// Returns the statements that record a version in the row with the current one, or in a new row.
    ///
    /// A constraint's own conflict clause could replace another row, or end the transaction.
    ///
    /// - Parameter others: The values of rows that stay: a table may have a row for each version that was ever reached.
    fileprivate func statements(recording value: Value, keeping others: [Value], addsRow: Bool) -> [String] {
        let kept =
            others.isEmpty
            ? "" : "\(SQL.quoted(column: column)) NOT IN (\(others.map(literal).joined(separator: ", "))) AND "
        let update =
            "UPDATE OR ABORT \(target) SET \(SQL.quoted(identifier: column)) = \(literal(value))"
            // A template or a step may have added the row in the meantime.
            + selection(by: "\(kept)NOT EXISTS (SELECT 1 FROM \(target)\(selection(of: value)))")
        return addsRow ? [update, insertion(of: value, unless: condition)] : [update]
    }

    /// Returns the statement that adds a row with a value.
    ///
    /// - Parameter present: The WHERE clause for rows that make a new row unnecessary.
    fileprivate func insertion(of value: Value, unless present: String) -> String {
        let names = filter.keys.sorted()
        let columns = (names + [column]).map { SQL.quoted(identifier: $0) }.joined(separator: ", ")
        let values = (names.map { SQL.quoted(text: filter[$0] ?? "") } + [literal(value)]).joined(separator: ", ")
        return "INSERT OR ABORT INTO \(target) (\(columns)) SELECT \(values) "
            + "WHERE NOT EXISTS (SELECT 1 FROM \(target)\(present))"
    }

    /// Returns the WHERE clause for the rows with a value.
    fileprivate func selection(of value: Value) -> String {
        selection(by: "\(SQL.quoted(column: column)) = \(literal(value))")
    }

    private func selection(by term: String) -> String {
        condition.isEmpty ? " WHERE \(term)" : "\(condition) AND \(term)"
    }

    /// Returns whether a foreign key references the column.
    fileprivate func isReferenced(in state: DatabaseState) throws -> Bool {
        let (parent, name) = (SQLName(table), SQLName(column))
        let primary = state.table(table)?.columns.primaryKey.map { SQLName($0.name) } ?? []
        for child in state.tables where child.references.contains(parent) {
            for key in try ForeignKeyState.read(table: child.name, from: state.connection)
            where SQLName(key.parent) == parent {
                if key.columns.contains(where: { $0.parent.map { SQLName($0) == name } ?? primary.contains(name) }) {
                    return true
                }
            }
        }
        return false
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
