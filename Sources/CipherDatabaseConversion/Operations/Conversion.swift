internal import CipherErrors
internal import CipherKeyProviders
internal import CipherSQLite
internal import CipherSystemFiles

/// Encrypts a database file, changes its key or cipher format, or decrypts it: quiesce, build, prove, swap.
///
/// At every instant, the file at the database's name is the whole old database or the whole new one.
struct Conversion {
    let paths: DatabasePaths
    let options: ConversionOptions
    /// The key of the file before the conversion; `nil` for a plaintext file.
    ///
    /// The key has already opened the file.
    let sourceKey: FileKey?
    /// The cipher settings of the converted file; `nil` for a plaintext file.
    let targetSettings: CipherSettings?
    /// Another database to copy instead of the file; `nil` to copy the file itself.
    var replacement: Replacement?
    /// A copy of the file made before the file was brought to rest; `nil` to build the copy after that.
    var madeAhead: (any CopyMadeAhead)?
    /// The provider that must still return the new file's key when the copy is complete; `nil` for a plaintext file,
    /// and if the caller requests the key again just before the conversion.
    var keyProvider: (any KeyProvider)?

    /// A database whose copy takes the place of the file.
    struct Replacement {
        let path: String
        /// The database's key; `nil` for a plaintext database.
        let key: FileKey?
        /// The size in bytes, including the log.
        let size: Int64
    }

    private var making: ProvenCopy {
        ProvenCopy(
            source: replacement?.path ?? paths.database, sourceKey: replacement.map(\.key) ?? sourceKey,
            target: paths.database, targetSettings: targetSettings, options: options)
    }

    /// Converts the file.
    ///
    /// The caller holds the upgrade lock.
    ///
    /// - Parameters:
    ///   - isWriteAheadLog: Whether the file is in WAL mode.
    ///   - targetKeys: Returns the keys of the new file, or `nil` for a plaintext file. Called once the file may be
    ///     converted.
    ///   - finishing: Changes the proven copy before it replaces the original. If it throws, the file stays as it was.
    /// - Throws: ``StoreError``. Until the swap, no row has changed. A journal may have been rolled back and a log
    ///   merged into the file, as SQLite does whenever it opens a file.
    func run(
        _ outcome: EncryptionReport.Outcome, _ inspector: Inspector, isWriteAheadLog: Bool,
        targetKeys: () throws -> UpgradeKeys?, finishing: ((Connection) throws -> Void)? = nil
    ) throws -> (report: EncryptionReport, fileKey: FileKey?) {
        let began = ContinuousClock.now
        let observer = UpgradeObserver(
            path: paths.database, report: options.progress, cancellation: options.cancellation)
        let preflight = Preflight(
            paths: paths, settings: targetSettings, keepBackup: options.keepBackup)
        let folder = try paths.openFolder()
        let status = try preflight.checkFiles(folder, copying: replacement?.size ?? madeAhead.map { _ in 0 })
        try inspector.checkSidecarNames(isConverting: true)
        let identity = OriginalFile(paths.database, status)
        let ownership = try observer.locating {
            try observer.begin(.quiescing)
            return try SoleOwnership.find(
                identity, timeout: options.busyTimeout, checking: observer.checkCancellation)
        }
        if replacement == nil { try lookingAtSource(inspector) { try preflight.checkSchema($0) } }
        // The keys are derived in the background while the log is checked.
        let keys = try targetKeys()
        defer { keys?.cancel() }
        var report = EncryptionReport(outcome, path: paths.database)
        if replacement == nil { try checkLog(inspector) }
        if madeAhead?.record == nil { report.warnings += try Leftovers.sweep(paths) }
        let attempts = Attempts(paths: paths, options: options, kind: madeAhead?.record?.kind ?? .conversion)
        var record = try attempts.next(
            status.identity, isWriteAheadLog: isWriteAheadLog, goingOnWith: madeAhead?.record)

        report.bytesBefore = status.size + (try FileSystem.size(paths.wal) ?? 0)
        observer.totalBytes = replacement?.size ?? report.bytesBefore
        try observer.begin(.quiescing)
        let fileKey = try observer.locating {
            try holdingSource(record, folder, status, identity, ownership) { hold in
                if replacement == nil { try hold.checkSchema(preflight) }
                let made = try makeCopy(&record, folder, hold, status, keys, observer, &report)
                let keepsOriginal = try keepsOriginal(because: made.losses)
                let (copy, key) = (made.proven.file, made.proven.key)
                if let finishing {
                    try observer.begin(.migrating)
                    try ReadBack(paths: paths, copy: copy, key: key).lending(finishing)
                    report.bytesAfter = try copy.size()
                }
                if let keys { _ = try keyProvider?.keyAskedAgain(keys.again, database: paths.database) }
                try observer.begin(.swapping)
                try swap(hold, status, made.proven, record, keepsOriginal: keepsOriginal, observer, &report)
                return key
            }
        }
        report.warnings += attempts.end(record, fileKey).filter { !report.warnings.contains($0) }
        observer.finish()
        report.seconds = (ContinuousClock.now - began).inSeconds
        report.stageSeconds = observer.secondsByName
        return (report, fileKey)
    }

