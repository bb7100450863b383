internal import CipherErrors
internal import CipherSQLite
internal import CipherSQLiteFormat
package import CipherSystemFiles

/// The damaged file that a recovered one replaces, kept next to the recovered file with its log or journal.
///
/// A second name (a hard link) of the file is created before the recovered file is built, so that the damaged file
/// always has a name. Its log or journal is renamed right before the swap: SQLite looks for both by the database's
/// name, and would write them into the new file. If a crash happens between the two steps, the next run finds the
/// number of the name in the record, and undoes both.
///
/// A database of which only the log is damaged stays in use, so it is copied instead: ``keepCopy(of:_:unreadFrom:beside:)``.
package struct DamagedOriginal {
    private let paths: DatabasePaths
    private let folder: Folder
    private let number: Int
    private let inode: UInt64

    private var name: String { paths.damagedName(number) }
    /// The path under which the damaged file is kept.
    var path: String { FileName.sibling(name, of: paths.database) }

    // MARK: Keeping

    /// Creates the second name of the damaged file: the first that is free and whose log and journal names are free.
    ///
    /// - Parameters:
    ///   - original: The identity of the damaged file, because another file may have its name by now.
    ///   - record: The record, to which the name is added before it is created.
    /// - Throws: ``StoreError`` with the code `permission` if the file system does not support hard links.
    package static func keep(
        _ paths: DatabasePaths, _ folder: Folder, _ original: FileIdentity, _ record: inout AttemptRecord
    ) throws -> DamagedOriginal {
        var number = 1
        while true {
            let kept = DamagedOriginal(paths: paths, folder: folder, number: number, inode: original.inode)
            if try kept.isFree() {
                record.keptAs = number
                record.keptModified = try folder.status(paths.name).map(Self.modified)
                try record.write(folder, paths)
                if try kept.link() {
                    try folder.sync()
                    return kept
                }
            }
            number += 1
        }
    }

    /// Copies a database and its log to the first free name, for a database that stays in use.
    ///
    /// The copies are recorded, and are durable when this returns. If an earlier run has kept the same commits, nothing
    /// is copied.
    ///
    /// - Parameters:
    ///   - log: The log.
    ///   - start: The offset from which SQLite does not read the log.
    ///   - paths: The database after which the copies are named.
    static func keepCopy(
        of source: DatabasePaths, _ log: SidecarFile, unreadFrom start: Int64, beside paths: DatabasePaths
    ) throws {
        let folder = try paths.openFolder()
        guard let status = try source.status() else { throw StoreError.missingFile(source.database) }
        var number = 1
        while true {
            let kept = DamagedOriginal(paths: paths, folder: folder, number: number, inode: status.identity.inode)
            if try kept.holds(log, from: start) {
                return try AttemptRecord.add(keptCopy: number, folder, paths, owner: status)
            }
            if try kept.isFree() { return try kept.write(source, log, status) }
            number += 1
        }
    }

    private func write(_ source: DatabasePaths, _ log: SidecarFile, _ status: FileSystem.Status) throws {
        let database = try DatabaseFile(path: source.database)
        let file = ReadBytes(size: try database.size()) { try database.fill($1, at: $0) }
        try paths.checkRoom(
            for: file.size + log.size, largest: max(file.size, log.size),
            "the -wal is damaged, and the required copies of the database and its -wal need")
        var copies: [UnpublishedFile] = []
        do {
            // The log comes first, so that the database never appears without it.
            for (name, bytes) in [(name + "-wal", log), (name, file)] as [(String, any ByteSource)] {
                let copy = try UnpublishedFile(in: folder, DatabasePaths(name, beside: paths))
                copies.append(copy)
                try bytes.forEachChunk(from: 0) { try copy.content.append($0) }
                try copy.content.setOwner(status.owner, status.group)
                try copy.content.setMode(status.mode)
            }
            try AttemptRecord.add(keptCopy: number, folder, paths, owner: status)
            for copy in copies { _ = try copy.publish() }
            try folder.sync()
        } catch {
            for copy in copies { copy.remove() }
            throw error
        }
    }

    /// Returns whether the kept files contain the commits of this log that SQLite does not read.
    ///
    /// As long as the log is not reset, SQLite writes new commits over a part of the lost ones. Such a log is not kept
    /// again, because the kept one contains all of them.
    private func holds(_ log: SidecarFile, from start: Int64) throws -> Bool {
        guard try folder.status(name)?.isRegular == true, FileSystem.canRead(path + "-wal"),
            let keptLog = try SidecarFile(path + "-wal"), keptLog.size == log.size
        else { return false }
        return try keptLog.isEqual(to: log, from: start)
    }

    private func isFree() throws -> Bool {
        try (["", "-shm"] + AttemptRecord.sidecarEndings).allSatisfy { try folder.status(name + $0) == nil }
    }

    private func link() throws -> Bool {
        do {
            guard try folder.linkIfFree(paths.name, as: name) else { return false }
        } catch let error as StoreError where error.code == .permission || error.code == .inputOutput {
            throw StoreError(
                .permission, path: paths.database,
                "the damaged database could not be kept under a second name (a hard link): \(error.detail)",
                advice: "recover into a new file (cipherstore recover --output, or DatabaseConverter.recover(_:to:)), "
                    + "and replace the database with the new file", changed: .nothing)
        }
        guard try folder.status(name)?.identity.inode == inode else {
            try folder.removeIfPresent(name)
            throw StoreError.busy(
                paths.database, "another program replaced the file during the recovery", retry: .afterEndingProgram)
        }
        return true
    }

    /// Renames the log and the journal so that SQLite finds them beside the kept file.
    ///
    /// No connection may have the file open. The index of the log will be recreated.
    package func takeSidecars() throws {
        var isMoved = false
        for ending in AttemptRecord.sidecarEndings where try folder.status(paths.name + ending) != nil {
            guard try folder.renameIfFree(paths.name + ending, to: name + ending) else {
                throw StoreError.inTheWay(path + ending, "this file would be treated as part of the damaged database")
            }
            isMoved = true
        }
        try folder.removeIfPresent(paths.name + "-shm")
        // The swap must not reach the disk before these renames.
        if isMoved { try folder.sync() }
    }

    // MARK: After the swap

    /// Restores the kept name of the damaged file if a power loss has removed it, on a file system that does not make
    /// names durable.
    ///
    /// - Parameter name: The name of the damaged file after the swap.
    /// - Returns: Whether the file has its kept name, so that the other name can be removed.
    static func isKept(_ name: String, _ record: AttemptRecord, _ folder: Folder, _ paths: DatabasePaths) throws -> Bool
    {
        guard let number = record.keptAs, let inode = record.original else { return true }
        let kept = DamagedOriginal(paths: paths, folder: folder, number: number, inode: inode)
        guard let status = try folder.status(name), status.identity.inode == inode, status.links == 1 else {
            return true
        }
        return try folder.renameIfFree(name, to: kept.name)
    }

    // MARK: Undoing

    /// Puts back the log and journal of a damaged file that still has the database's name, and removes its second name.
    ///
    /// - Returns: The path of a file that could not be put back, and the reason; `nil` if there is none.
    /// - Throws: ``StoreError`` with the code `busy` if another connection uses the database without its log.
    static func putBack(
        _ record: AttemptRecord, _ folder: Folder, _ paths: DatabasePaths
    ) throws -> (path: String, reason: String)? {
        guard let number = record.keptAs, let inode = record.original, try record.keptName(folder, paths) != nil else {
            return try record.copiedSidecar(folder, paths).map { ($0, AttemptRecord.copied) }
        }
        return try DamagedOriginal(paths: paths, folder: folder, number: number, inode: inode).putBack(record)
    }

    private func putBack(_ record: AttemptRecord) throws -> (path: String, reason: String)? {
        var isMoved = false
        for ending in AttemptRecord.sidecarEndings {
            guard let own = try folder.status(name + ending) else { continue }
            if try folder.status(paths.name + ending)?.identity == own.identity {
                // The system renames in two steps and was interrupted between them.
                try folder.removeIfPresent(name + ending)
                continue
            }
            // SQLite would overwrite newer pages with older ones.
            if let modified = record.keptModified, try folder.status(paths.name).map(Self.modified) != modified {
                return (path + ending, "the database has changed since then")
            }
            try removeObsolete(ending)
            guard try folder.renameIfFree(name + ending, to: paths.name + ending) else {
                return (path + ending, "another program has created the file \(paths.database + ending)")
            }
            isMoved = true
        }
        if isMoved { try folder.sync() }
        try folder.removeIfPresent(name)
        try folder.sync()
        return nil
    }

    /// Removes a log or journal that SQLite would not read, left by a connection that was killed or rolled back.
    private func removeObsolete(_ ending: String) throws {
        guard try isObsolete(ending) else { return }
        let isUnused: Void? = try DatabaseFile(path: paths.database, access: .readWrite).whileUnused {
            guard try isObsolete(ending) else { return }
            try folder.removeIfPresent(paths.name + ending)
            try folder.removeIfPresent(paths.name + "-shm")
        }
        guard isUnused != nil else {
            throw StoreError.busy(
                paths.database, "another connection is using the database without its log", retry: .afterClosing)
        }
    }

    /// Returns whether a file beside the database is a log without a commit, or a journal that is not hot.
    private func isObsolete(_ ending: String) throws -> Bool {
        let path = paths.database + ending
        guard let status = try folder.status(paths.name + ending), status.isRegular else { return false }
        guard let file = try SidecarFile(path) else { return status.size == 0 }
        guard try !SidecarScan.isForeign(path) else { return false }
        guard ending == "-wal" else { return try JournalHeader(file)?.isHot != true }
        return try LogHeader(file)?.committedPages(in: file) == nil && !LogHeader.losesCommits(file)
    }

    private static func modified(_ status: FileSystem.Status) -> String {
        status.modified.map(String.init).joined(separator: ".")
    }
}

extension ByteSource {
    /// Lends all bytes from an offset on, in order.
    fileprivate func forEachChunk(from start: Int64, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 16)
        defer { memory.deallocate() }
        for offset in stride(from: start, to: size, by: memory.count) {
            guard let bytes = try lend(at: offset, count: min(memory.count, Int(size - offset)), memory) else { return }
            try body(bytes)
        }
    }

    /// Returns whether this source and another one of the same size have the same bytes from an offset on.
    fileprivate func isEqual(to other: some ByteSource, from start: Int64) throws -> Bool {
        var (offset, isEqual) = (start, true)
        try forEachChunk(from: start) { bytes in
            isEqual = try isEqual && other.read(at: offset, count: bytes.count).map(bytes.elementsEqual) == true
            offset += Int64(bytes.count)
        }
        return isEqual
    }
}
