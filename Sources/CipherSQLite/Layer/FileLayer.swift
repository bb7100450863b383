internal import CCipherEngine
internal import CipherErrors
internal import CipherPlatform
internal import CipherSystemFiles

/// A file layer for SQLite that gives access to one database.
///
/// SQLite opens files by path and follows symbolic links, and other users may be able to write to the folder.
/// Therefore, a copy that is being built is accessed through the descriptor with which it was created, whichever file
/// has its name by then. Its journals are files without a name, so they cannot be replaced either, and a crash leaves
/// none of them. The copy is not locked, because no other process has it open.
///
/// A database that other connections may use is opened by its path, without following links. Only the journals and logs
/// of databases that the connection has opened, and files that it has created, are removed: a hot journal may name any
/// other file to be removed with it, and may be placed beside the database at any moment.
///
/// Whatever SQLite sorts or holds in temporary tables, if the connection lets it leave the memory at all, is written to
/// a file without a name, encrypted with a separate, random key: see ``EncryptedScratch``.
///
/// Neither kind of layer reads a first page whose page size does not match that of the connection's key.
/// Source: SQLite, "The SQLite OS Interface or VFS".
package final class FileLayer {
    /// The name under which SQLite finds the layer.
    let name: String

    /// The structure that SQLite uses, followed by a reference to this object.
    private struct Layer {
        var vfs: sqlite3_vfs
        var owner: Unmanaged<FileLayer>
    }

    private let layer: UnsafeMutablePointer<Layer>
    private let nameBytes: UnsafeMutablePointer<CChar>
    /// The path of the database that SQLite's own layer opens; `nil` for a database that is already open.
    let path: String?
    /// A closure that opens a file of the kind that SQLite's flags specify; it returns `nil` if that is not possible.
    private let openFile: (Int32) throws -> (any LayeredFile)?
    /// The flags with which SQLite opens the files that it needs besides a database and its journal or log.
    private static let scratchFlags =
        SQLITE_OPEN_TEMP_DB | SQLITE_OPEN_TRANSIENT_DB | SQLITE_OPEN_TEMP_JOURNAL | SQLITE_OPEN_SUBJOURNAL
    /// Whether there is a log beside the database.
    private let hasLog: Bool
    let readsAhead: Bool
    /// The files that SQLite may remove for a database that other connections may use; only one connection uses the
    /// layer.
    private var removable: Set<[UInt8]> = []
    /// The first failure of a file, even if that file has been closed.
    private var failure = SQLITE_OK
    /// The required properties of the database's pages; `nil` for a database without a key.
    var cipherPages: CipherPages?

    /// Creates a layer for one file.
    ///
    /// - Parameters:
    ///   - file: The database.
    ///   - makeJournal: Opens a new file without a name, for reading and writing; returns `nil` if that is not
    ///     possible, and then the connection must keep its journal in memory.
    package convenience init(_ file: DescriptorFile, makeJournal: @escaping () -> Int32?) throws {
        try self.init({ file }, makeJournal: makeJournal)
    }

    package convenience init(
        _ openDatabase: @escaping () throws -> any LayeredFile, makeJournal: @escaping () -> Int32?
    ) throws {
        try self.init { flags in
            if flags & SQLITE_OPEN_MAIN_DB != 0 { return try openDatabase() }
            if flags & Self.scratchFlags != 0 { return try Self.scratch(makeJournal) }
            return makeJournal().map {
                Scratch(DescriptorFile(descriptor: $0, path: "", closesDescriptor: true))
            }
        }
    }

    /// Creates a layer on top of SQLite's own, for a database that other connections may have open.
    ///
    /// - Parameters:
    ///   - path: The path of the database, without symbolic links.
    ///   - readsAhead: Whether the database is read from beginning to end.
    ///   - makeScratch: Opens a new file without a name, for reading and writing; returns `nil` if that is not possible.
    ///     By default, the file is in the database's folder.
    package convenience init(
        guarding path: String, readsAhead: Bool = false, makeScratch: (() -> Int32?)? = nil
    ) throws {
        let makeScratch = makeScratch ?? { try? Folder(FileSystem.split(path).folder).createNameless() }
        try self.init(path: path, readsAhead: readsAhead) { _ in try Self.scratch(makeScratch) }
    }

    /// Returns a temporary file, which is kept in memory if it cannot be created or encrypted.
    private static func scratch(_ makeFile: () -> Int32?) throws -> any LayeredFile {
        let file = makeFile().map { DescriptorFile(descriptor: $0, path: "", closesDescriptor: true) }
        return try file.flatMap { EncryptedScratch($0) } ?? OverlayFile(over: nil, OverlayBudget(.max))
    }

    init(
        path: String? = nil, hasLog: Bool = false, readsAhead: Bool = false,
        _ openFile: @escaping (Int32) throws -> (any LayeredFile)?
    ) throws {
        guard let base = sqlite3_vfs_find(nil) else {
            throw DatabaseError(extendedCode: DatabaseError.inputOutput, message: "SQLite has no default VFS")
        }
        self.openFile = openFile
        self.hasLog = hasLog
        self.readsAhead = readsAhead
        self.path = path
        layer = .allocate(capacity: 1)
        // Each layer has its own name, so that upgrades of several files can run at the same time.
        name = "cipherstore-\(UInt(bitPattern: layer))"
        let name = Array(name.utf8CString)
        nameBytes = .allocate(capacity: name.count)
        nameBytes.initialize(from: name, count: name.count)
        var vfs = path == nil ? Self.methods(base.pointee) : Self.guardingMethods(base.pointee)
        vfs.pNext = nil
        vfs.zName = UnsafePointer(nameBytes)
        layer.initialize(to: Layer(vfs: vfs, owner: .passUnretained(self)))
        let result = layer.withMemoryRebound(to: sqlite3_vfs.self, capacity: 1) { sqlite3_vfs_register($0, 0) }
        guard result == SQLITE_OK else {
            throw DatabaseError(extendedCode: result, message: "SQLite could not register the file layer")
        }
    }

    deinit {
        layer.withMemoryRebound(to: sqlite3_vfs.self, capacity: 1) { _ = sqlite3_vfs_unregister($0) }
        layer.deallocate()
        nameBytes.deallocate()
    }

    /// Reports failures that SQLite does not check for: a write while a connection was being closed, or a query for the
    /// size.
    ///
    /// - Throws: ``DatabaseError``.
    package func check(_ path: String) throws {
        guard failure == SQLITE_OK else {
            throw DatabaseError(extendedCode: failure, message: "the file could not be read or written", path: path)
        }
    }

    /// Returns a layer's methods: time and random numbers come from the system, and the only files are those that
    /// `open` returns.
    private static func methods(_ base: sqlite3_vfs) -> sqlite3_vfs {
        var vfs = base
        vfs.szOsFile = Int32(MemoryLayout<LayeredFileHandle>.size)
        vfs.xOpen = { vfs, _, file, flags, granted in
            guard let vfs, let file else { return SQLITE_CANTOPEN }
            return vfs.withMemoryRebound(to: Layer.self, capacity: 1) { layer in
                layer.pointee.owner.takeUnretainedValue().open(file, flags, granted)
            }
        }
        vfs.xDelete = { _, _, _ in SQLITE_OK }
        vfs.xAccess = { vfs, name, _, result in
            let isLog = name.map { FileLayer.bytes($0).suffix(4) == Array("-wal".utf8)[...] } ?? false
            result?.pointee = vfs.map { isLog && FileLayer.owner($0).hasLog } == true ? 1 : 0
            return SQLITE_OK
        }
        vfs.xFullPathname = { _, path, capacity, result in
            guard let path, let result else { return SQLITE_CANTOPEN }
            for index in 0..<Int(capacity) {
                result[index] = path[index]
                if path[index] == 0 { return SQLITE_OK }
            }
            return SQLITE_CANTOPEN
        }
        return vfs
    }

    private static func owner(_ vfs: UnsafeMutablePointer<sqlite3_vfs>) -> FileLayer {
        vfs.withMemoryRebound(to: Layer.self, capacity: 1) { $0.pointee.owner.takeUnretainedValue() }
    }

    private static func bytes(_ name: UnsafePointer<CChar>) -> [UInt8] {
        Array(UnsafeRawBufferPointer(start: name, count: strlen(name)))
    }

    private static func guardingMethods(_ base: sqlite3_vfs) -> sqlite3_vfs {
        var vfs = base
        vfs.szOsFile = GuardedFile.size
        vfs.xOpen = { vfs, name, file, flags, granted in
            guard let vfs, let file, let base = sqlite3_vfs_find(nil), GuardedFile.fits(base.pointee)
            else { return SQLITE_CANTOPEN }
            // Only temporary files have no name. SQLite's own layer would write them as plaintext.
            guard name != nil else { return FileLayer.owner(vfs).open(file, flags, granted) }
            // SQLite's own layer keeps the pointer to the name.
            let result = base.pointee.xOpen(base, name, file, flags, granted)
            if result == SQLITE_OK, flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL) != 0 {
                GuardedFile.install(in: file, isLog: flags & SQLITE_OPEN_WAL != 0, of: FileLayer.owner(vfs))
            }
            if result == SQLITE_OK, let name = name.map({ FileLayer.bytes($0) }) {
                let created = SQLITE_OPEN_CREATE | SQLITE_OPEN_EXCLUSIVE
                if flags & SQLITE_OPEN_MAIN_DB != 0 {
                    FileLayer.owner(vfs).removable.formUnion(["-journal", "-wal"].map { name + Array($0.utf8) })
                } else if flags & created == created {
                    FileLayer.owner(vfs).removable.insert(name)
                }
            }
            return result
        }
        vfs.xDelete = { vfs, name, syncs in
            guard let vfs, let name else { return SQLITE_IOERR }
            guard FileLayer.owner(vfs).removable.contains(FileLayer.bytes(name)), let base = sqlite3_vfs_find(nil)
            else { return SQLITE_OK }
            return base.pointee.xDelete(base, name, syncs)
        }
        return vfs
    }

    /// Removes a file in the same way as SQLite, for tests.
    ///
    /// - Returns: Whether SQLite would consider the file removed.
    package func remove(_ path: String) -> Bool {
        layer.withMemoryRebound(to: sqlite3_vfs.self, capacity: 1) { $0.pointee.xDelete($0, path, 0) == SQLITE_OK }
    }

    private func open(
        _ file: UnsafeMutablePointer<sqlite3_file>, _ flags: Int32, _ granted: UnsafeMutablePointer<Int32>?
    ) -> Int32 {
        file.pointee.pMethods = nil
        // Decryption throws if memory runs short or libcrypto fails; SQLite has no code for that.
        guard let opened = (try? openFile(flags)) ?? nil else { return SQLITE_CANTOPEN }
        granted?.pointee = flags
        file.withMemoryRebound(to: LayeredFileHandle.self, capacity: 1) {
            let isScratch = flags & Self.scratchFlags != 0
            $0.pointee.opened = .passRetained(OpenLayeredFile(opened, self, isScratch: isScratch))
            $0.pointee.base.pMethods = LayeredFileHandle.methods
        }
        return SQLITE_OK
    }

    /// `SQLITE_IOERR_SHORT_READ`, which is a macro that Swift does not import.
    private static let shortRead = SQLITE_IOERR | 2 << 8

    /// Returns SQLite's result code for a read that returned these bytes.
    func judge(_ result: Int32, _ bytes: UnsafeRawBufferPointer, isFirstPage: () -> Bool) -> Int32 {
        guard let cipherPages else { return result }
        guard cipherPages.admit(bytes, isFirstPage: isFirstPage) else { return SQLITE_NOTADB }
        self.cipherPages?.adoptReserved(bytes)
        // If the file ends within a page, the rest of the buffer is filled with zeros.
        guard result == SQLITE_OK || result == Self.shortRead,
            cipherPages.refuseBlank(bytes, isFirstPage: isFirstPage)
        else { return result }
        return SQLITE_CORRUPT
    }

    fileprivate func remember(_ result: Int32) {
        if failure == SQLITE_OK { failure = result }
    }
}

