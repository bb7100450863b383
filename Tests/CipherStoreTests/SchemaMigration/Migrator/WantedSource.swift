internal import CipherHistory
internal import CipherSQLText
internal import CipherSQLite
internal import CipherSchemaMigration
import CipherTestSupport

/// A source that requests the objects of some CREATE statements.
struct WantedSource: SchemaSource {
    var statements: [String]
    var renames = WantedSchema.Renames()
    var inherited: [String: Set<WantedSchema.Property>] = [:]
    var policy = DestructiveChanges.withhold
    /// The app's own steps, which run once.
    var steps: [Plan.Operation] = []

    func plan(for state: DatabaseState) throws -> Plan {
        var wanted = try WantedSchema()
        for (index, sql) in statements.enumerated() { try wanted.add(sql, at: "statement \(index)") }
        wanted.renames = renames
        for (table, properties) in inherited { wanted.inherited[SQLName(table)] = properties }
        let comparison = SchemaComparison(wanted: wanted, policy: policy)
        var plan = Plan(from: state.recorded, to: 25, fingerprint: wanted.fingerprint)
        plan.add(try comparison.changes(for: state))
        if !state.isAdopted { plan.operations += steps }
        return plan
    }
}

extension MigrationFixture {
    /// Migrates to the schema that a source requests.
    @discardableResult
    func launch(_ source: WantedSource, foreignKeys: Bool = false) throws -> MigrationReport {
        try with { connection in
            try connection.execute(SQL(text: "PRAGMA foreign_keys = \(foreignKeys ? "ON" : "OFF")"))
            let report = try SchemaMigrator(version: 25, source: source, policy: source.policy)
                .migrate(connection) { 1 }
            return report
        }
    }

    /// Returns the SQL of the schema by the names of its objects.
    func schema() throws -> [String: String] {
        try with(.readOnly) { connection in
            var texts: [String: String] = [:]
            try connection.forEachRow("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL") { row in
                texts[try row.get(at: 0)] = try row.get(String.self, at: 1)
            }
            return texts
        }
    }

    /// Returns the rows of a query as text.
    func rows(_ sql: String) throws -> [String] {
        try with(.readOnly) { connection in
            var rows: [String] = []
            try connection.forEachRow(SQL(text: sql)) { row in
                rows.append((0..<row.count).map { "\(row.value(at: $0))" }.joined(separator: "|"))
            }
            return rows
        }
    }

    /// Returns everything that SQL can see, as read by the tests' own code.
    func dump() throws -> DatabaseDump {
        try with(.readOnly) { try DatabaseDump($0) }
    }
}

extension MigrationReport {
    /// Returns the kinds and subjects of the applied changes, without the record of the version.
    var titles: [String] { applied.filter { $0.kind != .stamp }.map(\.title) }
}

extension SchemaMigrator {
    /// Returns a migrator to a version with the given source.
    init(version: SchemaVersion, source: any SchemaSource, policy: DestructiveChanges = .withhold) {
        var goal = SchemaGoal(version: version)
        goal.destructiveChanges = policy
        self.init(goal: goal, source: source)
    }
}
