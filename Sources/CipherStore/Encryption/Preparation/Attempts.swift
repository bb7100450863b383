import CipherSQLite

/// Counts the attempts to convert a file, and gives it its journal mode back after the last.
struct Attempts {
    let paths: DatabasePaths
    let options: EncryptionUpgrade.Options

    /// Counts this attempt, unless there were too many that never ended.
    ///
    /// - Parameter isWriteAheadLog: Whether the file is in WAL mode now.
    func next(isWriteAheadLog: Bool) throws -> AttemptRecord {
        var record = try AttemptRecord.read(paths) ?? AttemptRecord(attempts: 0, wasWriteAheadLog: false)
        if let maximum = options.maximumAttempts, record.attempts >= maximum {
            throw StoreError(
                .repeatedFailure, path: paths.database,
                "a conversion of the file was begun \(record.attempts) times and never ended",
                advice: "run it by hand with the command line, or remove \(FileSystem.split(paths.attempt).name)")
        }
        record.attempts += 1
        record.wasWriteAheadLog = record.wasWriteAheadLog || isWriteAheadLog
        return record
    }

    /// Gives the converted file the journal mode that the app had.
    ///
    /// The file is converted by now, so a failure is told and not thrown; the record stays, for the next launch to try.
    ///
    /// - Parameter key: The key of the file; `nil` for a plaintext one.
    func end(_ record: AttemptRecord, _ key: FileKey?) -> String? {
        if record.wasWriteAheadLog, let reason = Self.restoreWriteAheadLog(paths, key, busyTimeout: options.busyTimeout)
        {
            return "the file is not in WAL mode yet, the next launch tries again: \(reason)"
        }
        do {
            try AttemptRecord.remove(paths)
            return nil
        } catch {
            return "the record of this run could not be removed, the next launch tries again: \(error)"
        }
    }

    /// Puts a file into WAL mode.
    ///
    /// Returns why it could not be done.
    static func restoreWriteAheadLog(_ paths: DatabasePaths, _ key: FileKey?, busyTimeout: Int32) -> String? {
        func journalMode(_ sql: SQL) throws -> String? {
            let connection = try Connection(path: paths.database, mode: .readWrite, busyTimeout: busyTimeout)
            defer { connection.close() }
            if let key { try connection.setKey(key.key, settings: key.settings) }
            connection.distrustSchema()
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
}