/// A file as SQLite reads and writes it; results are SQLite's codes.
package protocol LayeredFile: AnyObject {
    func getSize(_ size: inout Int64) -> Int32
    func read(into buffer: UnsafeMutableRawPointer, count: Int, offset: Int64) -> Int32
    func write(_ content: UnsafeRawPointer, count: Int, offset: Int64) -> Int32
    func truncate(to size: Int64) -> Int32
    func sync() -> Int32
    func close() -> Int32
}

extension DescriptorFile: LayeredFile {
    package func close() -> Int32 { SQLITE_OK }
}

/// A journal without a name.
///
/// It does not survive a crash, so it need not be synced to the disk.
private final class Scratch: LayeredFile {
    private let file: DescriptorFile

    init(_ file: DescriptorFile) {
        self.file = file
    }

    func getSize(_ size: inout Int64) -> Int32 { file.getSize(&size) }
    func read(into buffer: UnsafeMutableRawPointer, count: Int, offset: Int64) -> Int32 {
        file.read(into: buffer, count: count, offset: offset)
    }
    func write(_ content: UnsafeRawPointer, count: Int, offset: Int64) -> Int32 {
        file.write(content, count: count, offset: offset)
    }
    func truncate(to size: Int64) -> Int32 { file.truncate(to: size) }
    func sync() -> Int32 { SQLITE_OK }
    func close() -> Int32 { SQLITE_OK }
}

