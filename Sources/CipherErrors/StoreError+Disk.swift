extension StoreError {
    /// The advice for a damaged file.
    package static let damageAdvice =
        "restore the file from a backup, or recover its content with cipherstore recover, "
        + "DatabaseConverter.recover or, if the store is closed, EncryptedStore.recover"

    /// Creates the error for a full disk or a file that cannot grow.
    package static func noSpace(
        _ path: String, _ detail: String, changed: Change? = nil, underlying: DatabaseError? = nil
    ) -> StoreError {
        StoreError(
            .noSpace, path: path, detail, advice: "free some disk space and try again", changed: changed,
            underlying: underlying)
    }

    /// Creates the error for a file that could not be opened because too many others are open.
    package static func tooManyOpenFiles(_ path: String, underlying: DatabaseError? = nil) -> StoreError {
        StoreError(
            .inputOutput, path: path, "the file could not be opened, because too many files are open",
            advice: "raise the limit on open files (ulimit -n, or LimitNOFILE= in a systemd unit) or close other "
                + "files, and try again", underlying: underlying)
    }

    /// Creates the error for a failure of the disk, or of a layer between the disk and the process.
    package static func disk(
        _ path: String, _ detail: String, _ code: Code = .inputOutput, changed: Change? = nil,
        underlying: DatabaseError? = nil
    ) -> StoreError {
        StoreError(
            code, path: path, detail, advice: "check the disk and try again", changed: changed, underlying: underlying)
    }

    /// Creates the error for a file whose content differs from what SQLite wrote.
    package static func damaged(
        _ path: String?, _ detail: String, changed: Change? = .nothing, underlying: DatabaseError? = nil
    ) -> StoreError {
        StoreError(
            .corrupt, path: path, detail, advice: damageAdvice, changed: changed,
            underlying: underlying)
    }
}
