internal import CipherErrors
package import CipherKeyProviders
package import CipherSQLite
internal import CipherSystemFiles

/// Replaces a database with a proven copy of a backup, or creates the database from it.
///
/// The backup is checked first, page by page, and is never written to. Its copy is built beside the database with the
/// database's key, is compared with the backup, and replaces the database as in an encryption: at every instant, the
/// file at the database's name is the whole old database or the whole new one.
package struct DatabaseRestore {
    private let upgrade: EncryptionUpgrade
    private let backup: DatabasePaths
    private let backupProvider: any KeyProvider
    private let formats: [CipherSettings]
    private let backupFormats: [CipherSettings]
    private let allowsPlaintext: Bool

    private var paths: DatabasePaths { upgrade.paths }
    private var options: ConversionOptions { upgrade.options }

    /// - Parameters:
    ///   - backup: The backup, encrypted or plaintext.
    ///   - backupProvider: Provides the backup's key; `nil` to use the database's provider.
    ///   - paths: The paths of the database.
    ///   - provider: Provides the key of the database. The new database has the key that this provider returns during
    ///     the restore.
    ///   - formats: The cipher settings that the current database may have, in the order in which they are tried.
    ///   - backupFormats: The cipher settings that the backup may have, in the order in which they are tried.
    ///   - allowsPlaintext: Whether the backup may be plaintext.
    ///   - options: The options of the run. Its format is used if there is no database yet.
    package init(
        of backup: String, backupProvider: (any KeyProvider)?, to paths: DatabasePaths, provider: any KeyProvider,
        formats: [CipherSettings], backupFormats: [CipherSettings], allowsPlaintext: Bool,
        options: ConversionOptions
    ) throws {
        var options = options
        options.keepBackup = false
        options.createsMissingFile = true
        upgrade = EncryptionUpgrade(at: paths, provider: provider, options: options)
        self.backup = try DatabasePaths(backup)
        self.backupProvider = options.waiting(for: backupProvider ?? provider)
        self.formats = formats
        self.backupFormats = backupFormats
        self.allowsPlaintext = allowsPlaintext
    }

    /// Restores the backup.
    ///
    /// - Parameters:
    ///   - check: A closure that throws to refuse a backup.
    ///   - whenProven: A closure that is called after the backup was checked and before it is opened to be copied.
    /// - Throws: ``StoreError``. Until the swap, no row of the database has changed.
    package func run(
        _ check: (Connection) throws -> Void = { _ in }, whenProven: () throws -> Void = {}
    ) throws -> EncryptionReport {
        try checkNames()
        return try options.withLockedFile(paths) { inspector, content in
            let isPlaintext = try proveBackup() == .plaintext
            try whenProven()
            return try readingBackup(check, isPlaintext: isPlaintext) { replacement in
                switch content {
                case .empty: try create(replacement)
                case .plaintext:
                    throw StoreError(
                        .unexpectedPlaintext, path: paths.database,
                        "the database that the backup would replace is not encrypted",
                        advice: "encrypt the database first, or move it elsewhere together with its -wal and -journal",
                        changed: .nothing)
                case .opaque(let hasPlaintextHeader):
                    try replace(by: replacement, inspector, hasPlaintextHeader: hasPlaintextHeader)
                }
            }
        }
    }

    private func checkNames() throws {
        try paths.checkInputs(of: upgrade.provider)
        try paths.checkInputs(of: backupProvider)
        try paths.checkInputs([backup.database])
        guard try FileSystem.exists(backup.database) else { throw StoreError.missingFile(backup.database) }
        guard !SmallFile.isSame(backup.database, paths.database) else {
            throw StoreError(
                .nameTaken, path: backup.database, "the backup and the database are the same file",
                advice: "pass the path of a backup", changed: .nothing)
        }
    }

    // MARK: The backup

    private static let anyonesRows = "the backup is not encrypted, so anyone who can write it may have changed its rows"

    /// Returns what kind of file the backup is.
    private func proveBackup() throws -> FileState {
        let found = try verified()
        if let complaint = found.complaints.first {
            throw StoreError(
                .corrupt, path: backup.database, "the backup is damaged: \(complaint)",
                advice: "restore another backup", changed: .nothing)
        }
        guard found.state != .plaintext || allowsPlaintext else {
            throw StoreError(
                .unexpectedPlaintext, path: backup.database,
                Self.anyonesRows,
                advice: "if you trust the file, use --plaintext-backup, or in Swift allowsPlaintext; for a store, set "
                    + "unexpectedPlaintext to encrypt", changed: .nothing)
        }
        guard found.state != .empty else {
            throw StoreError(
                .corrupt, path: backup.database, "the backup is an empty file", advice: "restore another backup",
                changed: .nothing)
        }
        return found.state
    }

    private func verified() throws -> Verification {
        do {
            return try Verification.run(at: backup, provider: backupProvider, formats: backupFormats)
        } catch let error as StoreError where error.code == .keyDoesNotFit {
            guard case .maybeEncrypted = try options.inspector(backup).content() else { throw error }
            throw StoreError(
                error.code, path: error.path, error.detail,
                advice: "check the backup's key; if it differs from the key of the database, pass it as "
                    + "backupKeyProvider, or with --backup-key-file on the command line",
                changed: .nothing, underlying: error.underlying)
        }
    }

    /// Passes the backup to `body` while a read-only connection is open to it.
    ///
    /// Without that connection, another one could be the last to close, which would merge a log into the file.
    ///
    /// Once the database has been replaced, no error is thrown: the copy was compared with the backup before.
    ///
    /// - Parameter isPlaintext: Whether the backup that was checked is plaintext. Another file may have its name by now:
    ///   the copy proves its content, but only if it is encrypted.
    private func readingBackup(
        _ check: (Connection) throws -> Void, isPlaintext: Bool,
        _ body: (Conversion.Replacement) throws -> EncryptionReport
    ) throws -> EncryptionReport {
        var report: EncryptionReport?
        do {
            try DatabaseReader(options.inspector(backup)).readOpened(provider: backupProvider, formats: backupFormats) {
                snapshot, fileKey in
                guard (fileKey == nil) == isPlaintext else {
                    throw StoreError.busy(
                        backup.database, "the backup was replaced by another file while it was being restored",
                        retry: .now)
                }
                try Preflight.checkSchema(snapshot, backup.database)
                try check(snapshot)
                try snapshot.whileUnchanged(backup, "while the backup was being restored") {
                    report = try body(
                        Conversion.Replacement(
                            path: backup.database, key: fileKey, size: try Connection.size(backup.database)))
                }
            }
        } catch {
            report?.warnings.append("the database was replaced, but the backup could not be read afterwards: \(error)")
            guard report != nil else { throw error }
        }
        guard var report else { throw StoreError.missingFile(backup.database) }
        if isPlaintext { report.warnings.insert(Self.anyonesRows, at: 0) }
        return report
    }

    // MARK: The database

    private func keys(_ settings: CipherSettings) throws -> UpgradeKeys {
        let key = try upgrade.provider.checkedKey(for: .createOrExisting, database: paths.database)
        try key.checkSalt(for: settings, path: paths.database)
        return try UpgradeKeys(key, again: try upgrade.keyAskedAgain(key), settings: settings)
    }

    private func replace(
        by replacement: Conversion.Replacement, _ inspector: Inspector, hasPlaintextHeader: Bool
    ) throws -> EncryptionReport {
        let file = try unlocked(inspector, hasPlaintextHeader: hasPlaintextHeader)
        // The oldest formats can be read but not written.
        let settings = file.fileKey.settings.canBeWritten ? file.fileKey.settings : options.format
        var conversion = Conversion(
            paths: paths, options: options, sourceKey: file.fileKey, targetSettings: settings)
        conversion.replacement = replacement
        conversion.keyProvider = upgrade.provider
        return try conversion.run(
            .restored, inspector, isWriteAheadLog: file.isWriteAheadLog, targetKeys: { try keys(settings) }
        ).report
    }

    /// Opens the current database, which the restore replaces completely.
    private func unlocked(_ inspector: Inspector, hasPlaintextHeader: Bool) throws -> FileUnlocking.Unlocked {
        do {
            return try FileUnlocking(
                paths, provider: upgrade.provider, formats: formats, rollsBackJournal: true
            ).run(inspector, hasPlaintextHeader: hasPlaintextHeader) { _, _ in }.file
        } catch let error as StoreError where [.keyDoesNotFit, .corrupt, .staleSidecar].contains(error.code) {
            throw StoreError(
                error.code, path: error.path, error.detail,
                advice: "check the key; to restore anyway, move the database elsewhere together with its -wal and "
                    + "-journal",
                changed: .nothing, underlying: error.underlying)
        }
    }

    private func create(_ replacement: Conversion.Replacement) throws -> EncryptionReport {
        let began = ContinuousClock.now
        let observer = UpgradeObserver(
            path: paths.database, report: options.progress, cancellation: options.cancellation)
        observer.totalBytes = replacement.size
        try Preflight.checkRoom(for: replacement.size, options.format, paths)
        let keys = try keys(options.format)
        defer { keys.cancel() }
        var report = EncryptionReport(.restored, path: paths.database)
        report.warnings += try FreshDatabase(paths: paths, upgrade: upgrade).place { copy in
            try observer.locating {
                _ = try ProvenCopy(
                    source: replacement.path, sourceKey: replacement.key, target: paths.database,
                    targetSettings: options.format, options: options
                ).make(copy, keys, owner: nil, observer, &report)
                _ = try upgrade.keyAskedAgain(keys.again)
                try observer.begin(.swapping)
            }
        }.warnings
        observer.finish()
        report.seconds = (ContinuousClock.now - began).inSeconds
        report.stageSeconds = observer.secondsByName
        return report
    }
}