/// An open file of the layer, which reports its failures to the layer.
private final class OpenLayeredFile {
    let file: any LayeredFile
    private let layer: FileLayer
    /// Whether the pages, if there are any, are not the database's.
    private let isScratch: Bool

    init(_ file: any LayeredFile, _ layer: FileLayer, isScratch: Bool) {
        self.file = file
        self.layer = layer
        self.isScratch = isScratch
    }

    func fail(_ result: Int32) { layer.remember(result) }

    func read(into buffer: UnsafeMutableRawPointer, count: Int, offset: Int64) -> Int32 {
        let result = file.read(into: buffer, count: count, offset: offset)
        guard !isScratch else { return result }
        return layer.judge(result, UnsafeRawBufferPointer(start: buffer, count: count)) { offset == 0 }
    }

    func close() -> Int32 {
        let result = file.close()
        layer.remember(result)
        return result
    }
}

/// The structure that SQLite keeps for an open file; it begins with SQLite's own.
private struct LayeredFileHandle {
    var base: sqlite3_file
    var opened: Unmanaged<OpenLayeredFile>

    static func file(_ pointer: UnsafeMutablePointer<sqlite3_file>?) -> (any LayeredFile)? {
        pointer?.withMemoryRebound(to: LayeredFileHandle.self, capacity: 1) {
            $0.pointee.opened.takeUnretainedValue().file
        }
    }

