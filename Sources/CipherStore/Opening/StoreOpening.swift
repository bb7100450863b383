package import CipherDatabaseConversion
internal import CipherErrors
internal import CipherHistory
package import CipherKeyProviders
internal import CipherPriorSystems
internal import CipherSQLite
package import CipherSchemaMigration
internal import CipherSystemFiles

/// The complete opening of one database: inspect it, decide, encrypt it if it is a legacy file, and migrate the schema.
///
/// The complete opening holds the upgrade lock. If two processes launch together, one does the work and the other finds
/// it done.
package struct StoreOpening {
    let configuration: Configuration
    package let paths: DatabasePaths
    let provider: any KeyProvider
    let options: ConversionOptions
    private let mayCreate: Bool
    /// Whether a legacy file may be opened as it is and encrypted while it is open.
    var mayEncryptLater = false
    /// Other input files of the run, such as the configuration file.
    private let inputFiles: [String]

    /// The path of the database, with symbolic links resolved.
    package var path: String { paths.database }

    /// The result of opening.
    package struct Opened: Sendable {
        /// The path of the database, with symbolic links resolved.
        package let path: String
        /// The key derived for this file; `nil` for a plaintext file.
        package let fileKey: FileKey?
        package fileprivate(set) var report: OpenReport
        /// Whether this is a legacy file that will be encrypted while it is open.
        fileprivate(set) var isEncryptedLater = false
        /// Preserves the write-ahead log until the encryption continues from what an earlier launch left; otherwise
        /// `nil`.
        fileprivate(set) var logKeeper: LogKeeper?
    }

    /// - Parameter mayCreate: Whether a database is created if there is no file.
    package init(
        configuration: Configuration, directory: String, provider: any KeyProvider,
        options: ConversionOptions = ConversionOptions(), mayCreate: Bool = true,
        inputFiles: [String] = []
    ) throws {
        try self.init(
            configuration, DatabasePaths(directory + "/" + configuration.checkedName()), provider, options,
            mayCreate: mayCreate, inputFiles: inputFiles)
    }

    private init(
        _ configuration: Configuration, _ paths: DatabasePaths, _ provider: any KeyProvider,
        _ options: ConversionOptions, mayCreate: Bool, inputFiles: [String] = []
    ) throws {
        self.configuration = configuration
        self.paths = paths
        self.mayCreate = mayCreate
        self.inputFiles = inputFiles
        self.provider = options.waiting(for: provider)
        for format in configuration.encryption.formats {
            guard let fault = format.fault() else { continue }
            throw StoreError.cipherFormat("\(fault)", path: nil)
        }
        var options = options
        options.format = configuration.encryption.format
        options.extensions = configuration.extensions
        options.keepBackup = configuration.encryption.keepBackup
        options.onDamage = configuration.encryption.onDamage
        options.maximumAttempts = configuration.encryption.maximumAttempts
        self.options = options
    }

    /// Creates the opening of one existing file, whatever file name the configuration has.
    package init(
        configuration: Configuration, at paths: DatabasePaths, provider: any KeyProvider,
        options: ConversionOptions
    ) throws {
        var configuration = configuration
        configuration.databaseName = FileSystem.split(paths.database).name
        try self.init(configuration, paths, provider, options, mayCreate: false)
    }

    package func run() throws -> Opened { try run { $0 } }

    /// Runs, and passes the result to `body` while the upgrade lock is still held.
    ///
    /// Until a connection is open, another process could take the lock and change the key. A connection with the old
    /// key would then destroy the `-wal` of the new file.
    package func run<Result>(_ body: (Opened) throws -> Result) throws -> Result {
        try typing { try runLocked(body) }
    }

    private func runLocked<Result>(_ body: (Opened) throws -> Result) throws -> Result {
        try checkInputs()
        return try UpgradeLock.withLock(paths, timeout: options.upgradeTimeout, cancellation: options.cancellation) {
            try Leftovers.putBackSidecars(paths)
            guard let interrupted = try configuration.interruptedCopy(paths, busyTimeout: options.busyTimeout) else {
                return try body(open())
            }
            var warnings: [String] = []
            switch try interrupted.finding(Inspector(paths).surface()) {
            case .database: break
            case .copy:
                try checkTakingOver()
                warnings += try interrupted.takeOver(options.onDamage)
            case .log: warnings.append(try interrupted.takeLog())
            }
            let opened = try open()
            if let told = try interrupted.sweep({ try connect(opened.fileKey) }) { warnings.append(told) }
            var told = opened
            told.report = warnings.reduce(opened.report) { $0.warning($1) }
            return try body(told)
        }
    }

    func checkInputs() throws {
        try paths.checkInputs(of: provider)
        if case .template(let template) = configuration.schema { try paths.checkInputs([template.file]) }
        try paths.checkInputs(inputFiles)
    }

    /// Checks, before the copy of an interrupted upgrade takes the database's name, that opening would not refuse the
    /// copy and that its key is available if it must be encrypted.
    ///
    /// Only the run that takes over the copy reports the takeover, so that run should not fail afterwards.
    private func checkTakingOver() throws {
        var encrypts = configuration.encryption.isEnabled
        do {
            encrypts = try plan().step == .encrypt
        } catch let error as StoreError where error.code == .needsRecovery {
            // The journal of the copy is rolled back later, and the copy can be read only then.
        }
        if encrypts { _ = try provider.checkedKey(for: .createOrExisting, database: paths.database) }
    }

    private func open() throws -> Opened {
        // A damaged file is recovered only if encryption is on.
        guard configuration.encryption.isEnabled else { return try openAsIs() }
        return try upgrade.recoveringDamage(formats: configuration.encryption.formats, openAsIs, by: recover)
    }

    private func openAsIs() throws -> Opened {
        let inspector = options.inspector(paths)
        let resolved = try resolver.resolve(inspector, rollsBackJournal: true) { connection, facts, file in
            guard facts.surface != .missing || mayCreate else { throw StoreError.missingFile(paths.database) }
            // The step is decided before anything is written: a file that this app may not open stays as it is.
            let step = try resolver.step(for: facts, inspector)
            return (step, try file.flatMap { _ in try emptiness(connection, recorded: facts.recorded) })
        }
        // The log must be kept before any connection can merge it.
        // This does not wait: beside a busy writer, which keeps changing its log, the wait would never end early.
        try LostCommits.keep(paths, options.onDamage, timeout: .zero)
        return try take(resolved, inspector)
    }

    private func take(
        _ resolved: OpeningResolver.Resolved<(StorePlan.Step, String?)>, _ inspector: Inspector
    ) throws -> Opened {
        let (step, note) = resolved.result
        switch step {
        case .create: return try create(isEncrypted: true)
        case .createPlaintext: return try create(isEncrypted: false)
        case .encrypt: return try encrypt(inspector, resolved.facts)
        case .openPlaintext: return try openPlaintextAsConfigured(inspector)
        case .open, .rekey, .decrypt:
            guard let file = resolved.file else { throw inspector.keyDoesNotFit() }
            return try openEncrypted(step, file, resolved.facts, inspector, warnings: note.map { [$0] } ?? [])
        }
    }

    // MARK: Rows of the decision table

    private func encrypt(_ inspector: Inspector, _ facts: Decision.Facts) throws -> Opened {
        // A schema that cannot be reached is refused before anything is changed.
        _ = try inspector.readingPlaintext {
            try SchemaMigrator(configuration: configuration).plan($0, recorded: facts.recorded)
        }
        var warnings: [String]?
        do {
            if mayEncryptLater { return try openToEncryptLater() }
            // If the encryption finds damage first, only the recovery would find that there were too many attempts.
            do {
                try Attempts(paths: paths, options: options).check()
            } catch {
                warnings = cleaningUp { try Leftovers.sweep(paths) }
                throw error
            }
            return try replace(.encrypted, facts) { finishing in
                let (report, fileKey) = try upgrade.encrypt(inspector, finishing: finishing)
                return (report, fileKey)
            }
        } catch let error as StoreError where opensPlaintext(after: error) {
            return try openPlaintext(warnings: (warnings ?? Leftovers.remaining(paths)) + [StoreError.reason(error)])
        }
    }

    /// Opens a legacy file as it is; it is encrypted while it is open.
    private func openToEncryptLater() throws -> Opened {
        let attempts = Attempts(paths: paths, options: options, kind: .lastStep)
        try attempts.check()
        // The log is preserved before any connection is closed, because closing the last one would remove it.
        let keeper = try attempts.keepLog()
        var opened = try openPlaintext(warnings: attempts.giveBackJournalMode() + Leftovers.remaining(paths))
        opened.isEncryptedLater = true
        opened.logKeeper = keeper
        return opened
    }

    /// Whether a legacy file is opened as it is after its encryption failed with this error.
    ///
    /// An app whose file is encrypted while it is open uses the plaintext file anyway.
    func opensPlaintext(after error: StoreError) -> Bool {
        error.code == .repeatedFailure
            && (mayEncryptLater || configuration.encryption.onRepeatedFailure == .openPlaintext)
    }

    /// Builds a database under a temporary name and publishes it complete, at the current version.
    private func create(isEncrypted: Bool) throws -> Opened {
        let fresh = FreshDatabase(paths: paths, upgrade: upgrade, isEncrypted: isEncrypted)
        let (unlocked, report, warnings) = try fresh.publish { connection in
            if !isEncrypted { try stampPlaintext(connection) }
            // If the database is missing but there is a version record beside it, this is not a fresh install.
            return try SchemaMigrator(configuration: configuration).migrate(connection) {
                try configuration.readOwnRecord(from: connection, databasePath: paths.database)
            }
        }
        return Opened(
            path: paths.database, fileKey: unlocked,
            report: OpenReport(
                outcome: .created, encryption: nil, migration: report, warnings: warnings + report.warnings))
    }

    /// Opens the file as it is because encryption is off, after the shadow proof if the configuration requests one.
    private func openPlaintextAsConfigured(_ inspector: Inspector) throws -> Opened {
        guard configuration.encryption.shadow else { return try openPlaintext(warnings: settleAttempts()) }
        let (shadow, warnings) = try proveShadow(inspector)
        var opened = try openPlaintext(warnings: warnings)
        opened.report.shadow = shadow
        return opened
    }

    /// Cleans up after an upgrade or a shadow proof that was interrupted before its flag was turned off.
    ///
    /// - Returns: Warnings to report.
    private func settleAttempts() -> [String] { cleaningUp { try settleAttempts(nil) } }

    /// Returns the warnings of a cleanup; if it fails, the failure becomes a warning.
    private func cleaningUp(_ body: () throws -> [String]) -> [String] {
        do {
            return try body()
        } catch {
            return ["files left behind by an earlier launch could not be removed: \(StoreError.reason(error))"]
        }
    }

    /// Cleans up what an earlier run left beside a file that stays as it is.
    ///
    /// - Returns: Warnings to report.
    func settleAttempts(_ fileKey: FileKey?) throws -> [String] {
        try Attempts(paths: paths, options: options).settle(fileKey)
    }

    /// Proves what encrypting the file would produce.
    ///
    /// No failure here prevents the app from using its database. A proof that a watchdog or a crash ends is counted, so
    /// that it does not repeat forever.
    ///
    /// - Returns: The report of the proof, its warnings, and warnings about files that earlier runs left.
    /// - Throws: ``StoreError`` with the code `cancelled` if the launch itself was canceled.
    private func proveShadow(_ inspector: Inspector) throws -> (LaunchReport, warnings: [String]) {
        let attempts = Attempts(paths: paths, options: options, kind: .shadow)
        var warnings: [String] = []
        do {
            warnings = try Leftovers.sweep(paths)
            let folder = try paths.openFolder()
            let status = try Preflight(
                paths: paths, settings: options.format, keepBackup: false
            ).checkFiles(folder)
            let record = try attempts.next(status.identity, isWriteAheadLog: false)
            try record.write(folder, paths, owner: status)
            let result = Result {
                try ShadowProof(upgrade: upgrade, inspector: inspector).run { _ = try rehearseEncrypted($0) }
            }
            warnings = attempts.end(record, nil)
            let report = try result.get()
            warnings += report.warnings.filter { !warnings.contains($0) }.map { "the shadow proof found: \($0)" }
            return (LaunchReport(shadow: report), warnings)
        } catch let error as StoreError where error.code == .cancelled {
            throw error
        } catch {
            // The report for the statistics has only the error's code.
            warnings.append("the shadow proof failed: \(StoreError.reason(error))")
            return (LaunchReport(shadowError: error), warnings)
        }
    }

    /// Encrypts and migrates a copy of the file, as ``run()`` would with a legacy file, and discards it.
    ///
    /// - Returns: The report of the encryption, and the rehearsed plan; the plan is `nil` if the file is not a
    ///   plaintext database.
    /// - Throws: The same errors as ``run()``.
    package func shadow() throws -> (report: EncryptionReport, schema: Plan?) {
        var schema: Plan?
        let report = try typing { try upgrade.shadow { schema = try rehearseEncrypted($0) } }
        return (report, schema)
    }

    /// Migrates an encrypted copy that will be discarded.
    private func rehearseEncrypted(_ copy: Connection) throws -> Plan {
        try prepare(copy)
        try HistoryTable.append(.encrypted, in: copy)
        return try rehearseSchema(copy)
    }

    /// Opens a plaintext file as it is.
    ///
    /// The stamp is in the migration's transaction: a file that has the new version but no stamp would be refused as
    /// unexpected plaintext at the next launch.
    private func openPlaintext(warnings: [String] = []) throws -> Opened {
        let connection = try connect(nil)
        defer { connection.close() }
        let report = try migrateSchema(connection, finishing: stampPlaintext)
        return Opened(
            path: paths.database, fileKey: nil,
            report: OpenReport(
                outcome: .openedPlaintext, encryption: nil, migration: report, warnings: warnings + report.warnings))
    }

    // MARK: Steps

    var resolver: OpeningResolver {
        OpeningResolver(configuration: configuration, paths: paths, provider: provider, options: options)
    }

    var upgrade: EncryptionUpgrade { EncryptionUpgrade(paths, provider: provider, options: options) }

    /// Replaces the file with a copy that already has the app's schema.
    ///
    /// The copy is migrated after it is verified and before it takes the file's name, so a failed migration leaves the
    /// file as it was.
    ///
    /// - Parameter convert: Builds the copy, passes it to its argument, and swaps.
    func replace(
        _ outcome: OpenReport.Outcome, _ facts: Decision.Facts, warnings: [String] = [],
        by convert: (@escaping (Connection) throws -> Void) throws -> (report: EncryptionReport, fileKey: FileKey?)
    ) throws -> Opened {
        var migration = MigrationReport(from: facts.recorded, to: configuration.version)
        let (report, fileKey) = try convert { copy in
            try prepare(copy)
            switch outcome {
            case .decrypted: try stampPlaintext(copy)
            case .rekeyed: try HistoryTable.append(.rekeyed, in: copy)
            case .recovered: break
            default: try HistoryTable.append(.encrypted, in: copy)
            }
            migration = try migrateSchema(copy)
        }
        return Opened(
            path: paths.database, fileKey: fileKey,
            report: OpenReport(
                outcome: outcome, encryption: report, migration: migration,
                warnings: warnings + report.warnings + migration.warnings))
    }

    func migrate(_ unlocked: FileKey, warnings: [String]) throws -> Opened {
        let connection = try connect(unlocked)
        defer { connection.close() }
        let report = try migrateSchema(connection)
        return Opened(
            path: paths.database, fileKey: unlocked,
            report: OpenReport(
                outcome: .opened, encryption: nil, migration: report,
                warnings: warnings + unlocked.warnings + report.warnings))
    }

    /// Opens a resolved file for writing.
    func connect(_ fileKey: FileKey?) throws -> Connection {
        let connection = try ConnectionProfile.migrating.with(fileKey, configuration.extensions)
            .open(path, busyTimeout: options.busyTimeout)
        if fileKey != nil { try connection.proveReadable() }
        return connection
    }

    private func stampPlaintext(_ connection: Connection) throws {
        guard try !HistoryTable.isStampedPlaintext(connection) else { return }
        try HistoryTable.append(.openedPlaintext, in: connection)
    }

    private func migrateSchema(
        _ connection: Connection, finishing: (Connection) throws -> Void = { _ in }
    ) throws -> MigrationReport {
        try SchemaMigrator(configuration: configuration).migrate(connection, finishing: finishing) {
            try configuration.readRecordedVersion(from: connection, databasePath: paths.database)
        }
    }

    /// Migrates a database that will be discarded, up to the first step written in Swift.
    func rehearseSchema(_ connection: Connection) throws -> Plan {
        try SchemaMigrator(configuration: configuration).rehearse(connection) {
            try configuration.readRecordedVersion(from: connection, databasePath: paths.database)
        }
    }

    /// Converts SQLite's failures to typed errors.
    private func typing<Result>(_ body: () throws -> Result) throws -> Result {
        try StoreError.typing(paths.database, body)
    }

    func prepare(_ connection: Connection) throws {
        try ConnectionProfile.migrating.with(extensions: configuration.extensions).apply(to: connection)
    }
}
