extension StoreError {
    /// The access that the user needs.
    package enum Access: String {
        case search = "search permission (x) on each folder in the path"
        case read = "read access; only root and the owner of the file can convert the database"
        case write = "write access"
        case readAndWrite = "read and write access"
        case writeWithFolder = "write access to the file and its folder"
    }

    /// Creates the error for a user who lacks a required permission.
    package static func permission(
        _ path: String, _ detail: String, _ access: Access, changed: Change? = nil, underlying: DatabaseError? = nil
    ) -> StoreError {
        StoreError(
            .permission, path: path, detail, advice: "grant this user \(access.rawValue)",
            changed: changed, underlying: underlying)
    }
}
