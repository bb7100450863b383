internal import CipherErrors
internal import CipherSQLite
internal import CipherSystemFiles

/// The plaintext file that is kept next to the encrypted one if the caller requests it.
///
/// An app's database may be encrypted, decrypted and encrypted again, and each time the file is a different one.
/// Nothing shows whether an existing backup is superseded, so nothing is replaced: the backup takes the first free one
/// of the names ``DatabasePaths/backupName(_:)``, unless an interrupted run has already made this very backup.
struct Backup {
    let paths: DatabasePaths
    private static let chunk = 1 << 20

    /// The backup that was kept.
    struct Kept {
        /// The name of the backup in the folder.
        let name: String
        /// Whether this run created the backup.
        let isNew: Bool
        /// The names of earlier backups, which contain plaintext too.
        let earlier: [String]
    }

    /// Writes and syncs the backup under the lock, with the owner and mode of the original, or finds an existing one.
    ///
    /// - Parameter temporaryName: The name of the backup until it is complete.
    func write(_ source: DatabaseFile, status: FileSystem.Status, temporaryName: String, in folder: Folder) throws
        -> Kept
    {
        var earlier: [String] = []
        var backup: NewFile?
        for number in 1... {
            let name = paths.backupName(number)
            if let found = try folder.status(name) {
                if found.isRegular, try isEqual(source, name, found) {
                    return Kept(name: name, isNew: false, earlier: earlier)
                }
                if found.isRegular { earlier.append(name) }
                continue
            }
            let written = try backup ?? copy(source, status, temporaryName, in: folder)
            backup = written
            guard try written.hasName(temporaryName) else { throw replaced(temporaryName) }
            if try folder.renameIfFree(temporaryName, to: name) {
                return Kept(name: name, isNew: true, earlier: earlier)
            }
        }
        throw replaced(temporaryName)
    }

    private func copy(
        _ source: DatabaseFile, _ status: FileSystem.Status, _ name: String, in folder: Folder
    ) throws -> NewFile {
        let backup = try NewFile(name, in: folder)
        var offset: Int64 = 0
        while case let bytes = try source.read(at: offset, count: Self.chunk), !bytes.isEmpty {
            try bytes.withUnsafeBytes { try backup.append($0) }
            offset += Int64(bytes.count)
        }
        try backup.setOwner(status.owner, status.group)
        try backup.setMode(status.mode)
        try backup.sync()
        return backup
    }

    private func isEqual(_ source: DatabaseFile, _ name: String, _ status: FileSystem.Status) throws -> Bool {
        let path = FileName.sibling(name, of: paths.database)
        // A backup that this user cannot read is not one of this user's backups.
        guard status.size == (try source.size()), FileSystem.canRead(path) else { return false }
        let backup = try DatabaseFile(path: path)
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

    /// Returns the first page without the numbers that SQLite changes when the file leaves WAL mode and returns to it:
    /// the journal mode, the change counter, and the counter and library version of the last write.
    private static func withoutCounters(_ bytes: [UInt8]) -> [UInt8] {
        var bytes = bytes
        for range in [18..<20, 24..<28, 92..<100] where bytes.count >= range.upperBound {
            bytes.replaceSubrange(range, with: repeatElement(0, count: range.count))
        }
        return bytes
    }

    private func replaced(_ name: String) -> StoreError {
        .busy(
            FileName.sibling(name, of: paths.database),
            "another program replaced the backup while it was being written", retry: .afterSearching)
    }
}
