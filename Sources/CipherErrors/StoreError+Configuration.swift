extension StoreError {
    /// What stands at a place of the configuration cannot be used.
    package static func unusable(
        _ place: String, _ problem: String, advice: String = "correct it", underlying: DatabaseError? = nil
    ) -> StoreError {
        StoreError(
            .configuration, "\(place) cannot be used: \(problem)", advice: advice, changed: .nothing,
            underlying: underlying)
    }

    /// A cipher format that no file has, or that none is to have.
    package static func cipherFormat(_ fault: String, path: String?) -> StoreError {
        StoreError(
            .configuration, path: path, "the cipher format is not possible: \(fault)",
            advice: "choose another format, or omit it")
    }
}
