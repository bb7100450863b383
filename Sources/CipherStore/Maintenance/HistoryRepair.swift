internal import CipherDatabaseConversion
internal import CipherErrors
package import CipherHistory
internal import CipherSQLite
internal import CipherSchemaMigration

extension StoreOpening {
    /// Declares that the database's schema is that of a version, without running anything.
    ///
    /// Used for a database that already has its schema but whose version CipherStore has not recorded.
    ///
    /// - Parameter version: The version; the configuration's own by default.
    /// - Throws: The errors with which ``run()`` refuses a file; ``StoreError`` with the code `migration` if a version
    ///   is already recorded, `configuration` for a version later than the configuration's, or `unexpectedPlaintext` if
    ///   the file must be encrypted first.
    package func baseline(at version: SchemaVersion? = nil) throws -> HistoryChange {
        let wanted = configuration.version
        let version = version ?? wanted
        guard version <= wanted else {
            throw StoreError(
                .configuration, path: path,
                "version \(version) cannot be recorded: the configuration supports versions up to \(wanted)",
                advice: "specify version \(wanted) or an earlier version", changed: .nothing)
        }
        return try writing { connection in
            guard try !HistoryTable.isAdopted(connection) else {
                throw StoreError(
                    .migration, path: path, "a version is already recorded in the history",
                    advice: "if the schema no longer matches the recorded schema, use repair", changed: .noRow)
            }
            let recorded = try resolver.recordedVersion(connection)
            try HistoryTable.append(
                .baselined, from: recorded, to: version, record: try record(connection, at: version).json(),
                in: connection)
            if let number = version.wholeNumber {
                try connection.execute(SQL(text: "PRAGMA user_version = \(number)"))
            }
            return HistoryChange(
                path: path, event: .baselined, version: version,
                details: ["the current schema was recorded as the schema of version \(version)"])
        }
    }

    /// Records the present schema and steps again, after the drift was found to be intended, and clears failures of
    /// backfills.
    ///
    /// Writes nothing if there is nothing to repair.
    ///
    /// - Throws: The errors with which ``run()`` refuses a file, such as `downgrade`; ``StoreError`` with the code
    ///   `migration` if no version is recorded, or `unexpectedPlaintext` if the file must be encrypted first.
    package func repair() throws -> HistoryChange {
        try writing { connection in
            guard try HistoryTable.isAdopted(connection) else { throw notAdopted() }
            let records = try VersionRecords(connection)
            let version = records.version ?? .zero
            var details = try accepted(connection)
            let isRecording = !details.isEmpty
            for entry in try BackfillTable.entries(connection) where entry.failure != nil {
                details.append("the recorded failure of the backfill \(entry.name) was cleared")
            }
            guard !details.isEmpty else {
                return HistoryChange(path: path, event: nil, version: version, details: [])
            }
            try BackfillTable.forgetFailures(connection)
            if isRecording {
                try HistoryTable.append(
                    .repaired, from: version, to: version, detail: details.joined(separator: "; "),
                    record: try record(connection, at: version).json(), in: connection)
                if let number = records.userVersionToSet {
                    try connection.execute(SQL(text: "PRAGMA user_version = \(number)"))
                }
            }
            return HistoryChange(path: path, event: isRecording ? .repaired : nil, version: version, details: details)
        }
    }

    /// Returns the differences from the record, as sentences.
    private func accepted(_ connection: Connection) throws -> [String] {
        let hasRecord: Bool
        do {
            hasRecord = try SchemaRecord.latest(connection) != nil
        } catch let error as StoreError where error.code == .migration {
            return [error.detail]
        }
        return hasRecord ? try validation(connection).sentences : ["no schema had been recorded"]
    }

    private func record(_ connection: Connection, at version: SchemaVersion) throws -> SchemaRecord {
        SchemaRecord(
            schema: try SchemaDescription(of: connection),
            steps: try configuration.schemaSource.recordedSteps.filter { $0.version <= version })
    }

    /// Passes `body` a connection in a transaction, with the upgrade lock held.
    private func writing<Result>(_ body: (Connection) throws -> Result) throws -> Result {
        try UpgradeLock.withLock(paths, timeout: options.upgradeTimeout, cancellation: options.cancellation) {
            try Leftovers.putBackSidecars(paths)
            return try StoreError.typing(path) {
                let connection = try openForWriting()
                defer { connection.close() }
                return try connection.transaction(.immediate) { try body(connection) }
            }
        }
    }

    /// Opens for writing a file that opening would open as it is, or after a change of key or format.
    private func openForWriting() throws -> Connection {
        // The result could not name the copies that an opening keeps.
        try LostCommits.keep(paths, .refuse, timeout: .zero)
        let inspector = options.inspector(paths)
        let resolved = try resolver.resolve(inspector, rollsBackJournal: true) { _, facts, _ in
            switch try resolver.step(for: facts, inspector) {
            case .create, .createPlaintext:
                throw StoreError(
                    .missingFile, path: path, "there is no database at this path",
                    advice: "check the folder, or use migrate to create a database")
            case .encrypt:
                throw StoreError(
                    .unexpectedPlaintext, path: path,
                    "the file is plaintext, but encryption is on in the configuration",
                    advice: "encrypt the file first", changed: .noRow)
            case .decrypt: throw resolver.refusal(.encryptionDisabled, facts, inspector)
            case .open, .rekey, .openPlaintext: break
            }
        }
        if let file = resolved.file { _ = try settleAttempts(file.fileKey) }
        return try connect(resolved.file?.fileKey)
    }
}
