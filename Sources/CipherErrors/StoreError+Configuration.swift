extension StoreError {
    /// Creates the error for an unusable entry in the configuration.
    package static func unusable(
        _ place: String, _ problem: String, advice: String = "correct it", underlying: DatabaseError? = nil
    ) -> StoreError {
        StoreError(
            .configuration, "\(place) cannot be used: \(problem)", advice: advice, changed: .nothing,
            underlying: underlying)
    }

    /// Creates the error for a cipher format that no file can have, or that must not be used for new files.
    package static func cipherFormat(_ fault: String, path: String?) -> StoreError {
        StoreError(
            .configuration, path: path, "the cipher format is invalid: \(fault)",
            advice: "choose another format, or omit the format")
    }
}
