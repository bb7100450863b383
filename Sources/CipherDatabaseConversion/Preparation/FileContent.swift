internal import CipherErrors
internal import CipherSQLiteFormat

/// What a conversion begins with: an ``Inspector/Surface`` that it need not refuse.
///
/// No operation has to answer for a file that is missing or has another's sidecar.
package enum FileContent {
    case empty
    case plaintext
    case opaque(hasPlaintextHeader: Bool)
}

extension ConversionOptions {
    /// Looks at a file under the upgrade lock, and runs `body` with what was found.
    ///
    /// - Throws: What `body` throws, SQLite's failures with a type; ``StoreError`` where there is no file, where a
    ///   sidecar of another copy lies beside it, or where the lock could not be had in time.
    package func withLockedFile<Result>(
        _ paths: DatabasePaths, _ body: (Inspector, FileContent) throws -> Result
    ) throws -> Result {
        try UpgradeLock.withLock(paths, timeout: upgradeTimeout, cancellation: cancellation) {
            do {
                try Leftovers.putBackSidecars(paths)
                let inspector = inspector(paths)
                switch try inspector.surface() {
                case .missing where createsMissingFile: return try body(inspector, .empty)
                case .missing:
                    throw StoreError.missingFile(paths.database)
                case .staleSidecar: throw inspector.staleSidecar()
                case .empty: return try body(inspector, .empty)
                case .plaintext: return try body(inspector, .plaintext)
                case .opaque(let hasPlaintextHeader):
                    return try body(inspector, .opaque(hasPlaintextHeader: hasPlaintextHeader))
                }
            } catch let error as DatabaseError {
                throw Inspector(paths).readFailure(error, during: .conversion)
            }
        }
    }
}

extension Inspector {
    /// Whether the file is in WAL mode.
    ///
    /// - Parameter fileKey: Its key; `nil` for a plaintext one.
    /// - Throws: ``StoreError``, with `keyDoesNotFit` if the file has another key or is of another kind.
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