    /// Makes the proven copy, or finishes one that was made ahead of time.
    private func makeCopy(
        _ record: inout AttemptRecord, _ folder: Folder, _ hold: SourceHold, _ status: FileSystem.Status,
        _ keys: UpgradeKeys?, _ observer: UpgradeObserver, _ report: inout EncryptionReport
    ) throws -> ProvenCopy.Made {
        guard let madeAhead else {
            return try making.make(record.makeCopy(folder, paths), keys, owner: status, observer, &report)
        }
        try observer.begin(.building)
        guard let finished = try madeAhead.finish(from: hold.file, observer) else {
            // A page that cannot be opened may be one that no row needs, so the copy is rebuilt from the rows.
            let copy = try madeAhead.takeFile()
            try record.adopt(copy, folder, paths)
            try copy.empty()
            return try making.make(copy, keys, owner: status, observer, &report)
        }
        try record.adopt(finished.proven.file, folder, paths)
        report.tables = finished.tables
        report.rows = finished.rows ?? report.rows
        report.rebuiltIndexes = finished.rebuiltIndexes
        report.warnings += finished.warnings + (finished.proven.key?.warnings ?? [])
        report.bytesAfter = try finished.proven.file.size()
        let losses = finished.losses
        return ProvenCopy.Made(proven: finished.proven, losses: losses)
    }

    /// Refuses a log that damages the file, and keeps one whose commits SQLite does not read, before the file is brought
    /// to rest.
    private func checkLog(_ inspector: Inspector) throws {
        guard try FileSystem.size(paths.wal) ?? 0 > 0 else { return }
        let merged = MergedLogCheck(
            paths: paths, key: sourceKey, extensions: options.extensions, busyTimeout: options.busyTimeout)
        try lookingAtSource(inspector) { try merged.check($0) }
        try LostCommits.keep(paths, options.onDamage, timeout: options.busyTimeout)
    }

    /// Passes `body` a connection to the source before the source is brought to rest.
    private func lookingAtSource(_ inspector: Inspector, _ body: (Connection) throws -> Void) throws {
        if let sourceKey {
            _ = try inspector.readingEncrypted(
                key: sourceKey.key, settings: sourceKey.settings,
                hasPlaintextHeader: sourceKey.settings.plaintextHeaderSize > 0
            ) { connection, _ in try body(connection) }
        } else if try inspector.surface() == .plaintext {
            // If a journal must be rolled back first, the file cannot be read yet, and this does nothing. The schema is
            // checked again under the lock.
            _ = try inspector.readingPlaintext { try body($0) }
        }
    }

