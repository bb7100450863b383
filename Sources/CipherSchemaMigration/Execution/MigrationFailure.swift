package import CipherErrors

extension StoreError {
    /// What a failure of SQLite during a migration means to the caller.
    ///
    /// The SQL stays in ``StoreError/underlying``.
    ///
    /// - Parameter action: What was tried, such as `addColumn chat.draft`.
    package init(migration error: DatabaseError, path: String, action: String) {
        let (code, advice): (Code, String) =
            if error.isBusy || error.isMoved {
                (.busy, "another connection uses the database; try again")
            } else if error.isFull {
                (.noSpace, "make room and try again")
            } else if error.isInterrupted {
                (.cancelled, "try again")
            } else if error.isPermission || error.isCannotOpen {
                (.permission, "make the file and its folder writable")
            } else if error.isInputOutput {
                (.inputOutput, "check the disk and try again")
            } else if error.isCorrupt {
                (.corrupt, "verify the file")
            } else {
                (.migration, "correct the schema or the rows that it does not fit")
            }
        self.init(
            code, path: path, "the schema migration failed at \(action)",
            advice: "\(advice); nothing was changed", underlying: error)
    }
}
