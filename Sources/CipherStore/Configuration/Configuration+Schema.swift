internal import CipherDatabaseConversion
internal import CipherPriorSystems
package import CipherSchemaMigration

extension Configuration {
    /// The goal of a schema migration.
    var goal: SchemaGoal {
        var goal = SchemaGoal(version: version)
        goal.recordedVersion = recordedVersion
        goal.destructiveChanges = destructiveChanges
        goal.extensions = extensions
        goal.launch = launch
        return goal
    }

    /// The schema source of the configuration.
    package var schemaSource: any SchemaSource {
        switch schema {
        case .none: UnmanagedSource(version: version)
        case .tables(let tables): DeclaredTablesSource(tables: tables, goal: goal)
        case .steps(let steps): StepsSource(steps, goal: goal)
        case .template(let template): TemplateSource(template, goal: goal)
        case .tableVersions(let tables): TableVersionsSource(tables, goal: goal)
        }
    }

    /// Returns the copy that the app's own upgrade may have left beside the database; `nil` if the app did not upgrade
    /// by making a copy.
    func interruptedCopy(_ paths: DatabasePaths, busyTimeout: Duration) throws -> InterruptedCopy? {
        guard case .template(let template) = schema else { return nil }
        return try InterruptedCopy(
            template, paths, sharesFolder: sharesFolder, recordedVersion: recordedVersion, extensions: extensions,
            busyTimeout: busyTimeout)
    }
}

extension SchemaMigrator {
    /// Creates a migrator whose target is the version and schema of a configuration.
    package init(configuration: Configuration) {
        self.init(
            goal: configuration.goal, source: configuration.schemaSource,
            destructiveSteps: configuration.destructiveSteps, file: configuration.file)
    }
}
