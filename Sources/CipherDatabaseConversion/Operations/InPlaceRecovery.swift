internal import CipherErrors
internal import CipherHistory
package import CipherKeyProviders
package import CipherSQLite
internal import CipherSQLiteFormat
internal import CipherSystemFiles

/// Replaces a damaged database with what it still contains, and keeps the damaged one next to it.
///
/// The damaged file is never opened by SQLite and never written to. The new one is built and proven as in
/// ``DatabaseRecovery``, and is renamed into place as the copy of an encryption is: at every instant, the file at the
/// database's name is the whole damaged database or the whole recovered one. In the second case, the damaged file
/// already has its other name.
package struct InPlaceRecovery {
    private let paths: DatabasePaths
    private let provider: any KeyProvider
    private let formats: [CipherSettings]
    private let template: String?
    private let options: ConversionOptions
    /// Creates the schema in an empty database, in place of a template; `nil` if no schema is known.
    package var makeSchema: ((Connection) throws -> Void)?

    /// The error because of which the recovery was started, which may have a cause other than damage; `nil` if a
    /// recovery was requested.
    var cause: (any Error)?
    /// Whether the new database has the cipher format of the damaged one, if that can be written.
    package var keepsFormat = false
    /// Whether the damaged database may be unencrypted as far as the caller knows, so that the report need not say so.
    package var expectsPlaintext = false

    /// The result of a recovery.
    package struct Found {
        /// Whether the damaged database is not encrypted.
        package let wasPlaintext: Bool
        fileprivate let report: RecoveryReport

        /// The detail for the history table, for users who did not see the report because the launch failed after the
        /// swap.
        package var detail: String {
            let kept = "kept as \(FileSystem.split(report.source).name)"
            guard !report.complete else { return kept }
            let lacking = report.tables.filter { !$0.lostPages.isEmpty }.map(\.name)
            return kept + "; rows may be missing" + (lacking.isEmpty ? "" : " from \(lacking.joined(separator: ", "))")
        }
    }

    /// Changes the new database before it replaces the damaged one.
    package typealias Finishing = (_ recovered: Connection, _ found: Found) throws -> Void

    /// - Parameters:
    ///   - provider: Provides the key of the damaged database, if it is encrypted, and of the new one.
    ///   - formats: The cipher settings that the caller named for the damaged database. Without them, settings with an
    ///     HMAC are found.
    ///   - template: A healthy database with the same schema; `nil` for none.
    ///   - options: The options of the run. Its format is that of the new database.
    package init(
        of paths: DatabasePaths, provider: any KeyProvider, formats: [CipherSettings], template: String? = nil,
        options: ConversionOptions
    ) {
        self.paths = paths
        self.provider = provider
        self.formats = formats
        self.template = template
        self.options = options
    }

    /// Recovers the database under the upgrade lock, or leaves the file as it is if nothing is damaged.
    ///
    /// - Parameter check: A closure that throws to refuse the recovered database.
    /// - Throws: The same errors as ``run(finishing:)``.
    package func runLocked(checking check: Finishing? = nil) throws -> RecoveryReport {
        if let status = try paths.status() { try FileSystem.checkRegular(status, paths.database) }
        try paths.checkInputs(of: provider)
        if let template { try paths.checkInputs([template]) }
        return try UpgradeLock.withLock(
            paths, timeout: options.upgradeTimeout, cancellation: options.cancellation
        ) {
            try Leftovers.putBackSidecars(paths)
            return try StoreError.typing(paths.database, during: .conversion) {
                if let sound = try soundReport() { return sound }
                let (report, _) = try run {
                    try check?($0, $1)
                    try Self.stamp($0, $1)
                }
                guard var recovery = report.recovery else { throw nothingTold }
                recovery.notes += report.warnings
                return recovery
            }
        }
    }

    /// Returns the report on a database that needs no recovery: every page of every tree is undamaged, and SQLite finds
    /// nothing wrong.
    ///
    /// Returns `nil` for any other database.
    ///
    /// - Throws: ``StoreError`` if SQLite does not read a database of which no page is damaged, for a reason other than
    ///   damage.
    private func soundReport() throws -> RecoveryReport? {
        let recovery = recovery()
        let opened = try open(recovery)
        let observer = UpgradeObserver(path: paths.database, report: nil, cancellation: options.cancellation)
        guard opened.damaged.header != nil, !opened.damaged.hasForeignSidecar, !opened.damaged.hasDamagedSidecar,
            !opened.damaged.hasDamagedMagic, try recovery.survey(opened, observer).isSound()
        else { return nil }
        let formats = opened.damaged.format.map { [$0] } ?? []
        do {
            let found = try Verification.run(
                at: paths, provider: provider, formats: formats, extensions: options.extensions,
                busyTimeout: options.busyTimeout)
            guard found.isSound else { return nil }
            let notes = opened.damaged.notes.filter { $0 == DamagedSource.notEncrypted }
            return RecoveryReport(
                sound: paths.database, bytes: opened.bytes, notes: try notes + settle(formats) + found.warnings)
        } catch let error as StoreError where error.code == .corrupt {
            return nil
        }
    }

    /// Finishes or removes what an interrupted run left beside an undamaged file.
    ///
    /// - Returns: Warnings for the report.
    private func settle(_ formats: [CipherSettings]) throws -> [String] {
        guard try FileSystem.exists(paths.attempt) else { return [] }
        let inspector = options.inspector(paths)
        var key: FileKey?
        if case .opaque(let hasPlaintextHeader) = try inspector.surface() {
            key = try FileUnlocking(paths, provider: provider, formats: formats)
                .run(inspector, hasPlaintextHeader: hasPlaintextHeader) { _, _ in }.file.fileKey
        }
        return try Attempts(paths: paths, options: options).settle(key)
    }

    /// Records the recovery in the database's history, if it has one.
    static func stamp(_ recovered: Connection, _ found: Found) throws {
        guard try HistoryTable.stamp(recovered) != nil else { return }
        try HistoryTable.append(.recovered, detail: found.detail, in: recovered)
    }

    /// Recovers the database.
    ///
    /// The caller holds the upgrade lock.
    ///
    /// - Throws: ``StoreError``, with the code `keyDoesNotFit` if the key opens no page of the file, `corrupt` if no
    ///   table definition can be read, `noSpace` or `busy`; any error thrown by `finishing`. In these cases the damaged
    ///   file still has its name, its log and its journal.
    package func run(finishing: Finishing) throws -> (report: EncryptionReport, fileKey: FileKey) {
        let began = ContinuousClock.now
        let observer = UpgradeObserver(
            path: paths.database, report: options.progress, cancellation: options.cancellation)
        let folder = try paths.openFolder()
        let status = try Preflight(paths: paths, settings: options.format, keepBackup: false).checkFiles(folder)
        try options.inspector(paths).checkSidecarNames(isConverting: true)
        let original = OriginalFile(paths.database, status)
        var report = EncryptionReport(.recovered, path: paths.database)
        let ownership = try observer.locating {
            try observer.begin(.quiescing)
            return try SoleOwnership.find(original, timeout: options.busyTimeout, checking: observer.checkCancellation)
        }
        report.warnings += try Leftovers.sweep(paths)
        let (record, fileKey) = try observer.locating {
            let made = try make(folder, status, original, observer, finishing, &report)
            let (record, earlier, fileKey) = (made.record, made.earlier, made.fileKey)
            do {
                try swap(made, status, original, ownership, observer, &report)
            } catch {
                undo(record, earlier)
                throw error
            }
            return (record, fileKey)
        }
        report.warnings += Attempts(paths: paths, options: options).end(record, fileKey).filter {
            !report.warnings.contains($0)
        }
        observer.finish()
        report.seconds = (ContinuousClock.now - began).inSeconds
        report.stageSeconds = observer.secondsByName
        report.recovery?.seconds = report.seconds
        return (report, fileKey)
    }

    // MARK: The new database

    /// The new database, proven and finished, and the state needed to put it in place.
    private struct Made: ~Copyable {
        let proven: ProvenFile
        let fileKey: FileKey
        let record: AttemptRecord
        /// The record of an interrupted run.
        let earlier: AttemptRecord?
        let kept: DamagedOriginal
        /// A write lock on the damaged file.
        ///
        /// Nothing else in this process has the file open.
        let lock: DatabaseFile
        let state: OriginalFile.State
        let marks: FileMarks
        let wasPlaintext: Bool
    }

    private func make(
        _ folder: Folder, _ status: FileSystem.Status, _ original: OriginalFile, _ observer: UpgradeObserver,
        _ finishing: Finishing, _ report: inout EncryptionReport
    ) throws -> Made {
        let lock = try DatabaseFile(path: paths.database, access: .readWrite)
        // Nothing else in this process has the file open, so the open file must be this descriptor's.
        guard original.isOpenHere() else { throw original.replaced() }
        guard lock.reserve(timeout: options.busyTimeout) else { throw FileUsers.others([]).busy(paths.database) }
        let state = try original.state(start: lock.read(at: 0, count: OriginalFile.State.length))
        let recovery = recovery()
        let opened = try open(recovery)
        try checkDamage(recovery, opened, observer)
        let keys = try recovery.keys(opened.newFormat)
        defer { keys.cancel() }
        let isWriteAheadLog = try opened.damaged.header?.isWriteAheadLog ?? FileSystem.exists(paths.wal)
        let earlier = try AttemptRecord.read(paths)
        var record = try Attempts(paths: paths, options: options).next(
            status.identity, isWriteAheadLog: isWriteAheadLog)
        do {
            try record.write(folder, paths, owner: status)
            let kept = try DamagedOriginal.keep(paths, folder, status.identity, &record)
            let copy = try record.makeCopy(folder, paths)
            try copy.setOwner(status.owner, status.group)
            let filled = try recovery.fill(copy, opened, keys, observer)
            var recovered = filled.report
            guard !recovered.tables.isEmpty else { throw nothingTold }
            recovered.source = kept.path
            let fileKey = try keys.building.wait()
            let found = Found(wasPlaintext: opened.damaged.isPlaintext, report: recovered)
            try observer.begin(.migrating)
            try ReadBack(paths: paths, copy: copy, key: fileKey).lending { try finishing($0, found) }
            _ = try options.waiting(for: provider).keyAskedAgain(keys.again, database: paths.database)
            recovered.bytesAfter = try copy.size()
            report.tables = recovered.tables.count
            report.rows = Int64(recovered.rows)
            report.bytesBefore = recovered.bytesBefore
            report.bytesAfter = recovered.bytesAfter
            report.recovery = recovered
            return Made(
                proven: filled.proven, fileKey: fileKey, record: record, earlier: earlier, kept: kept, lock: lock,
                state: state,
                marks: opened.marks, wasPlaintext: found.wasPlaintext)
        } catch {
            undo(record, earlier)
            throw error
        }
    }

    /// Opens the damaged file.
    ///
    /// - Throws: ``StoreError`` with the code `keyDoesNotFit` for a file that may be encrypted although its page 1 is
    ///   not, or with settings that the app would have to set itself and that a new database would not have.
    private func open(_ recovery: DatabaseRecovery) throws -> DatabaseRecovery.Opened {
        let opened = try recovery.open()
        guard !opened.damaged.mayBeEncrypted else {
            throw StoreError(
                .keyDoesNotFit, path: paths.database,
                DamagedSource.replacedFirstPage + ", and the key does not open the other pages",
                advice: "check the key; to use a salt that is no longer in the file, pass the raw key followed by the "
                    + "salt, as x'…' with 96 hex digits; to keep what page 1 contains, recover into a new file",
                changed: .nothing)
        }
        guard opened.damaged.isPlaintext || opened.damaged.format != nil else {
            throw StoreError(
                .keyDoesNotFit, path: paths.database,
                "the key is correct, but the file has cipher settings that CipherStore does not write",
                advice: "run cipherstore diagnose, or call DatabaseConverter.diagnose, to find these settings; if the "
                    + "file is damaged, recover it into a new file", changed: .nothing)
        }
        return opened
    }

    /// Refuses a file without damage: one with a newer format or another database's log and, if no recovery was
    /// requested, any other.
    private func checkDamage(
        _ recovery: DatabaseRecovery, _ opened: DatabaseRecovery.Opened, _ observer: UpgradeObserver
    ) throws {
        if let header = opened.damaged.header, header.readVersion > 2 {
            throw StoreError(
                .engineTooOld, path: paths.database,
                "the version of the file format is \(header.readVersion), but SQLite \(Engine.current.sqliteVersion) "
                    + "supports only versions 1 and 2",
                advice: "link a newer SQLCipher; if the version number is damaged, recover into a new file",
                changed: .nothing)
        }
        guard opened.damaged.hasForeignSidecar || cause != nil else { return }
        let survey = try recovery.survey(opened, observer)
        if opened.damaged.hasForeignSidecar, try survey.isSound() { throw Inspector(paths).staleSidecar() }
        guard let cause, !opened.damaged.hasDamagedSidecar, !opened.damaged.hasDamagedMagic, try !survey.hasDamage()
        else { return }
        if let rejected = survey.rejected {
            throw StoreError(
                .corrupt, path: paths.database,
                "the definition of \(rejected.definition) could not be read (\(rejected.reason)), although no page is "
                    + "damaged: a newer version of SQLite may have written the definition",
                advice: "link a newer SQLCipher, or \(StoreError.damageAdvice)", changed: .nothing)
        }
        // CipherStore itself found what is wrong, such as hidden rows, or SQLite found rows that a damaged UNIQUE index
        // has let in. Anything else that SQLite reports of undamaged pages may have another cause.
        guard let cause = cause as? StoreError, cause.code == .corrupt,
            cause.underlying?.isConstraintViolation ?? true
        else { throw cause }
    }

    private func recovery() -> DatabaseRecovery {
        var recovery = DatabaseRecovery(
            inPlaceOf: paths, provider: provider, formats: formats, template: template, options: options)
        recovery.makeSchema = makeSchema
        recovery.keepsFormat = keepsFormat
        recovery.expectsPlaintext = expectsPlaintext
        return recovery
    }

    private var nothingTold: StoreError {
        StoreError(
            .corrupt, path: paths.database,
            "no table definition could be read, so no row can be assigned to its table",
            advice: "run cipherstore recover with --config or --template, or call "
                + "EncryptedStore.recover(_:to:configuration:keyProvider:), which takes the schema from the configuration",
            changed: .nothing)
    }

    // MARK: The swap

    private func swap(
        _ made: consuming Made, _ status: FileSystem.Status, _ original: OriginalFile, _ ownership: SoleOwnership,
        _ observer: UpgradeObserver, _ report: inout EncryptionReport
    ) throws {
        try observer.begin(.swapping)
        let (kept, marks, wasPlaintext) = (made.kept, made.marks, made.wasPlaintext)
        let (lock, state) = (made.lock, made.state)
        let name = made.record.copyName(paths)
        let swap = Swap(paths, made.proven, named: name, original: status.identity)
        report.warnings += try swap.applyMetadata()
        try observer.checkCancellation()
        let old = try ReplacedFile(
            paths, original, ownership, reserved: lock, state: state, timeout: options.busyTimeout,
            checking: observer.checkCancellation)
        // A program that wrote only to the log has not changed the database file, so the sidecars are checked too.
        try marks.check(paths)
        try kept.takeSidecars()
        let swapped = try swap.commit(old)
        let readable = wasPlaintext ? "; it is in plaintext, so delete it once you know that nothing is missing" : ""
        report.warnings.append("the damaged database is kept as \(SystemPath.printable(kept.path))\(readable)")
        report.warnings += swapped.finish(isKept: true)
    }

    /// Leaves the damaged file as it was.
    ///
    /// If an earlier run left WAL mode, the record stays, because only a conversion or an opening restores the mode.
    private func undo(_ record: AttemptRecord, _ earlier: AttemptRecord?) {
        Attempts(paths: paths, options: options).abandon(record, isRestored: earlier?.wasWriteAheadLog != true)
    }
}
