internal import CipherErrors
internal import CipherSQLite
internal import CipherSQLiteFormat
internal import CipherSystemFiles

/// How large the copy of a file may become, and how long it may take, before the file is taken for an endless one.
///
/// Pages that refer to each other make a small tree endless, and a copy of it would fill the disk.
final class CopyGrowth {
    private let path: String
    private let most: Int64
    private let mostSteps: Int64
    private var steps: Int64 = 0
    private var isExceeded = false

    /// Each page of the original becomes about one of the copy; four leave room for pages that are filled less well.
    init(source: String, sourceKey: FileKey?, copyKey: FileKey?) throws {
        path = source
        let pageSize = Int64(
            try sourceKey?.settings.pageSize ?? FileHeader(DatabaseFile(path: source)).pageSize)
        let largest = max(pageSize, Int64(copyKey?.settings.pageSize ?? 4096))
        // Where the file is not at rest, rows are in its log.
        let size = try (FileSystem.size(source) ?? 0) + (FileSystem.size(source + "-wal") ?? 0)
        most = size / max(pageSize, 512) * largest * 4 + (4 << 20)
        mostSteps = size * Int64(Connection.stepsForByte) + 4_000_000
    }

    /// Whether a copy of this size, after so many more steps of SQLite's virtual machine, can be that of the original.
    ///
    /// The size alone does not tell: equal entries of an index take each other's place.
    func isBearable(_ size: Int64, steps more: Int32) -> Bool {
        steps += Int64(more)
        if size > most || steps > mostSteps { isExceeded = true }
        return !isExceeded
    }

    /// Runs `body`, which ``isBearable(_:steps:)`` may have ended.
    ///
    /// - Throws: What `body` throws, and ``StoreError`` with `corrupt` if it was ended.
    func judging(_ body: () throws -> Void) throws {
        do {
            try body()
        } catch is DatabaseError where isExceeded {
            throw StoreError.damaged(
                path, "the rows never end: pages of the file refer to each other in a cycle")
        }
    }
}
