extension StoreError {
    /// What to do before retrying when a file is in use.
    package enum Retry: String {
        /// A known connection or program has the file open.
        case afterClosing = "close all other connections to the database and try again"
        /// An unknown program wrote or replaced the file.
        case afterEndingProgram = "stop the other program and try again"
        /// Another program creates or removes the database's files.
        case afterSearching = "stop the program that is changing files in this folder, and try again"
        /// The app's own reads do not end.
        case afterReads = "cancel the running reads and backups, or wait until they end, and try again"
        /// The store encrypts its legacy database.
        case afterEncryption = "await the value of the store's `conversion`, or cancel the conversion, and try again"
        /// The conflict was brief.
        case now = "try again"
    }

    /// Creates the error for a file that another connection or program uses or has changed meanwhile.
    package static func busy(
        _ path: String, _ detail: String, retry: Retry, changed: Change? = .nothing, underlying: DatabaseError? = nil
    ) -> StoreError {
        StoreError(.busy, path: path, detail, advice: retry.rawValue, changed: changed, underlying: underlying)
    }

    /// Creates the error for a database that another connection is using.
    package static func inUse(_ path: String) -> StoreError {
        busy(
            path, "another connection, in this or another process, is using the database", retry: .afterClosing)
    }

    /// Creates the error for a file name that was free until another program created a file under that name.
    package static func madeMeanwhile(_ path: String) -> StoreError {
        busy(path, "another program created a file with this name at the same time", retry: .now)
    }
}
