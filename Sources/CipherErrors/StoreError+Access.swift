extension StoreError {
    /// The access that the user needs.
    package enum Access: String {
        case read = "to read it"
        case write = "to write it"
        case writeWithFolder = "to write the file and its folder"
    }

    /// Creates the error for a user who lacks a required permission.
    package static func permission(
        _ path: String, _ detail: String, _ access: Access, changed: Change? = nil, underlying: DatabaseError? = nil
    ) -> StoreError {
        StoreError(
            .permission, path: path, detail, advice: "grant this user the permission \(access.rawValue)",
            changed: changed, underlying: underlying)
    }
}
