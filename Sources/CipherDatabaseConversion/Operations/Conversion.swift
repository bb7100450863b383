internal import CipherErrors
internal import CipherSQLite
internal import CipherSystemFiles

/// Gives a database file a key, another key or cipher format, or none: quiesce, build, prove, swap.
///
/// At every instant the file at the database's name is the whole old database or the whole new one.
struct Conversion {
    let paths: DatabasePaths
    let options: ConversionOptions
    /// The key of the file as it is; `nil` for a plaintext one.
    ///
    /// It has been tried.
    let sourceKey: FileKey?
    /// The cipher settings of the file as it is to be; `nil` for a plaintext one.
    let targetSettings: CipherSettings?
    /// Another database that the copy is made of; `nil` for the file itself.
    var replacement: Replacement?
    /// A copy of the file that was made before it is at rest; `nil` for one that is built then.
    var madeAhead: (any CopyMadeAhead)?

    /// A database whose copy takes the place of the file.
    struct Replacement {
        let path: String
        /// `nil` for a plaintext one.
        let key: FileKey?
        /// In bytes, with its log.
        let size: Int64
    }

    private var making: ProvenCopy {
        ProvenCopy(
            source: replacement?.path ?? paths.database, sourceKey: replacement.map(\.key) ?? sourceKey,
            target: paths.database, targetSettings: targetSettings, options: options)
    }

    /// Converts the file.
    ///
    /// The upgrade lock is held.
    ///
    /// - Parameters:
    ///   - isWriteAheadLog: Whether the file is in WAL mode.
    ///   - targetKeys: Gives the keys of the new file, `nil` for a plaintext one. Asked once the file may be converted.
    ///   - finishing: Changes the proven copy before it takes the original's place, so that what fails leaves the file as
    ///     it was.
    /// - Throws: ``StoreError``. Until the swap no row has changed; a journal is rolled back and a log merged into the
    ///   file, as SQLite does at any opening.
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
        // They are derived while the log is looked at.
        let keys = try targetKeys()
        defer { keys?.cancel() }
        if replacement == nil { try checkLog(inspector) }
        var report = EncryptionReport(outcome, path: paths.database)
        if madeAhead?.record == nil { report.warnings += try Leftovers.sweep(paths) }
        let attempts = Attempts(paths: paths, options: options)
        var record = try attempts.next(
            status.identity, isWriteAheadLog: isWriteAheadLog, goingOnWith: madeAhead?.record)

