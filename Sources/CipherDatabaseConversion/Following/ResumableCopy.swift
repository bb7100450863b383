internal import CipherErrors
internal import CipherPrimitives
internal import CipherSQLite
internal import CipherSQLiteFormat
internal import CipherSystemFiles

/// The file of a copy that is made while others write the database, and the record that tells of it.
///
/// The record is there before the first byte of the copy. The file is locked for as long as this process makes it, so that no
/// other run removes it; a process that is killed leaves both, and the next launch goes on where it was.
// Not `Sendable`: one thread's at a time.
final class ResumableCopy {
    private let paths: DatabasePaths
    private let options: ConversionOptions
    private let folder: Folder
    /// `nil` once it was given away or removed.
    private(set) var file: NewFile?
    private(set) var record: AttemptRecord

    private init(
        _ file: NewFile, _ record: AttemptRecord, _ folder: Folder, _ paths: DatabasePaths, _ options: ConversionOptions
    ) {
        self.file = file
        self.record = record
        self.folder = folder
        self.paths = paths
        self.options = options
    }

    /// Takes the copy that an earlier launch left, where it can be gone on with, or makes an empty one.
    ///
    /// - Throws: ``StoreError`` with `busy` where another store is making one; with `cancelled`; with `nameTaken`.
    static func claim(_ paths: DatabasePaths, _ options: ConversionOptions) throws -> ResumableCopy {
        try UpgradeLock.withLock(paths, timeout: options.upgradeTimeout, cancellation: options.cancellation) {
            let folder = try paths.openFolder()
            guard let status = try folder.status(paths.name) else { throw StoreError.missingFile(paths.database) }
            let last = try AttemptRecord.read(paths)
            if let last, last.progress?.isOfThisStart == true, last.original == status.identity.inode,
                let inode = last.copy, let file = try NewFile(madeBefore: last.copyName(paths), inode, in: folder)
            {
                guard file.lock() else { throw Leftovers.beingMade(paths) }
                return ResumableCopy(file, last, folder, paths, options)
            }
            try Leftovers.sweep(paths)
            var record = try AttemptRecord(
                attempts: last?.attempts ?? 0,
                wasWriteAheadLog: try FileHeader(DatabaseFile(path: paths.database)).isWriteAheadLog,
                original: status.identity.inode)
            do {
                try record.write(folder, paths, owner: status)
                let file = try record.makeCopy(folder, paths)
                _ = file.lock()
                return ResumableCopy(file, record, folder, paths, options)
            } catch {
                // What cannot be removed the next launch removes, as the record tells.
                _ = try? Attempts(paths: paths, options: options).settle(nil)
                throw error
            }
        }
    }

    /// The salt with which the copy begins; `nil` where it is too short.
    func salt() throws -> SecretBytes? {
        let content = try present().content
        var isThere = false
        let salt = SecretBytes(count: CipherKey.saltLength) { buffer in
            guard let start = buffer.baseAddress else { return }
            isThere = content.read(into: start, count: buffer.count, offset: 0) == 0
        }
        return isThere ? salt : nil
    }

    /// Records how far the copy is.
    ///
    /// - Parameter progress: `nil` before the copy is written to, and for one that equals no commit.
    func note(_ progress: CopyProgress?) throws {
        guard progress != record.progress else { return }
        record.progress = progress
        try record.write(folder, paths)
    }

    /// Gives the file away, under the lock of the folder, which no other run gets meanwhile.
    func takeFile() throws -> NewFile {
        let taken = try present()
        taken.unlock()
        file = nil
        return taken
    }

    func present() throws -> NewFile {
        guard let file else {
            throw DatabaseError(extendedCode: DatabaseError.inputOutput, message: "the copy is gone")
        }
        return file
    }

    /// Removes the file and the record, unless the file was given away.
    ///
    /// What cannot be removed the next launch removes.
    func discard() {
        guard let file else { return }
        self.file = nil
        _ = try? UpgradeLock.withLock(paths, timeout: options.busyTimeout) {
            file.unlock()
            _ = try Attempts(paths: paths, options: options).settle(nil)
        }
    }
}
