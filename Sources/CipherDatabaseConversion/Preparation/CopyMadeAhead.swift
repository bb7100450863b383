internal import CipherSQLite
internal import CipherSystemFiles

/// A copy of a database that was made while other connections wrote to the database, and that is finished once the
/// database is at rest.
protocol CopyMadeAhead: AnyObject {
    /// The record of the copy on disk; `nil` while the copy has no name.
    var record: AttemptRecord? { get }

    /// Finishes the copy of a database at rest, and proves that it is equal.
    ///
    /// - Parameter database: The file, to which no connection can write.
    /// - Returns: The copy, or `nil` if all of it must be rebuilt.
    /// - Throws: ``StoreError``, with the code `proofFailed` if the copy differs; ``DatabaseError``; ``KeyError``.
    func finish(from database: DatabaseFile, _ observer: UpgradeObserver) throws -> FinishedCopy?

    /// Hands over the file of a copy that must be rebuilt, because SQLite must not open it while it is open here.
    func takeFile() throws -> NewFile
}

/// A copy made ahead of time that is equal to the database at rest.
struct FinishedCopy: ~Copyable {
    let proven: ProvenFile
    let tables: Int
    /// The number of rows; `nil` if they were not counted.
    var rows: Int64?
    var rebuiltIndexes: [String] = []
    var warnings: [String] = []
    var losses = PossibleLosses()
}
