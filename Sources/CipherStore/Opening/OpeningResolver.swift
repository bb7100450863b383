internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherHistory
internal import CipherKeyProviders
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherSystemFiles

/// Determines the kind of a database file, the key and cipher format that open it, and the version that it records.
///
/// Opening, planning, validating, reading the history and repairing all rely on it.
///
/// Keys and formats are tried in the order of ``FileUnlocking``. If CipherStore has recorded a version, that version is
/// used; otherwise the app's own record is used.
struct OpeningResolver {
    let configuration: Configuration
    let paths: DatabasePaths
    let provider: any KeyProvider
    let options: ConversionOptions

    /// The result of resolving a file.
    struct Resolved<Result> {
        let facts: Decision.Facts
        /// The key and format that opened the file; `nil` if it is not encrypted.
        let file: FileUnlocking.Unlocked?
        /// The result of the caller's closure.
        let result: Result
    }

    /// A closure that reads an opened file.
    ///
    /// If there is no file, it receives an empty in-memory database.
    typealias Reading<Result> = (Connection, Decision.Facts, FileUnlocking.Unlocked?) throws -> Result

    /// Opens a file for reading, and passes the connection to `body`.
    ///
    /// - Parameters:
    ///   - inspector: The inspector of the file.
    ///   - rollsBackJournal: Whether the journal of a crashed writer is rolled back, because it may contain the
    ///     version; the upgrade lock must then be held. Otherwise nothing is changed.
    /// - Throws: ``StoreError`` with the code `staleSidecar`, `keyDoesNotFit`, those of the other errors of
    ///   ``FileUnlocking``, or `needsRecovery` if a journal is not rolled back; any error thrown by `body`.
    func resolve<Result>(
        _ inspector: Inspector, rollsBackJournal: Bool = false, _ body: Reading<Result>
    ) throws -> Resolved<Result> {
        let surface = try inspector.surface()
        do {
            switch surface {
            case .staleSidecar: throw inspector.staleSidecar()
            case .missing, .empty: return try resolveNothing(surface, body)
            case .plaintext: return try resolvePlaintext(inspector, rollsBackJournal: rollsBackJournal, body)
            case .opaque(let hasPlaintextHeader):
                let unlocking = FileUnlocking(
                    paths, provider: provider, formats: configuration.encryption.formats,
                    rollsBackJournal: rollsBackJournal)
                return try unlocking.run(inspector, hasPlaintextHeader: hasPlaintextHeader) {
                    try read($0, surface, $1, body)
                }.result
            }
        } catch let error as DatabaseError {
            throw inspector.readFailure(error)
        }
    }

    /// Returns the step that the file requires.
    ///
    /// - Throws: ``StoreError`` for a file that this configuration may not open.
    func step(for facts: Decision.Facts, _ inspector: Inspector) throws -> StorePlan.Step {
        switch Decision.make(facts, configuration) {
        case .proceed(let step): return step
        case .refuse(let code): throw refusal(code, facts, inspector)
        }
    }

    /// Returns the effective recorded version.
    func recordedVersion(_ connection: Connection) throws -> SchemaVersion? {
        try VersionRecords(connection).version
            ?? configuration.readRecordedVersion(from: connection, databasePath: paths.database)
    }

    // MARK: Each kind of file

    private func resolveNothing<Result>(
        _ surface: Inspector.Surface, _ body: Reading<Result>
    ) throws -> Resolved<Result> {
        let connection = try ScratchDatabase(configuration.extensions).connection
        defer { connection.close() }
        let recorded = try configuration.readOwnRecord(from: connection, databasePath: paths.database)
        let facts = Decision.Facts(surface: surface, recorded: recorded)
        return Resolved(facts: facts, file: nil, result: try body(connection, facts, nil))
    }

    private func resolvePlaintext<Result>(
        _ inspector: Inspector, rollsBackJournal: Bool, _ body: Reading<Result>
    ) throws -> Resolved<Result> {
        if let resolved = try inspector.readingPlaintext({ try read($0, .plaintext, nil, body) }) { return resolved }
        guard rollsBackJournal else { throw inspector.needsRecovery() }
        try JournalRollback.checkAccess(paths)
        try HotJournal.checkRollback(paths, nil, timeout: options.busyTimeout)
        let connection = try ConnectionProfile.migrating.with(extensions: configuration.extensions)
            .open(paths.database, busyTimeout: options.busyTimeout)
        defer { connection.close() }
        try connection.proveReadable(paths.database, isPlaintext: true)
        return try read(connection, .plaintext, nil, body)
    }

    private func read<Result>(
        _ connection: Connection, _ surface: Inspector.Surface, _ file: FileUnlocking.Unlocked?,
        _ body: Reading<Result>
    ) throws -> Resolved<Result> {
        let facts = Decision.Facts(
            surface: surface, recorded: try recordedVersion(connection), records: try VersionRecords(connection),
            stamp: try HistoryTable.stamp(connection), keyFits: file != nil,
            isChangeWanted: file.map(isChangeWanted) ?? false)
        return Resolved(facts: facts, file: file, result: try body(connection, facts, file))
    }

    /// Whether the key or format of an opened file should be changed.
    private func isChangeWanted(_ file: FileUnlocking.Unlocked) -> Bool {
        let encryption = configuration.encryption
        return file.hasPreviousKey
            || encryption.whenFormerFormat == .upgrade && file.fileKey.settings != encryption.format
    }
}
