internal import CipherErrors

extension StoreError {
    /// Has errors about the copy be about the database, which is all that a user knows of.
    static func about<Result>(_ paths: DatabasePaths, _ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch let error as StoreError where error.path?.hasPrefix(paths.database + "-upgrade-") == true {
            throw StoreError(
                error.code, path: paths.database, error.detail, advice: error.advice, underlying: error.underlying)
        }
    }

    /// Gives a failure of SQLite during an upgrade its type.
    static func upgrading(_ error: DatabaseError, _ paths: DatabasePaths) -> StoreError {
        if error.isInterrupted { return .cancelled(paths.database) }
        guard error.isConstraintViolation else { return Inspector(paths).readFailure(error) }
        // A copy has no constraints but the keys of its trees, which an undamaged original keeps.
        return StoreError(
            .corrupt, path: paths.database, "the database is damaged: it holds the same key more than once",
            advice: "restore the file from a backup; nothing was changed", underlying: error)
    }
}
