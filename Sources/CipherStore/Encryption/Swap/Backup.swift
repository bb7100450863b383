import CipherSQLite

/// The plaintext file that is kept beside the encrypted one when the caller asks for it.
struct Backup {
    let paths: DatabasePaths
    private static let chunk = 1 << 20

    /// Refuses a backup that is there already and is not of this very file, as one of an earlier run that died is.
    func checkRoomForIt(_ source: DatabaseFile) throws {
        guard try FileSystem.exists(paths.backup) else { return }
        guard try isEqual(source) else { throw exists() }
    }

    /// Writes and syncs the copy under the lock, with the owner and mode of the original.
    ///
    /// - Parameter temporaryName: Its name until it is whole.
    /// - Returns: Whether there was none before.
    func write(_ source: DatabaseFile, status: FileSystem.Status, temporaryName: String, in folder: Folder) throws
        -> Bool
    {
        if try folder.status(paths.backupName) != nil { return false }
        let backup = try NewFile(temporaryName, in: folder)
        var offset: Int64 = 0
        while case let bytes = try source.read(at: offset, count: Self.chunk), !bytes.isEmpty {
            try bytes.withUnsafeBytes { try backup.append($0) }
            offset += Int64(bytes.count)
        }
        try backup.setOwner(status.owner, status.group)
        try backup.setMode(status.mode)
        try backup.sync()
        guard try backup.hasName(temporaryName), try folder.renameIfFree(temporaryName, to: paths.backupName) else {
            throw exists()
        }
        return true
    }

    private func isEqual(_ source: DatabaseFile) throws -> Bool {
        guard let status = try FileSystem.status(paths.backup, followLinks: false), status.isRegular,
            status.size == (try source.size())
        else { return false }
        let backup = try DatabaseFile(path: paths.backup)
        var offset: Int64 = 0
        while case let bytes = try source.read(at: offset, count: Self.chunk), !bytes.isEmpty {
            let other = try backup.read(at: offset, count: Self.chunk)
            guard offset == 0 ? Self.withoutCounters(bytes) == Self.withoutCounters(other) : bytes == other else {
                return false
            }
            offset += Int64(bytes.count)
        }
        return true
    }

    /// The first page without the numbers that SQLite changes when the file leaves WAL mode and returns to it: journal
    /// mode, change counter, and the counter and library of the last write.
    private static func withoutCounters(_ bytes: [UInt8]) -> [UInt8] {
        var bytes = bytes
        for range in [18..<20, 24..<28, 92..<100] where bytes.count >= range.upperBound {
            bytes.replaceSubrange(range, with: repeatElement(0, count: range.count))
        }
        return bytes
    }

    private func exists() -> StoreError {
        StoreError(
            .backupExists, path: paths.backup, "a backup exists already and is not of this file as it is now",
            advice: "move it away, or run without a backup; nothing was changed")
    }
}
