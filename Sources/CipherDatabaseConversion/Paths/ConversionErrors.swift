internal import CipherErrors

extension StoreError {
    /// Returns the error for a sidecar that does not belong to the file.
    ///
    /// - Parameter sidecar: The name of the sidecar in the advice.
    static func staleSidecar(_ paths: DatabasePaths, _ detail: String, _ sidecar: String) -> StoreError {
        StoreError(
            .staleSidecar, path: paths.database, detail,
            advice: "restore the file and its \(sidecar) from the same backup, or move the \(sidecar) elsewhere if it "
                + "is older than the file", changed: .nothing)
    }

    /// Reports errors about the copy under the database's path, because users do not know the copy.
    static func about<Result>(_ paths: DatabasePaths, _ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch let error as StoreError where error.path?.hasPrefix(paths.database + "-upgrade-") == true {
            throw error.at(paths.database)
        }
    }
}
