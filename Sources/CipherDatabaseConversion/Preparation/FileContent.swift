internal import CipherErrors
internal import CipherSQLiteFormat

/// The kinds of file with which a conversion can begin: the cases of ``Inspector/Surface`` that are not always refused.
///
/// Operations therefore need not handle a missing file or a sidecar of another database.
package enum FileContent {
    case empty
    case plaintext
    case opaque(hasPlaintextHeader: Bool)
}

extension ConversionOptions {
    /// Inspects a file under the upgrade lock, and runs `body` with the result.
    ///
    /// - Throws: Any error thrown by `body`, with SQLite's failures as ``StoreError``; ``StoreError`` if the file is
    ///   missing, if a sidecar of another copy is beside it, or if the lock could not be taken in time.
    package func withLockedFile<Result>(
        _ paths: DatabasePaths, _ body: (Inspector, FileContent) throws -> Result
    ) throws -> Result {
        try withLock(paths) { try withFile(paths, body) }
    }

    /// Runs `body` under the upgrade lock.
    ///
    /// - Throws: Any error thrown by `body`, with SQLite's failures as ``StoreError``; ``StoreError`` if the lock could
    ///   not be taken in time.
    func withLock<Result>(_ paths: DatabasePaths, _ body: () throws -> Result) throws -> Result {
        try UpgradeLock.withLock(paths, timeout: upgradeTimeout, cancellation: cancellation) {
            let hadJournal = (try? HotJournal(paths)) != nil
            do {
                do {
                    return try body()
                } catch let error as DatabaseError {
                    throw Inspector(paths).readFailure(error, during: .conversion)
                }
            } catch var error as StoreError where hadJournal && error.change == .nothing {
                if (try? HotJournal(paths)) == nil { error.change = .rolledBack }
                throw error
            }
        }
    }

    /// Inspects a file, and runs `body` with the result.
    ///
    /// The caller holds the upgrade lock.
    ///
    /// - Throws: Any error thrown by `body`; ``StoreError`` if the file is missing, or if a sidecar of another copy is
    ///   beside it.
    func withFile<Result>(
        _ paths: DatabasePaths, _ body: (Inspector, FileContent) throws -> Result
    ) throws -> Result {
        try Leftovers.putBackSidecars(paths)
        let inspector = inspector(paths)
        switch try inspector.surface() {
        case .missing where createsMissingFile: return try body(inspector, .empty)
        case .missing: throw StoreError.missingFile(paths.database)
        case .staleSidecar: throw inspector.staleSidecar()
        case .empty: return try body(inspector, .empty)
        case .plaintext: return try body(inspector, .plaintext)
        case .opaque(let hasPlaintextHeader):
            return try body(inspector, .opaque(hasPlaintextHeader: hasPlaintextHeader))
        }
    }
}

extension Inspector {
    /// Returns whether the file is in WAL mode.
    ///
    /// - Parameter fileKey: The file's key; `nil` for a plaintext file.
    /// - Throws: ``StoreError``, with the code `keyDoesNotFit` if the file has another key or is of another kind than
    ///   `content` states.
    func isWriteAheadLog(_ content: FileContent, _ fileKey: FileKey?) throws -> Bool {
        guard let fileKey else { return try header().isWriteAheadLog }
        guard case .opaque(let hasPlaintextHeader) = content,
            let mode = try readingEncrypted(
                key: fileKey.key, settings: fileKey.settings, hasPlaintextHeader: hasPlaintextHeader,
                { connection, _ in try ReadOnlyAccess.journalMode(of: connection) })
        else { throw keyDoesNotFit() }
        return mode == "wal"
    }
}
