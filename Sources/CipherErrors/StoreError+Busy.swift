extension StoreError {
    /// What lets a file be used that somebody else works with.
    package enum Retry: String {
        /// A connection or a program that is named has the file open.
        case afterClosing = "close it and try again"
        /// A program that is not known wrote or replaced the file.
        case afterEndingProgram = "close that program and try again"
        /// Another program creates or removes files of the database.
        case afterSearching = "find out which program writes to the folder, and try again"
        /// Reads of an app's own do not end.
        case afterReads = "wait for those reads or cancel them, and try again"
        /// It was a moment only.
        case now = "try again"
    }

    /// Somebody else uses the file, or came between.
    package static func busy(
        _ path: String, _ detail: String, retry: Retry, changed: Change? = .nothing, underlying: DatabaseError? = nil
    ) -> StoreError {
        StoreError(.busy, path: path, detail, advice: retry.rawValue, changed: changed, underlying: underlying)
    }

    /// The name that was free is another program's now.
    package static func madeMeanwhile(_ path: String) -> StoreError {
        busy(path, "another program made the file at the same moment", retry: .now)
    }
}
