extension StoreError {
    /// The same failure, of a schema migration that came after the whole file was changed.
    ///
    /// - Parameter change: What was done to the file, such as `encrypted`.
    func happened(after change: String) -> StoreError {
        let unchanged = "nothing was changed"
        let next = advice.replacing("; \(unchanged)", with: "").replacing(unchanged, with: "")
        let outcome =
            "the file was \(change) before and stays so, with the schema that it had; the next opening goes on from there"
        return StoreError(
            code, path: path, detail, advice: next.isEmpty ? outcome : "\(next); \(outcome)", underlying: underlying)
    }
}
