internal import CipherDatabaseConversion
internal import CipherErrors

extension Verification {
    /// The error to report if the database is not sound.
    var failure: StoreError {
        let count = "\(isTruncated ? "more than " : "")\(complaints.count)"
        return StoreError(
            .corrupt, path: path, "the database is damaged: \(count) problem\(count == "1" ? " was" : "s were") found",
            advice: "restore it from a backup, or run cipherstore recover")
    }
}
