internal import CipherErrors
internal import CipherSQLite
package import CipherSystemFiles

/// Counts the attempts to convert a file, and restores its journal mode after the last one.
package struct Attempts {
    package let paths: DatabasePaths
    package let options: ConversionOptions
    /// What is counted.
    private let kind: AttemptRecord.Kind

    package init(paths: DatabasePaths, options: ConversionOptions, kind: AttemptRecord.Kind = .conversion) {
        self.paths = paths
        self.options = options
        self.kind = kind
    }

    /// Counts this attempt, or throws if too many attempts have not finished.
    ///
    /// - Parameters:
    ///   - original: The file that is converted.
    ///   - isWriteAheadLog: Whether the file is in WAL mode now.
    ///   - made: The record of a copy that was made ahead of time; `nil` if there is none.
    /// - Throws: ``StoreError`` with the code `repeatedFailure`.
    package func next(
        _ original: FileIdentity, isWriteAheadLog: Bool, goingOnWith made: AttemptRecord? = nil
    ) throws -> AttemptRecord {
        let last = try AttemptRecord.read(paths)
        let attempts = count(last)
        try check(attempts)
        var record = try AttemptRecord(
            kind, attempts: attempts + 1, wasWriteAheadLog: isWriteAheadLog || last?.wasWriteAheadLog == true,
            original: original.inode)
        if let made { (record.token, record.copy) = (made.token, made.copy) }
        return record
    }

    /// Throws the error that ``next(_:isWriteAheadLog:)`` would throw, and counts nothing.
    package func check() throws { try check(count(AttemptRecord.read(paths))) }

    /// Returns the number of attempts of this kind that did not finish.
    func count(_ last: AttemptRecord?) -> Int { last.map { $0.kind == kind ? $0.attempts : 0 } ?? 0 }

    private func check(_ attempts: Int) throws {
        guard let maximum = options.maximumAttempts, attempts >= maximum else { return }
        let what = kind == .shadow ? "shadow proof" : "conversion"
        let others =
            kind == .conversion
            ? "; for a plaintext file, a store can also set encryption.onRepeatedFailure to \"openPlaintext\" to open it "
                + "as it is, or encryption.when to \"whileOpen\" to encrypt it while the app uses it" : ""
        throw StoreError(
            .repeatedFailure, path: paths.database,
            "the \(what) of the file was started \(attempts == 1 ? "once" : "\(attempts) times") but never finished",
            advice: "run the \(what) from the command line; to allow new attempts, increase encryption.maximumAttempts "
                + "or remove \(paths.attemptName)\(others)")
    }

    /// Preserves the log of a plaintext database, if a copy that an earlier launch left needs it, until the caller
    /// preserves it in another way.
    ///
    /// - Returns: `nil` if there is no such copy.
    package func keepLog() throws -> LogKeeper? {
        guard let record = try AttemptRecord.read(paths), record.progress?.isOfThisStart == true,
            try FileSystem.exists(paths.wal)
        else { return nil }
        return try LogKeeper(paths.database, options)
    }

    /// Restores, after an interrupted run, the journal mode of a plaintext file that is to be opened as it is.
    ///
    /// - Returns: Warnings for the report.
    package func giveBackJournalMode() throws -> [String] {
        guard let record = try AttemptRecord.read(paths), record.wasWriteAheadLog, try !Leftovers.areInUse(paths),
            let reason = Self.restoreWriteAheadLog(paths, nil, busyTimeout: options.busyTimeout)
        else { return [] }
        return ["WAL mode could not be restored (CipherStore will try again at the next launch): \(reason)"]
    }

    /// Removes the temporary files beside the converted file, restores the journal mode that the app had, and removes
    /// the record unless a file was left.
    ///
    /// The file is already converted, so a failure becomes a warning instead of an error. The record stays so that the
    /// next launch tries again.
    ///
    /// - Parameter key: The key of the file; `nil` for a plaintext one.
    /// - Returns: Warnings for the report.
    package func end(_ record: AttemptRecord, _ key: FileKey?) -> [String] {
        let (told, hasEnded) = cleanUp(after: record, key)
        if !hasEnded { try? record.takeBackCount(paths) }
        return told
    }

    private func cleanUp(after record: AttemptRecord, _ key: FileKey?) -> (told: [String], hasEnded: Bool) {
        var told: [String] = []
        do {
            told += try Leftovers.sweep(paths)
            if !record.wasWriteAheadLog {
                try Self.removeSpentJournal(paths, key, busyTimeout: options.busyTimeout)
            } else if let reason = Self.restoreWriteAheadLog(paths, key, busyTimeout: options.busyTimeout) {
                told.append(
                    "WAL mode could not be restored (CipherStore will try again at the next launch): \(reason)")
                return (told, false)
            }
            try AttemptRecord.end(paths, leaving: told)
            return (told, true)
        } catch {
            told.append(
                "temporary files from this run could not be removed (CipherStore will try again at the next launch): "
                    + "\(error)")
            return (told, false)
        }
    }

    /// Removes the temporary files of a run that did not convert the file, and the record unless something is left to
    /// restore or remove, or earlier runs were killed.
    ///
    /// - Parameter isRestored: Whether the file has the journal mode that the app had.
    func abandon(_ record: AttemptRecord, isRestored: Bool) {
        do {
            let told = try Leftovers.sweep(paths)
            if isRestored { return try AttemptRecord.end(paths, leaving: told, killed: record.attempts - 1) }
        } catch {
            // The next launch tries again.
        }
        try? record.takeBackCount(paths)
    }

    /// Removes the journal of a change of the journal mode that was interrupted before it wrote anything to the file.
    ///
    /// SQLite finds that this journal is not hot and leaves it in place. In WAL mode, which uses no journal, the
    /// journal would stay forever.
    private static func removeSpentJournal(
        _ paths: DatabasePaths, _ key: FileKey?, busyTimeout: Duration
    ) throws {
        guard try FileSystem.exists(paths.journal) else { return }
        let connection = try connection(paths, key, busyTimeout: busyTimeout)
        defer { connection.close() }
        let isWriteAheadLog = try connection.transaction(.deferred) {
            // Reading takes a read lock, under which no other connection can leave WAL mode, and rolls back a journal
            // that is still hot.
            try connection.proveReadable()
            guard try connection.value(String.self, "PRAGMA journal_mode") == "wal" else { return false }
            try FileSystem.removeIfPresent(paths.journal)
            return true
        }
        guard !isWriteAheadLog else { return }
        // SQLite itself removes a journal when it changes from PERSIST to DELETE, under a write lock.
        _ = try connection.value(String.self, "PRAGMA journal_mode = PERSIST")
        _ = try connection.value(String.self, "PRAGMA journal_mode = DELETE")
    }

    /// Finishes the cleanup after an interrupted run, for a file that is to stay as it is.
    ///
    /// Returns warnings for the report.
    ///
    /// - Parameter key: The key of the file; `nil` for a plaintext one.
    package func settle(_ key: FileKey?) throws -> [String] {
        guard try !Leftovers.areInUse(paths) else { return [] }
        if let record = try AttemptRecord.read(paths) {
            // Restoring the journal mode merges the log.
            try LostCommits.keep(paths, options.onDamage, timeout: .zero)
            return cleanUp(after: record, key).told
        }
        let told = try Leftovers.sweep(paths)
        try AttemptRecord.end(paths, leaving: told)
        return told
    }

    /// Puts a file into WAL mode, and removes a spent journal.
    ///
    /// Returns the reason if that failed.
    package static func restoreWriteAheadLog(
        _ paths: DatabasePaths, _ key: FileKey?, busyTimeout: Duration
    ) -> String? {
        func journalMode(_ sql: SQL) throws -> String? {
            let connection = try connection(paths, key, busyTimeout: busyTimeout)
            defer { connection.close() }
            return try connection.value(String.self, sql)
        }
        do {
            try removeSpentJournal(paths, key, busyTimeout: busyTimeout)
            _ = try journalMode("PRAGMA journal_mode = WAL")
            // SQLite returns `wal` even if the header could not be written. Only a new connection shows the real mode.
            let mode = try journalMode("PRAGMA journal_mode") ?? "none"
            guard mode == "wal" else { return "the journal mode is \(mode)" }
            // Without this, a power loss may bring back the journal of this change after the record of the change has
            // been removed.
            try FileSystem.syncFolder(of: paths.database)
            return nil
        } catch {
            return "\(error)"
        }
    }

    private static func connection(
        _ paths: DatabasePaths, _ key: FileKey?, busyTimeout: Duration
    ) throws -> Connection {
        try HotJournal.checkRollback(paths, key, timeout: busyTimeout)
        return try ConnectionProfile.plain(.readWrite).with(key).open(paths.database, busyTimeout: busyTimeout)
    }
}