    /// Brings the source to rest for `body`, and restores the source's previous state if `body` throws.
    private func holdingSource<Result>(
        _ record: AttemptRecord, _ folder: Folder, _ status: FileSystem.Status, _ identity: OriginalFile,
        _ ownership: SoleOwnership, _ body: (SourceHold) throws -> Result
    ) throws -> Result {
        var hold: SourceHold?
        let earlier = try AttemptRecord.read(paths)
        let hadLog = try FileSystem.size(paths.wal) ?? 0 > 0
        do {
            try record.write(folder, paths, owner: status)
            let opened = try SourceHold(
                paths, identity, ownership, key: sourceKey, wasWriteAheadLog: record.wasWriteAheadLog,
                busyTimeout: options.busyTimeout, extensions: options.extensions)
            hold = opened
            try opened.settle()
            return try body(opened)
        } catch {
            var error = error
            if (error as? StoreError)?.code == .proofFailed, hold?.isChanged == true {
                error = StoreError.busy(
                    paths.database, "another program wrote to the file during the conversion",
                    retry: .afterEndingProgram)
            }
            if hadLog, (try? FileSystem.size(paths.wal)) ?? 0 == 0 {
                error = (error as? StoreError)?.afterMergingLog() ?? error
            }
            // A run that could not open the file leaves WAL mode to the next launch, as an interrupted run does.
            let isRestored = hold?.giveBack() ?? (earlier?.wasWriteAheadLog != true)
            Attempts(paths: paths, options: options).abandon(record, isRestored: isRestored)
            if hold != nil, !isRestored { error = (error as? StoreError)?.afterLeavingWriteAheadLog() ?? error }
            throw (error as? DatabaseError).map { Inspector(paths).readFailure($0, during: .conversion) } ?? error
        }
    }

    /// Returns whether to keep the original because it may contain rows that its copy lacks.
    ///
    /// - Throws: ``StoreError`` with the code `corrupt` if the original is encrypted: a kept original would need the
    ///   retired key.
    private func keepsOriginal(because losses: PossibleLosses) throws -> Bool {
        guard replacement == nil, let first = losses.descriptions.first else { return false }
        guard sourceKey == nil else {
            throw StoreError(
                .corrupt, path: paths.database, first,
                advice: "run cipherstore recover or call DatabaseConverter.recover to see what the file still "
                    + "contains; if nothing is missing, run REINDEX and VACUUM, and try again",
                changed: .nothing)
        }
        if let reason = losses.reasonForRecovery(options.onDamage) {
            throw StoreError.damaged(paths.database, reason)
        }
        return true
    }

    /// Writes the backup if one is needed, and puts the copy in the original's place.
    private func swap(
        _ hold: SourceHold, _ status: FileSystem.Status, _ proven: consuming ProvenFile, _ record: AttemptRecord,
        keepsOriginal: Bool, _ observer: UpgradeObserver, _ report: inout EncryptionReport
    ) throws {
        let folder = proven.file.folder
        let swap = Swap(paths, proven, named: record.copyName(paths), original: status.identity)
        let backup =
            try options.keepBackup || keepsOriginal
            ? Backup(paths: paths).write(
                hold.file, status: status, temporaryName: record.unfinishedBackupName(paths), in: folder) : nil
        let swapped: Swap.Committed
        do {
            report.warnings += try swap.applyMetadata()
            try observer.checkCancellation()
            swapped = try swap.commit(hold.becomeOldFile(checking: observer.checkCancellation))
        } catch {
            // The original stays in use and keeps changing, so its next backup will be different.
            if let backup, backup.isNew { _ = try? folder.removeIfPresent(backup.name) }
            throw error
        }
        if let backup {
            let path = FileName.sibling(backup.name, of: paths.database)
            report.backup = path
            if keepsOriginal {
                report.warnings.append(
                    "the plaintext original is kept as \(path): run cipherstore recover or "
                        + "call DatabaseConverter.recover to see what it still contains, and delete it afterwards")
            }
            report.warnings += backup.earlier.map { "the earlier backup \($0) is kept, and may be plaintext" }
        }
        report.warnings += swapped.finish()
    }
}

extension StoreError {
    /// Returns the error for a file whose log was merged into it, as SQLite does: the damage may have come from the
    /// log.
    fileprivate func afterMergingLog() -> StoreError {
        guard code == .corrupt || code == .proofFailed else { return self }
        var error = self
        if change == .nothing { error.change = .mergedLog }
        return error
    }

    /// Returns the error for a file whose WAL mode could not be restored.
    fileprivate func afterLeavingWriteAheadLog() -> StoreError {
        var error = self
        if change == .nothing { error.change = .noRow }
        return error
    }
}
