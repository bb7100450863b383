internal import CipherErrors
internal import CipherSQLText
internal import CipherSQLite
package import CipherSchemaMigration

/// The source of an app that records a version for each of its tables.
///
/// A table is compared with the database itself, whatever its recorded version, so that the work of a failed upgrade is
/// completed. The version protects against an older app, and is updated in the app's own table. Tables that the app
/// does not name are left unchanged.
package struct TableVersionsSource: SchemaSource {
    private let tables: [VersionedTable]
    private let goal: SchemaGoal

    package init(_ tables: [VersionedTable], goal: SchemaGoal) {
        self.tables = tables
        self.goal = goal
    }

    package func plan(for state: DatabaseState) throws -> Plan {
        let record = try TableVersionRecord(in: state, of: tables)
        try checkVersions(record, state)
        var wanted = try wantedSchema()
        var plan = Plan(from: state.recorded, to: goal.version, fingerprint: fingerprint(wanted))
        let leftovers = try LeftoverTables(tables: tables, record: record, wanted: wanted, state: state)
        for (table, leftover) in leftovers.taken { wanted.renames.tables[SQLName(table)] = leftover }
        for kept in leftovers.keptReferences {
            try wanted.keepReference(of: kept.table, SQLName(kept.column), to: kept.leftover)
        }
        let vanished = try VanishedTable(
            LeftoverTables.commonName, wanted: wanted, state: leftovers.state, extensions: goal.extensions)
        plan.operations += leftovers.before + vanished.before
        // An app may have made its own record with other columns and constraints.
        if record.isThere { wanted.leaveOut(TableVersionRecord.table) }
        let comparison = SchemaComparison(
            wanted: wanted, policy: goal.destructiveChanges, unnamedTables: .keep, rowsFollow: true)
        plan.add(try comparison.changes(for: vanished.state))
        plan.operations += leftovers.after + vanished.after
        plan.findings += vanished.findings
        plan.withheld += leftovers.withheld
        plan.operations += tables.compactMap(record.operation)
        return plan
    }

    private func checkVersions(_ record: TableVersionRecord, _ state: DatabaseState) throws {
        for table in tables {
            guard let found = record.version(of: table.name), found > table.version else { continue }
            throw StoreError.downgrade(
                state.connection.path,
                "the table \(table.name) has version \(TableVersionRecord.literal(found)), but this app supports "
                    + "versions up to "
                    + TableVersionRecord.literal(table.version))
        }
    }

    private func wantedSchema() throws -> WantedSchema {
        var wanted = try WantedSchema(extensions: goal.extensions)
        wanted.renames.origin = .tableVersions
        try wanted.add(TableVersionRecord.createSQL, at: "tableVersions")
        for table in tables {
            let place = "tableVersions.\(table.name)"
            try wanted.add(table.createSQL, at: place)
            guard wanted.tables.last.map({ SQLName($0.name) }) == SQLName(table.name) else {
                throw StoreError(
                    .configuration, "\(place).sql does not create the table \(table.name)",
                    advice: "use the CREATE TABLE statement of \(table.name)", changed: .nothing)
            }
            wanted.inherited[SQLName(table.name)] = table.inherited
            for (new, old) in table.renamedColumns {
                wanted.renames.columns[SQLName(table.name), default: [:]][SQLName(new)] = old
            }
        }
        // The triggers follow after the tables, because a trigger may name any table.
        for table in tables {
            for (index, sql) in table.indexes.enumerated() {
                try wanted.add(sql, at: "tableVersions.\(table.name).indexes[\(index)]")
            }
            for (index, sql) in table.triggers.enumerated() {
                try wanted.add(sql, at: "tableVersions.\(table.name).triggers[\(index)]")
            }
        }
        return wanted
    }

    private func fingerprint(_ wanted: WantedSchema) -> String {
        var checksum = Checksum()
        checksum.add(wanted.fingerprint)
        for table in tables { checksum.add(TableVersionRecord.literal(table.version)) }
        return checksum.text
    }
}
