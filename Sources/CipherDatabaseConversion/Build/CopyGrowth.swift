internal import CipherErrors
internal import CipherSQLite
internal import CipherSQLiteFormat
internal import CipherSystemFiles

/// Limits on the size of a copy and the time to build it; an original whose copy exceeds them is considered endless.
///
/// Pages that refer to each other can make a small tree endless, and a copy of it would fill the disk.
final class CopyGrowth {
    private let path: String
    private let most: Int64
    private let mostSteps: Int64
    private var steps: Int64 = 0
    private var isExceeded = false

    /// Creates the limits.
    ///
    /// Each page of the original becomes about one page of the copy. The factor of four allows for pages that are
    /// filled less densely.
    ///
    /// - Parameter growth: The maximum number of bytes that the rows take in addition to those that they take in the
    ///   original.
    init(source: String, sourceKey: FileKey?, copyKey: FileKey?, growth: Double) throws {
        path = source
        let pageSize = Int64(
            try sourceKey?.settings.pageSize ?? FileHeader(DatabaseFile(path: source)).pageSize)
        let largest = max(pageSize, Int64(copyKey?.settings.pageSize ?? 4096))
        // If the file is not at rest, rows may be in its log.
        let content = try (FileSystem.size(source) ?? 0) + (FileSystem.size(source + "-wal") ?? 0)
        let size = content + Int64(min(growth, 0x1p40))
        most = size / max(pageSize, 512) * largest * 4 + (4 << 20)
        mostSteps = size * Int64(Connection.stepsForByte) + 4_000_000
    }

    /// Returns whether a copy of this size is plausible after the given number of further steps of SQLite's virtual
    /// machine.
    ///
    /// The size alone is not sufficient, because equal entries of an index replace each other.
    func isBearable(_ size: Int64, steps more: Int32) -> Bool {
        steps += Int64(more)
        if size > most || steps > mostSteps { isExceeded = true }
        return !isExceeded
    }

    /// Runs `body`, which ``isBearable(_:steps:)`` may stop.
    ///
    /// - Throws: Any error thrown by `body`, or ``StoreError`` with the code `corrupt` if it was stopped.
    func judging(_ body: () throws -> Void) throws {
        do {
            try body()
        } catch is DatabaseError where isExceeded {
            throw StoreError.damaged(
                path, "the file cannot be read to the end, because some of its pages refer to each other in a cycle")
        }
    }
}
