internal import CipherErrors
internal import CipherPrimitives
internal import CipherSQLite
internal import CipherSQLiteFormat
internal import CipherSystemFiles

/// The file of a copy that is made while other connections write to the database, and its record.
///
/// The record is written before the first byte of the copy. The file is locked while this process makes it, so that no
/// other run removes the file. A process that is killed leaves both, and the next launch continues where that process
/// stopped.
// Not `Sendable`: used by one thread at a time.
final class ResumableCopy {
    private let paths: DatabasePaths
    private let options: ConversionOptions
    private let folder: Folder
    /// The file; `nil` once it has been handed over or removed.
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

    /// Takes the copy that an earlier launch left, if it can be continued, or creates an empty one.
    ///
    /// - Throws: ``StoreError`` with the code `busy` if another store is making a copy, `cancelled` or `nameTaken`.
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
                .lastStep, attempts: Attempts(paths: paths, options: options, kind: .lastStep).count(last),
                wasWriteAheadLog: try FileHeader(DatabaseFile(path: paths.database)).isWriteAheadLog,
                original: status.identity.inode)
            do {
                try record.write(folder, paths, owner: status)
                let file = try record.makeCopy(folder, paths)
                _ = file.lock()
                return ResumableCopy(file, record, folder, paths, options)
            } catch {
                // If something cannot be removed now, the next launch removes it with the help of the record.
                _ = try? Attempts(paths: paths, options: options).settle(nil)
                throw error
            }
        }
    }

    /// Returns the salt at the beginning of the copy; `nil` if the copy is too short.
    func salt() throws -> SecretBytes? {
        let content = try present().content
        var isThere = false
        let salt = SecretBytes(count: CipherKey.saltLength) { buffer in
            guard let start = buffer.baseAddress else { return }
            isThere = content.read(into: start, count: buffer.count, offset: 0) == 0
        }
        return isThere ? salt : nil
    }

    /// Records the progress of the copy.
    ///
    /// - Parameter progress: `nil` before the copy is written to, and for a copy that matches no commit.
    func note(_ progress: CopyProgress?) throws {
        guard progress != record.progress else { return }
        record.progress = progress
        try record.write(folder, paths)
    }

    /// Hands the file over, under the lock of the folder, which no other run can take meanwhile.
    func takeFile() throws -> NewFile {
        let taken = try present()
        taken.unlock()
        file = nil
        return taken
    }

    func present() throws -> NewFile {
        guard let file else {
            throw DatabaseError(extendedCode: DatabaseError.inputOutput, message: "the copy no longer exists")
        }
        return file
    }

    /// Removes the file and the record, unless the file was handed over.
    ///
    /// If something cannot be removed now, the next launch removes it.
    func discard() {
        guard let file else { return }
        self.file = nil
        _ = try? UpgradeLock.withLock(paths, timeout: options.busyTimeout) {
            file.unlock()
            _ = try Attempts(paths: paths, options: options).settle(nil)
        }
    }
}
