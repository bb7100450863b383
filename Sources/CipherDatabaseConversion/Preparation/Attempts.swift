internal import CipherErrors
internal import CipherSQLite
package import CipherSystemFiles

/// Counts the attempts to convert a file, and gives it its journal mode back after the last.
package struct Attempts {
    package let paths: DatabasePaths
    package let options: ConversionOptions

    package init(paths: DatabasePaths, options: ConversionOptions) {
        self.paths = paths
        self.options = options
    }

    /// Counts this attempt, unless there were too many that never ended.
    ///
    /// - Parameters:
    ///   - original: The file that is converted.
    ///   - isWriteAheadLog: Whether the file is in WAL mode now.
    ///   - made: The record of a copy that was made before; `nil` where there is none.
    /// - Throws: ``StoreError`` with `repeatedFailure`.
    package func next(
        _ original: FileIdentity, isWriteAheadLog: Bool, goingOnWith made: AttemptRecord? = nil
    ) throws -> AttemptRecord {
        let last = try last()
        var record = try AttemptRecord(
            attempts: (last?.attempts ?? 0) + 1, wasWriteAheadLog: isWriteAheadLog || last?.wasWriteAheadLog == true,
            original: original.inode)
        if let made { (record.token, record.copy) = (made.token, made.copy) }
        return record
    }

    /// Refuses what ``next(_:isWriteAheadLog:)`` would refuse, and counts nothing.
    package func check() throws { _ = try last() }

    /// The attempt that did not end; `nil` where there was none.
    private func last() throws -> AttemptRecord? {
        let last = try AttemptRecord.read(paths)
        guard let maximum = options.maximumAttempts, let last, last.attempts >= maximum else { return last }
        throw StoreError(
            .repeatedFailure, path: paths.database,
            "a conversion of the file was started \(last.attempts) times and never finished",
            advice: "run it by hand with the command line, or remove \(paths.attemptName)")
    }

    /// Keeps the log of a plaintext database until somebody else does, where a copy that an earlier launch left needs it.
    ///
    /// - Returns: `nil` where there is no such copy.
    package func keepLog() throws -> LogKeeper? {
        guard let record = try AttemptRecord.read(paths), record.progress?.isOfThisStart == true,
            try FileSystem.exists(paths.wal)
        else { return nil }
        return try LogKeeper(paths.database, options)
    }

    /// Gives a plaintext file that is to be opened as it is the journal mode back that a run which died had left.
    ///
    /// - Returns: What is to be told.
    package func giveBackJournalMode() throws -> [String] {
        guard let record = try AttemptRecord.read(paths), record.wasWriteAheadLog, try !Leftovers.areInUse(paths),
            let reason = Self.restoreWriteAheadLog(paths, nil, busyTimeout: options.busyTimeout)
        else { return [] }
        return ["the file is not in WAL mode yet; the next launch tries again: \(reason)"]
    }

    /// Removes what the run made beside the converted file, gives the file the journal mode that the app had, and ends the
    /// record.
    ///
    /// The file is converted by now, so a failure is told and not thrown; the record stays, for the next launch to try.
    ///
    /// - Parameter key: The key of the file; `nil` for a plaintext one.
    /// - Returns: What is to be told.
    package func end(_ record: AttemptRecord, _ key: FileKey?) -> [String] {
        var told: [String] = []
        do {
            told += try Leftovers.sweep(paths)
            try removeSpentJournal(key)
            if record.wasWriteAheadLog,
                let reason = Self.restoreWriteAheadLog(paths, key, busyTimeout: options.busyTimeout)
            {
                return told + ["the file is not in WAL mode yet; the next launch tries again: \(reason)"]
            }
            try AttemptRecord.remove(paths)
        } catch {
            told.append("what this run made could not be removed; the next launch tries again: \(error)")
        }
        return told
    }

    /// Removes the journal of a change of mode that a kill ended before it had written anything to the file.
    ///
    /// SQLite finds it spent and leaves it where it is, for good in WAL mode, in which it uses no journal.
    private func removeSpentJournal(_ key: FileKey?) throws {
        guard try FileSystem.exists(paths.journal) else { return }
        let connection = try Self.connection(paths, key, busyTimeout: options.busyTimeout)
        defer { connection.close() }
        let isWriteAheadLog = try connection.transaction(.deferred) {
            // Takes the lock of a reader, under which no other connection leaves WAL mode, and rolls back what is not spent.
            try connection.proveReadable()
            guard try connection.value(String.self, "PRAGMA journal_mode") == "wal" else { return false }
            try FileSystem.removeIfPresent(paths.journal)
            return true
        }
        guard !isWriteAheadLog else { return }
        // SQLite itself removes a journal on the way from PERSIST to DELETE, under the lock of a writer.
        _ = try connection.value(String.self, "PRAGMA journal_mode = PERSIST")
        _ = try connection.value(String.self, "PRAGMA journal_mode = DELETE")
    }

    /// Ends what a run that died left, where the file is to stay as it is.
    ///
    /// Returns what is to be told.
    ///
    /// - Parameter key: The key of the file; `nil` for a plaintext one.
    package func settle(_ key: FileKey?) throws -> [String] {
        guard try !Leftovers.areInUse(paths) else { return [] }
        if let record = try AttemptRecord.read(paths) { return end(record, key) }
        let told = try Leftovers.sweep(paths)
        try AttemptRecord.remove(paths)
        return told
    }

    /// Puts a file into WAL mode.
    ///
    /// Returns why it could not be done.
    package static func restoreWriteAheadLog(
        _ paths: DatabasePaths, _ key: FileKey?, busyTimeout: Duration
    ) -> String? {
        func journalMode(_ sql: SQL) throws -> String? {
            let connection = try connection(paths, key, busyTimeout: busyTimeout)
            defer { connection.close() }
            return try connection.value(String.self, sql)
        }
        do {
            _ = try journalMode("PRAGMA journal_mode = WAL")
            // SQLite answers `wal` although the header could not be written; only a new connection tells.
            let mode = try journalMode("PRAGMA journal_mode") ?? "none"
            guard mode == "wal" else { return "the journal mode is \(mode)" }
            // A power loss may otherwise bring the journal of this change back, when the record of it is gone already.
            try FileSystem.syncFolder(of: paths.database)
            return nil
        } catch {
            return "\(error)"
        }
    }

    private static func connection(
        _ paths: DatabasePaths, _ key: FileKey?, busyTimeout: Duration
    ) throws -> Connection {
        try ConnectionProfile.plain(.readWrite).with(key).open(paths.database, busyTimeout: busyTimeout)
    }
}