    /// Records a failure that the caller may not check.
    private static func remember(_ result: Int32, _ pointer: UnsafeMutablePointer<sqlite3_file>?) -> Int32 {
        if result != SQLITE_OK {
            pointer?.withMemoryRebound(to: LayeredFileHandle.self, capacity: 1) {
                $0.pointee.opened.takeUnretainedValue().fail(result)
            }
        }
        return result
    }

    // Unchecked, but thread-safe: it is written once, when it is created, then only read, and never released.
    nonisolated(unsafe) static let methods: UnsafePointer<sqlite3_io_methods> = {
        var methods = sqlite3_io_methods()
        methods.iVersion = 1
        methods.xClose = { pointer in
            guard let pointer else { return SQLITE_OK }
            return pointer.withMemoryRebound(to: LayeredFileHandle.self, capacity: 1) {
                $0.pointee.base.pMethods = nil
                return $0.pointee.opened.takeRetainedValue().close()
            }
        }
        methods.xRead = { pointer, buffer, count, offset in
            guard let pointer, let buffer else { return DescriptorFile.readFailure }
            return pointer.withMemoryRebound(to: LayeredFileHandle.self, capacity: 1) {
                $0.pointee.opened.takeUnretainedValue().read(into: buffer, count: Int(count), offset: offset)
            }
        }
        methods.xWrite = { pointer, content, count, offset in
            guard let file = file(pointer), let content else { return DescriptorFile.writeFailure }
            return file.write(content, count: Int(count), offset: offset)
        }
        methods.xTruncate = { pointer, size in file(pointer)?.truncate(to: size) ?? SQLITE_IOERR }
        methods.xSync = { pointer, _ in file(pointer)?.sync() ?? SQLITE_IOERR }
        methods.xFileSize = { pointer, size in
            guard let file = file(pointer), let size else { return SQLITE_IOERR }
            // SQLCipher does not check the result, and would continue with any value in the variable.
            size.pointee = 0
            return remember(file.getSize(&size.pointee), pointer)
        }
        // No other process has the file open, so locks are not needed.
        methods.xLock = { _, _ in SQLITE_OK }
        methods.xUnlock = { _, _ in SQLITE_OK }
        methods.xCheckReservedLock = { _, result in
            result?.pointee = 0
            return SQLITE_OK
        }
        methods.xFileControl = { _, _, _ in SQLITE_NOTFOUND }
        methods.xSectorSize = { _ in 4096 }
        methods.xDeviceCharacteristics = { _ in 0 }
        let pointer = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
        pointer.initialize(to: methods)
        return UnsafePointer(pointer)
    }()
}
