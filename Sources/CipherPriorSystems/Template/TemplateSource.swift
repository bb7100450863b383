internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherHistory
internal import CipherSQLText
internal import CipherSQLite
package import CipherSchemaMigration

/// The source of an app that ships a database with the target schema.
///
/// The template's schema is the target schema. Its rows are added as seeds if a table is new or the version rises, so
/// that a seed that the user deleted does not return at every launch; the user's rows always take precedence.
package struct TemplateSource: SchemaSource {
    private let template: SchemaTemplate
    private let goal: SchemaGoal
    private let database: TemplateDatabase

    package init(_ template: SchemaTemplate, goal: SchemaGoal) {
        self.template = template
        self.goal = goal
        database = TemplateDatabase(path: template.file, extensions: goal.extensions)
    }

    package func plan(for state: DatabaseState) throws -> Plan {
        guard try !DatabasePaths(template.file).database.isSameName(as: state.connection.path) else {
            throw database.failure("the template and the database are the same file")
        }
        let content = try database.content(record: goal.recordedVersion, wanted: version)
        try checkVersion(content)
        let wanted = try wantedSchema(content)
        var plan = Plan(from: state.recorded, to: goal.version, fingerprint: wanted.fingerprint)
        let comparison = SchemaComparison(
            wanted: wanted, policy: goal.destructiveChanges, keptTables: goal.recordedVersion.tables,
            rowsFollow: true)
        plan.add(try comparison.changes(for: state))
        try addSeeds(content, state, &plan)
        // A launch without a migration should not read the whole template.
        if !plan.isEmpty { try database.checkPages() }
        return plan
    }

    // MARK: The template

    private var version: SchemaVersion { goal.version }

    private func checkVersion(_ content: TemplateDatabase.Content) throws {
        guard let found = content.version, found != version else { return }
        throw StoreError(
            .configuration, path: template.file,
            "the template is \(found < version ? "older" : "newer") than the app: it has version \(found), but "
                + "dbVersion is \(goal.version)",
            advice: "ship a template with version \(goal.version)", changed: .nothing)
    }

    private func wantedSchema(_ content: TemplateDatabase.Content) throws -> WantedSchema {
        var wanted = try WantedSchema(extensions: goal.extensions)
        for table in content.tables { try wanted.add(table.sql, at: "\(template.file): \(table.name)") }
        for object in content.objects { try wanted.add(object.sql, at: "\(template.file): \(object.name)") }
        wanted.renames.origin = .template
        for (new, old) in template.renamedTables { wanted.renames.tables[SQLName(new)] = old }
        for (table, names) in template.renamedColumns {
            for (new, old) in names { wanted.renames.columns[SQLName(table), default: [:]][SQLName(new)] = old }
        }
        return wanted
    }

    // MARK: Rows

    /// Adds the seeds, after the tables have their new definitions.
    private func addSeeds(
        _ content: TemplateDatabase.Content, _ state: DatabaseState, _ plan: inout Plan
    ) throws {
        let rises = state.recorded.map { $0 < version } ?? true
        for table in content.tables where table.holdsRows {
            let formerName = template.renamedTables[table.name] ?? table.name
            let isNew = state.table(table.name) == nil && state.table(formerName) == nil
            guard rises || isNew, let seeds = try SeedRows(table.name, of: database, isNew: isNew) else { continue }
            plan.operations.append(seeds.operation)
            if let present = state.table(table.name) ?? state.table(formerName),
                let finding = try seeds.excluded(
                    by: present, state, renamed: template.renamedColumns[table.name] ?? [:])
            {
                plan.findings.append(finding)
            }
        }
    }
}
