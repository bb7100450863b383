internal import CipherErrors
package import CipherSQLite

extension EncryptionUpgrade {
    /// Runs `body`, and where that finds the database damaged, and the options ask for it, has the database recovered in its
    /// place.
    ///
    /// The upgrade lock is held. A file that the key does not open is one whose first page is damaged where the key opens
    /// others, or where they are plaintext; else the key is another, and the error is that of `body`.
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
            guard options.onDamage == .recover, let doubt = Doubt(error, path: paths.database) else { throw error }
            do {
                var recovery = InPlaceRecovery(of: paths, provider: provider, formats: formats, options: options)
                recovery.isAutomatic = true
                return try recover(recovery)
            } catch let other as StoreError where doubt == .unopened && other.tellsNoDamage {
                throw error
            }
        }
    }

    /// What an error says of the file.
    private enum Doubt {
        case damaged
        /// Damaged, or another key's.
        case unopened

        init?(_ error: any Error, path: String) {
            switch error {
            case let error as StoreError where error.path == path || error.path == nil:
                switch error.code {
                // What SQLite cannot work with for another reason is as it was once it is recovered.
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
    /// Whether it is what SQLite says of a damaged file: also of rows that a damaged UNIQUE index has let in.
    fileprivate var mayBeDamage: Bool { isCorrupt || isTooBig || isUniqueViolation }
}

extension StoreError {
    /// Whether a recovery that ended so has found no page to tell damage by.
    fileprivate var tellsNoDamage: Bool {
        [.keyDoesNotFit, .saltMissing].contains(code) || isOfKeyProvider
    }
}
