internal import CipherErrors
package import CipherSQLite
internal import CipherSQLiteFormat
internal import CipherSystemFiles

extension EncryptionUpgrade {
    /// Runs `body`.
    ///
    /// If `body` finds damage and the options request recovery, recovers the database in place.
    ///
    /// The caller holds the upgrade lock. If the key does not open the file, the first page is considered damaged if
    /// the key opens other pages or if other pages are plaintext. Otherwise the file has another key, and the error of
    /// `body` is thrown.
    ///
    /// - Parameters:
    ///   - formats: The cipher settings that the file may have.
    ///   - recover: Runs the recovery.
    package func recoveringDamage<Result>(
        formats: [CipherSettings], _ body: () throws -> Result, by recover: (InPlaceRecovery) throws -> Result
    ) throws -> Result {
        do {
            return try body()
        } catch {
            guard options.onDamage == .recover, let doubt = Doubt(error, path: paths.database), mayHoldPages else {
                throw error
            }
            do {
                var recovery = InPlaceRecovery(of: paths, provider: provider, formats: formats, options: options)
                recovery.cause = error
                // The caller decided to encrypt this file.
                recovery.expectsPlaintext = true
                return try recover(recovery)
            } catch let other as StoreError where doubt == .unopened && other.tellsNoDamage {
                throw error
            }
        }
    }

    /// Whether the file exists and is large enough for a page, so that there may be something to recover.
    private var mayHoldPages: Bool {
        ((try? FileSystem.size(paths.database)) ?? nil) ?? 0 >= Int64(FileHeader.smallestPage)
    }

    /// The state of the file that an error suggests.
    private enum Doubt {
        case damaged
        /// The file is damaged, or it has another key.
        case unopened

        init?(_ error: any Error, path: String) {
            switch error {
            case let error as StoreError where error.path == path || error.path == nil:
                switch error.code {
                // If SQLite refuses the file for another reason, a recovery would not change that.
                case .corrupt where error.underlying?.mayBeDamage ?? true: self = .damaged
                case .keyDoesNotFit, .keyUnavailable: self = .unopened
                default: return nil
                }
            case let error as DatabaseError where error.isCorrupt: self = .damaged
            default: return nil
            }
        }
    }
}

extension DatabaseError {
    /// Whether SQLite reports this error for a damaged file, including for rows that a damaged UNIQUE index has let in.
    fileprivate var mayBeDamage: Bool { isCorrupt || isTooBig || isUniqueViolation }
}

extension StoreError {
    /// Whether a recovery that ended with this error found no page that could prove damage.
    var tellsNoDamage: Bool {
        [.keyDoesNotFit, .saltMissing].contains(code) || isOfKeyProvider
    }
}