        report.bytesBefore = status.size + (try FileSystem.size(paths.wal) ?? 0)
        observer.totalBytes = replacement?.size ?? report.bytesBefore
        try observer.begin(.quiescing)
        let fileKey = try observer.locating {
            try holdingSource(record, folder, status, identity, ownership) { hold in
                if replacement == nil { try hold.checkSchema(preflight) }
                let (copy, made) = try makeCopy(&record, folder, hold, status, keys, observer, &report)
                let keepsOriginal = try keepsOriginal(without: made.missingRows)
                if let finishing {
                    try observer.begin(.migrating)
                    try ReadBack(paths: paths, copy: copy, key: made.key).lending(finishing)
                    report.bytesAfter = try copy.size()
                }
                try observer.begin(.swapping)
                try swap(hold, status, copy, record, keepsOriginal: keepsOriginal, observer, &report)
                return made.key
            }
        }
        report.warnings += attempts.end(record, fileKey)
        observer.finish()
        report.seconds = (ContinuousClock.now - began).inSeconds
        report.stageSeconds = observer.secondsByName
        return (report, fileKey)
    }

    /// Makes the proven copy, or finishes one that was made ahead.
    private func makeCopy(
        _ record: inout AttemptRecord, _ folder: Folder, _ hold: SourceHold, _ status: FileSystem.Status,
        _ keys: UpgradeKeys?, _ observer: UpgradeObserver, _ report: inout EncryptionReport
    ) throws -> (NewFile, ProvenCopy.Made) {
        guard let madeAhead else {
            let copy = try record.makeCopy(folder, paths)
            return (copy, try making.make(copy, keys, owner: status, observer, &report))
        }
        try observer.begin(.building)
        let finished = try madeAhead.finish(from: hold.file, observer)
        let copy = try madeAhead.takeFile()
        try record.adopt(copy, folder, paths)
        if let finished {
            report.tables = finished.tables
            report.rows = finished.rows ?? report.rows
            report.rebuiltIndexes = finished.rebuiltIndexes
            report.warnings += finished.warnings
            report.bytesAfter = try copy.size()
            return (copy, ProvenCopy.Made(key: finished.key, missingRows: []))
        }
        // A page that cannot be opened may be one that no row depends on.
        try copy.empty()
        return (copy, try making.make(copy, keys, owner: status, observer, &report))
    }

    /// Refuses a log that damages the file, before that is brought to rest.
    private func checkLog(_ inspector: Inspector) throws {
        guard try FileSystem.size(paths.wal) ?? 0 > 0 else { return }
        let merged = MergedLogCheck(
            paths: paths, key: sourceKey, extensions: options.extensions, busyTimeout: options.busyTimeout)
        try lookingAtSource(inspector) { try merged.check($0) }
    }

    /// Lends a connection to the source, before it is brought to rest.
    private func lookingAtSource(_ inspector: Inspector, _ body: (Connection) throws -> Void) throws {
        if let sourceKey {
            _ = try inspector.readingEncrypted(
                key: sourceKey.key, settings: sourceKey.settings,
                hasPlaintextHeader: sourceKey.settings.plaintextHeaderSize > 0
            ) { connection, _ in try body(connection) }
        } else if try inspector.surface() == .plaintext {
            // With a journal to roll back first the file cannot be read yet; the schema is checked under the lock again.
            _ = try inspector.readingPlaintext { try body($0) }
        }
    }

    /// Brings the source to rest for `body`, and gives it back as it was when `body` throws.
    private func holdingSource<Result>(
        _ record: AttemptRecord, _ folder: Folder, _ status: FileSystem.Status, _ identity: OriginalFile,
        _ ownership: SoleOwnership, _ body: (SourceHold) throws -> Result
    ) throws -> Result {
        var hold: SourceHold?
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
                    paths.database, "another program wrote the file during the upgrade", retry: .afterEndingProgram)
            }
            if hadLog, (try? FileSystem.size(paths.wal)) ?? 0 == 0 {
                error = (error as? StoreError)?.afterMergingLog() ?? error
            }
            let isSwept = (try? Leftovers.sweep(paths)) != nil
            // Where something cannot be removed or given back, the record stays for the next launch to do it.
            if hold?.giveBack() != false, isSwept { try? AttemptRecord.remove(paths) }
            throw (error as? DatabaseError).map { Inspector(paths).readFailure($0, during: .conversion) } ?? error
        }
    }

    /// Whether the original is kept for rows that only its indexes name.
    ///
    /// - Throws: ``StoreError`` with `corrupt` if it is encrypted: kept, it would need the key that is retired.
    private func keepsOriginal(without missing: [MissingRows]) throws -> Bool {
        guard replacement == nil, let first = missing.first else { return false }
        guard sourceKey == nil else {
            throw StoreError(
                .corrupt, path: paths.database, first.description,
                advice: "see what the file still contains with cipherstore recover or DatabaseConverter.recover; if "
                    + "nothing is missing, REINDEX it and try again",
                changed: .nothing)
        }
        return true
    }

    /// Keeps the backup that is asked for, and puts the copy in the original's place.
    private func swap(
        _ hold: SourceHold, _ status: FileSystem.Status, _ copy: NewFile, _ record: AttemptRecord, keepsOriginal: Bool,
        _ observer: UpgradeObserver, _ report: inout EncryptionReport
    ) throws {
        let swap = Swap(paths: paths, copy: copy, copyName: record.copyName(paths), original: status.identity)
        let backup =
            try options.keepBackup || keepsOriginal
            ? Backup(paths: paths).write(
                hold.file, status: status, temporaryName: record.unfinishedBackupName(paths), in: copy.folder) : nil
        let old: ReplacedFile
        let otherNames: Int
        do {
            report.warnings += try swap.applyMetadata()
            try observer.checkCancellation()
            old = try hold.becomeOldFile(checking: observer.checkCancellation)
            otherNames = try swap.commit(old)
        } catch {
            // The database lives on and changes, and its next backup is another one.
            if let backup, backup.isNew { _ = try? copy.folder.removeIfPresent(backup.name) }
            throw error
        }
        if let backup {
            let path = FileName.sibling(backup.name, of: paths.database)
            report.backup = path
            if keepsOriginal {
                report.warnings.append(
                    "the original is kept as \(path), in plaintext: cipherstore recover or DatabaseConverter.recover "
                        + "shows what it still contains; then delete it")
            }
            report.warnings += backup.earlier.map { "\($0) existed before and is kept: it may contain plaintext too" }
        }
        report.warnings += swap.finish(old, otherNames: otherNames)
    }
}

extension StoreError {
    /// The same of a file into which its log was brought, as SQLite does: what is wrong may have come from there.
    fileprivate func afterMergingLog() -> StoreError {
        guard code == .corrupt || code == .proofFailed else { return self }
        var error = self
        if change == .nothing { error.change = .mergedLog }
        return error
    }
}
