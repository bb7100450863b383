package import CipherSQLite
internal import Foundation

/// Turns a plaintext database into an encrypted one: quiesce, build, prove, swap.
///
/// At every instant the file at the database's name is the whole plaintext database or the whole encrypted one.
package struct EncryptionUpgrade {
    /// What the caller may choose.
    package struct Options: Sendable {
        package var settings = CipherSettings()
        package var collations: [Collation] = []
        package var keepBackup = false
        /// `nil` for as many as it takes.
        package var maximumAttempts: Int?
        /// How long to wait for another process that upgrades in the same folder, in seconds.
        package var lockTimeout: Double = 120
        /// How long to wait for another connection to the same file, in milliseconds.
        package var busyTimeout: Int32 = 5_000
        package var progress: (@Sendable (UpgradeProgress) -> Void)?
        package var cancellation: UpgradeCancellation?

        package init() {}
    }

    let paths: DatabasePaths
    let provider: any KeyProvider
    let options: Options

    package init(path: String, provider: any KeyProvider, options: Options = Options()) throws {
        self.init(try DatabasePaths(path), provider: provider, options: options)
    }

    init(_ paths: DatabasePaths, provider: any KeyProvider, options: Options) {
        self.paths = paths
        self.provider = provider
        self.options = options
    }

    /// Encrypts the file, or finds it encrypted with the provider's key.
    ///
    /// - Throws: ``StoreError``. Until the swap nothing has changed but, at most, a journal that SQLite would have rolled
    ///   back anyway.
    package func run() throws -> EncryptionReport {
        try UpgradeLock.withLock(paths, timeout: options.lockTimeout, cancellation: options.cancellation) {
            let inspector = Inspector(paths, collations: options.collations)
            switch try inspector.surface() {
            case .missing:
                throw StoreError(.missingFile, path: paths.database, "there is no such file", advice: "check the path")
            case .staleSidecar: throw inspector.staleSidecar()
            case .opaque(let hasPlaintextHeader):
                return try confirmEncrypted(inspector, hasPlaintextHeader: hasPlaintextHeader)
            case .empty: return try create()
            case .plaintext: return try encrypt(inspector).report
            }
        }
    }

    /// A file of 0 bytes is a database without tables.
    private func create() throws -> EncryptionReport {
        _ = try FreshDatabase(paths: paths, upgrade: self).publish { connection in
            // Any write makes the file's first page.
            try connection.execute("PRAGMA user_version = 0")
        }
        var report = report(.created)
        report.bytesAfter = try FileSystem.size(paths.database) ?? 0
        return report
    }

    private func confirmEncrypted(_ inspector: Inspector, hasPlaintextHeader: Bool) throws -> EncryptionReport {
        let key = try provider.checkedKey(for: .existing, database: paths.database)
        _ = try unlock(key, inspector, hasPlaintextHeader: hasPlaintextHeader) { _ in }
        var report = report(.alreadyEncrypted)
        report.bytesBefore = try FileSystem.size(paths.database) ?? 0
        report.bytesAfter = report.bytesBefore
        return report
    }

    /// Shows that the key fits an encrypted file, and ends what a run that died after its commit left.
    ///
    /// - Parameter body: Reads facts from the file, before anything is written.
    func unlock<Facts>(
        _ key: CipherKey, _ inspector: Inspector, hasPlaintextHeader: Bool, _ body: (Connection) throws -> Facts
    ) throws -> (FileKey, Facts) {
        func read() throws -> (FileKey, Facts) {
            let found = try inspector.readingEncrypted(
                key: key, settings: options.settings, hasPlaintextHeader: hasPlaintextHeader
            ) { ($1, try body($0)) }
            guard let found else { throw inspector.keyDoesNotFit() }
            return found
        }
        let result: (FileKey, Facts)
        do {
            result = try read()
        } catch let error as StoreError where error.code == .needsRecovery {
            let unlocked = try inspector.fileKey(key, options.settings, hasPlaintextHeader: hasPlaintextHeader)
            try EncryptedRecovery(paths: paths).run(unlocked, inspector: inspector)
            result = try read()
        }
        try finishInterrupted(result.0)
        return result
    }

    private func finishInterrupted(_ unlocked: FileKey) throws {
        if let record = try AttemptRecord.read(paths) { _ = try endAttempt(record, unlocked) }
        try Recovery.sweep(paths)
    }

    /// Encrypts a plaintext file.
    ///
    /// The lock is held.
    func encrypt(_ inspector: Inspector) throws -> (report: EncryptionReport, fileKey: FileKey) {
        let began = Date()
        let observer = UpgradeObserver(
            path: paths.database, report: options.progress, cancellation: options.cancellation)
        let preflight = Preflight(
            paths: paths, settings: options.settings, keepBackup: options.keepBackup, collations: options.collations)
        let status = try preflight.checkFiles()
        try checkSchemaUntouched(preflight, inspector)
        let key = try newFileKey()
        let keys = try UpgradeKeys(key, again: try keyAskedAgain(key), settings: options.settings)
        defer { keys.cancel() }
        try Recovery.sweep(paths)
        let record = try nextAttempt(inspector)

        var report = report(.encrypted)
        report.bytesBefore = status.size + (try FileSystem.size(paths.wal) ?? 0)
        observer.totalBytes = report.bytesBefore
        try observer.begin(.quiescing)
        let fileKey = try holdingSource(record) { hold in
            try hold.checkSchema(preflight)
            let backup = Backup(paths: paths)
            if options.keepBackup { try backup.checkRoomForIt(try hold.file()) }
            let fileKey = try buildAndProve(keys, status, observer, &report)
            try observer.begin(.swapping)
            try swap(hold, status, backup, observer, &report)
            return fileKey
        }
        if let warning = try endAttempt(record, fileKey) { report.warnings.append(warning) }
        observer.finish()
        report.bytesAfter = try FileSystem.size(paths.database) ?? 0
        report.seconds = Date().timeIntervalSince(began)
        report.stageSeconds = Dictionary(
            uniqueKeysWithValues: observer.seconds.map { ($0.key.rawValue, $0.value) })
        return (report, fileKey)
    }

    /// Keeps the backup that is asked for, and puts the copy in the original's place.
    private func swap(
        _ hold: SourceHold, _ status: FileSystem.Status, _ backup: Backup, _ observer: UpgradeObserver,
        _ report: inout EncryptionReport
    ) throws {
        let swap = Swap(paths: paths, status: status)
        let madeBackup = try options.keepBackup && backup.write(try hold.file(), status: status)
        let otherNames: Int
        do {
            report.warnings += try swap.dress()
            try observer.checkCancellation()
            otherNames = try swap.commit(isAtRest: hold.isAtRest)
        } catch {
            // The database lives on and changes, and its old backup would refuse the next run.
            if madeBackup { try FileSystem.removeIfPresent(paths.backup) }
            throw error
        }
        if options.keepBackup { report.backup = paths.backup }
        report.warnings += swap.finish(hold, otherNames: otherNames)
    }

    /// Brings the source to rest for `body`, and gives it back as it was when `body` throws.
    private func holdingSource<Result>(
        _ record: AttemptRecord, _ body: (SourceHold) throws -> Result
    ) throws -> Result {
        var hold: SourceHold?
        do {
            try record.write(paths)
            let opened = try SourceHold(
                paths, wasWriteAheadLog: record.wasWriteAheadLog, busyTimeout: options.busyTimeout,
                collations: options.collations)
            hold = opened
            try opened.settle()
            return try body(opened)
        } catch {
            try Recovery.sweep(paths)
            // Where the journal mode cannot be given back, the record stays for the next launch to do it.
            if hold?.giveBack() != false { try AttemptRecord.remove(paths) }
            throw (error as? DatabaseError).map(typed) ?? error
        }
    }

    /// Builds the copy and shows that it is equal.
    ///
    /// Returns the key of the copy.
    private func buildAndProve(
        _ keys: UpgradeKeys, _ status: FileSystem.Status, _ observer: UpgradeObserver,
        _ report: inout EncryptionReport
    ) throws -> FileKey {
        try observer.begin(.building)
        try FileSystem.createExclusively(paths.copy)
        try FileSystem.setOwner(paths.copy, status.owner, status.group)
        let original = ProofConnection(
            path: paths.database, key: nil, settings: options.settings, collations: options.collations)
        let fileKey = try keys.building.wait()
        try CopyBuilder(
            source: paths.database, copy: paths.copy, key: fileKey.key, settings: fileKey.settings,
            collations: options.collations, header: try FileHeader(DatabaseFile(path: paths.database)),
            observer: observer
        ).build()

        try observer.begin(.proving)
        let sync = BackgroundTask("sync") { [paths] _ in try FileSystem.sync(paths.copy) }
        defer { sync.cancel() }
        // SQLCipher derives the key itself on one worker's connection, as whoever opens the file next will have it do.
        let proof = CopyProof(
            original: original, copy: original.with(paths.copy, key: keys.again),
            copyWithDerivedKey: original.with(paths.copy, key: try keys.proving.wait()), observer: observer)
        let proven = try proof.run()
        try sync.wait()
        report.tables = proven.tables
        report.rows = proven.rows
        return fileKey
    }
}
