extension StoreError {
    /// What a user must be allowed.
    package enum Access: String {
        case read = "to read it"
        case write = "to write it"
        case writeWithFolder = "to write the file and its folder"
    }

    /// The system does not let this user have what is needed.
    package static func permission(
        _ path: String, _ detail: String, _ access: Access, changed: Change? = nil, underlying: DatabaseError? = nil
    ) -> StoreError {
        StoreError(
            .permission, path: path, detail, advice: "give this user the permission \(access.rawValue)",
            changed: changed, underlying: underlying)
    }
}
