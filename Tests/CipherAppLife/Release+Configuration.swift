internal import CipherStore
import Foundation

extension Release {
    /// The configuration that the release passes to the store: from its configuration file with the app's flags, or
    /// from Swift.
    func configuration() throws -> Configuration {
        var configuration: Configuration
        if let configurationFile {
            configuration = try Configuration(contentsOf: URL(filePath: configurationFile))
            configuration.encryption.isEnabled = encryption.enabled
        } else {
            configuration = Configuration(
                databaseName: database, version: version, encryption: try encryption.inSwift(),
                recordedVersion: recordedVersion?.inSwift, schema: steps.map { .steps($0.inSwift) } ?? .none)
        }
        configuration.encryption.shadow = encryption.shadow ?? false
        if let install = hooks.firstInstall {
            configuration.launch.firstInstall = { try run(install, $0) }
        }
        if let upgrades = hooks.upgrades {
            configuration.launch.upgrade = { db, from, to in
                for step in upgrades where step.version > from ?? .zero && step.version <= to { try run(step.sql, db) }
            }
        }
        if let unchanged = hooks.unchanged { configuration.launch.unchanged = { try run(unchanged, $0) } }
        if let everyLaunch = hooks.everyLaunch { configuration.launch.everyLaunch = { try run(everyLaunch, $0) } }
        return configuration
    }
}

/// The app's own Swift code, which runs what the description says.
@Sendable private func run(_ statements: [String], _ db: borrowing Connection) throws {
    for statement in statements {
        Death.pass("step")
        try db.executeScript(text: statement)
    }
}

extension Release.Encryption {
    func inSwift() throws -> Configuration.Encryption {
        var made = Configuration.Encryption(
            isEnabled: enabled, sinceVersion: sinceVersion, keepBackup: keepBackup ?? false)
        if let unexpectedPlaintext { made.unexpectedPlaintext = .init(rawValue: unexpectedPlaintext) ?? .refuse }
        if let whenDisabled { made.whenDisabled = .init(rawValue: whenDisabled) ?? .refuse }
        if let maximumAttempts { made.maximumAttempts = maximumAttempts }
        if let onRepeatedFailure { made.onRepeatedFailure = .init(rawValue: onRepeatedFailure) ?? .refuse }
        if let kdfIterations { made.format = CipherSettings(kdfIterations: kdfIterations) }
        return made
    }
}

extension Release.Recorded {
    var inSwift: RecordedVersion {
        if let table, let column {
            return .table(
                .init(table: table, column: column, filter: filter ?? [:], offset: offset ?? 0))
        }
        guard let file else { return .userVersion }
        return .custom { _ in
            guard let text = try? String(contentsOfFile: file, encoding: .utf8) else { return nil }
            return SchemaVersion(text)
        }
    }
}

extension Release.Steps {
    var inSwift: MigrationSteps {
        MigrationSteps(
            numbering: isDotted ? .appVersions : .consecutive, baseline: baseline.work,
            updates: updates.map { .init($0.version, $0.work) }, everyLaunch: everyLaunch)
    }
}

extension Release.Step {
    fileprivate var work: MigrationSteps.Work {
        isSwift ? .swift { try run(sql, $0) } : .sql(sql)
    }
}
