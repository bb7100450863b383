internal import CipherDatabaseConversion
internal import CipherErrors

extension Verification {
    /// What is told of a database that is not sound.
    var failure: StoreError {
        let count = "\(isTruncated ? "more than " : "")\(complaints.count)"
        return StoreError(
            .corrupt, path: path, "the database is damaged: \(count) complaint\(count == "1" ? "" : "s")")
    }
}
