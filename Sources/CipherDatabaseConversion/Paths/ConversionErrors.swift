internal import CipherErrors

extension StoreError {
    /// - Parameter sidecar: What does not belong to the file.
    static func staleSidecar(_ paths: DatabasePaths, _ detail: String, _ sidecar: String) -> StoreError {
        StoreError(
            .staleSidecar, path: paths.database, detail,
            advice: "put the file and its \(sidecar) back from the same copy, or move the \(sidecar) away if it is the "
                + "older one", changed: .nothing)
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
