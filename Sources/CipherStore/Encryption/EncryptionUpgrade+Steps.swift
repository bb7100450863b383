import CipherSQLite

extension EncryptionUpgrade {
    /// The key for a new file, made now if the provider does so.
    func newFileKey() throws -> CipherKey {
        let key = try provider.checkedKey(for: .createOrExisting, database: paths.database)
        guard options.settings.plaintextHeaderSize == 0 || key.form == .rawWithSalt else {
            throw StoreError(
                .saltMissing, path: paths.database,
                "a file with a readable header does not hold its salt, so the salt must come with the key",
                advice: "give the key as x'96 hex digits', raw key and salt; nothing was changed")
        }
        return key
    }

    /// The key as the provider gives it to whoever opens the file next.
    ///
    /// It must be the same.
    func keyAskedAgain(_ first: CipherKey) throws -> CipherKey {
        let again = try provider.checkedKey(for: .existing, database: paths.database)
        guard again == first else {
            throw StoreError(
                .keyChanged, path: paths.database, "the key provider gave another key when it was asked again",
                advice: "mend the provider: a key that it makes must be stored before it returns; nothing was changed")
        }
        return again
    }

    /// What can be found wrong with the schema before the file is brought to rest.
    func checkSchemaUntouched(_ preflight: Preflight, _ inspector: Inspector) throws {
        guard try inspector.surface() == .plaintext else { return }
        // With a journal to roll back first the file cannot be read yet; the same check follows under the lock.
        _ = try inspector.readingPlaintext { try preflight.checkSchema($0) }
    }

    /// Gives the encrypted file the journal mode that the app had.
    ///
    /// The file is encrypted by now, so a failure is told and not thrown; the record stays, for the next launch to try.
    func endAttempt(_ record: AttemptRecord, _ unlocked: FileKey) throws -> String? {
        if record.wasWriteAheadLog, let reason = restoreWriteAheadLog(unlocked) {
            return "the file is not in WAL mode yet, the next launch tries again: \(reason)"
        }
        try AttemptRecord.remove(paths)
        return nil
    }

    /// Returns why it could not be done.
    private func restoreWriteAheadLog(_ unlocked: FileKey) -> String? {
        func journalMode(_ sql: SQL) throws -> String? {
            let connection = try Connection(
                path: paths.database, mode: .readWrite, key: unlocked.key, settings: unlocked.settings,
                busyTimeout: options.busyTimeout)
            defer { connection.close() }
            return try connection.value(String.self, sql)
        }
        do {
            _ = try journalMode("PRAGMA journal_mode = WAL")
            // SQLite answers `wal` although the header could not be written; only a new connection tells.
            let mode = try journalMode("PRAGMA journal_mode") ?? "none"
            return mode == "wal" ? nil : "the journal mode is \(mode)"
        } catch {
            return "\(error)"
        }
    }

    /// Counts this attempt, unless there were too many that never ended.
    func nextAttempt(_ inspector: Inspector) throws -> AttemptRecord {
        var record = try AttemptRecord.read(paths) ?? AttemptRecord(attempts: 0, wasWriteAheadLog: false)
        if let maximum = options.maximumAttempts, record.attempts >= maximum {
            throw StoreError(
                .repeatedFailure, path: paths.database,
                "the encryption upgrade was begun \(record.attempts) times and never ended",
                advice: "run `cipherstore encrypt` by hand, or remove \(FileSystem.split(paths.attempt).name)")
        }
        record.attempts += 1
        record.wasWriteAheadLog = try record.wasWriteAheadLog || inspector.header().isWriteAheadLog
        return record
    }

    func report(_ outcome: EncryptionReport.Outcome) -> EncryptionReport {
        EncryptionReport(outcome: outcome, path: paths.database, cipherVersion: Engine.current.cipherVersion)
    }

    /// Gives a failure of SQLite its type.
    func typed(_ error: DatabaseError) -> StoreError {
        if error.isInterrupted { return StoreError.cancelled(paths.database) }
        return Inspector(paths).readFailure(error)
    }
}
