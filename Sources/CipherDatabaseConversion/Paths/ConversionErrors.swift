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
}
