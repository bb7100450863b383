internal import CipherSQLite
internal import CipherSystemFiles

/// A copy of a database that was made while others wrote that, and is finished once it is at rest.
protocol CopyMadeAhead: AnyObject {
    /// What tells of it on the disk; `nil` while it has no name.
    var record: AttemptRecord? { get }

    /// Finishes the copy of a database at rest, and shows that it is equal.
    ///
    /// - Parameter database: The file, which no one can write.
    /// - Returns: `nil` if a whole copy must be built after all.
    /// - Throws: ``StoreError``, with `proofFailed` if the copy differs; ``DatabaseError``; ``KeyError``.
    func finish(from database: DatabaseFile, _ observer: UpgradeObserver) throws -> FinishedCopy?

    /// Gives the file away: SQLite may not open it while it is held here.
    func takeFile() throws -> NewFile
}

/// What was made ahead.
struct FinishedCopy {
    let key: FileKey
    let tables: Int
    /// `nil` where they were not counted.
    var rows: Int64?
    var rebuiltIndexes: [String] = []
    var warnings: [String] = []
}
