internal import CipherErrors

extension StoreError {
    /// - Parameter sidecar: What does not belong to the file.
    static func staleSidecar(_ paths: DatabasePaths, _ detail: String, _ sidecar: String) -> StoreError {
        StoreError(
            .staleSidecar, path: paths.database, detail,
            advice: "put the file and its \(sidecar) back from the same copy, or move the \(sidecar) away if it is the "
                + "older one", changed: .nothing)
    }

    /// The key does not tell what the file does not hold.
    static func saltMissing(_ paths: DatabasePaths) -> StoreError {
        StoreError(
            .saltMissing, path: paths.database, "the file keeps a readable header, so its salt is not in the file",
            advice: "give the key as x'96 hex digits', raw key and salt", changed: .nothing)
    }

    /// Has errors about the copy be about the database, which is all that a user knows of.
    static func about<Result>(_ paths: DatabasePaths, _ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch let error as StoreError where error.path?.hasPrefix(paths.database + "-upgrade-") == true {
            throw error.at(paths.database)
        }
    }
}
