internal import CCipherEngine
internal import CipherErrors

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// A file layer for SQLite that leads to one database.
///
/// SQLite opens files by path and follows what it finds there, and other users may be able to write the folder. So a
/// copy that is being built is reached through the descriptor that it was created with, whatever has its name by then.
/// Its journals are files without a name: nothing can be put in their place either, and a crash leaves none behind.
/// There are no locks, for no one else knows the file.
///
/// A database of others is opened by its path, without following links, and nothing is removed but the journals and logs
/// of what the connection has opened, and what it has created: a hot journal may name any other file to be removed with it,
/// and may be put there at any moment.
///
/// Either reads no first page whose size is not that of the connection's key.
/// Source: SQLite, "The SQLite OS Interface or VFS".
package final class FileLayer {
    /// The name under which SQLite finds it.
    let name: String

    /// What SQLite is given: its own structure first, and after it the way back to this object.
    private struct Layer {
        var vfs: sqlite3_vfs
        var owner: Unmanaged<FileLayer>
    }

    private let layer: UnsafeMutablePointer<Layer>
    private let nameBytes: UnsafeMutablePointer<CChar>
    /// The database that SQLite's own layer opens; `nil` for one that is open already.
    let path: String?
    /// Opens a file of the kind that SQLite's flags tell; `nil` if that cannot be done.
    private let openFile: (Int32) throws -> (any LayeredFile)?
    /// Whether a log lies beside the database.
    private let hasLog: Bool
    let readsAhead: Bool
    /// What SQLite may remove of a database of others; only one connection uses the layer.
    private var removable: Set<[UInt8]> = []
    /// The first failure of a file that is closed by now.
    private var failure = SQLITE_OK
    /// What the pages of the database must be like; `nil` for one without a key.
    var cipherPages: CipherPages?

    /// A layer over one file.
    ///
    /// - Parameters:
    ///   - file: The database.
    ///   - makeJournal: Opens a new file without a name, for reading and writing; `nil` if that cannot be done, and
    ///     then the connection must keep its journal in memory.
    package convenience init(_ file: DescriptorFile, makeJournal: @escaping () -> Int32?) throws {
        try self.init({ file }, makeJournal: makeJournal)
    }

    package convenience init(
        _ openDatabase: @escaping () throws -> any LayeredFile, makeJournal: @escaping () -> Int32?
    ) throws {
        try self.init { flags in
            if flags & SQLITE_OPEN_MAIN_DB != 0 { return try openDatabase() }
            return makeJournal().map {
                Scratch(DescriptorFile(descriptor: $0, path: "", closesDescriptor: true))
            }
        }
    }

    /// A layer over SQLite's own, for a database that others may have open.
    ///
    /// - Parameters:
    ///   - path: Without symbolic links.
    ///   - readsAhead: Whether the database is read from one end to the other.
    package convenience init(guarding path: String, readsAhead: Bool = false) throws {
        try self.init(path: path, readsAhead: readsAhead) { _ in nil }
    }

    init(
        path: String? = nil, hasLog: Bool = false, readsAhead: Bool = false,
        _ openFile: @escaping (Int32) throws -> (any LayeredFile)?
    ) throws {
        guard let base = sqlite3_vfs_find(nil) else {
            throw DatabaseError(extendedCode: DatabaseError.inputOutput, message: "SQLite has no file layer")
        }
        self.openFile = openFile
        self.hasLog = hasLog
        self.readsAhead = readsAhead
        self.path = path
        layer = .allocate(capacity: 1)
        // A name of its own for each, so that upgrades of several files can run at the same time.
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
            throw DatabaseError(extendedCode: result, message: "SQLite did not accept the file layer")
        }
    }

    deinit {
        layer.withMemoryRebound(to: sqlite3_vfs.self, capacity: 1) { _ = sqlite3_vfs_unregister($0) }
        layer.deallocate()
        nameBytes.deallocate()
    }

    /// Reports what failed where SQLite does not look: a write as a connection was being closed, or the question for the
    /// size.
    ///
    /// - Throws: ``DatabaseError``.
    package func check(_ path: String) throws {
        guard failure == SQLITE_OK else {
            throw DatabaseError(extendedCode: failure, message: "the file cannot be read or written", path: path)
        }
    }

    /// Time and random numbers are the system's; of files there are only those that `open` gives.
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
            // SQLite's own layer keeps the pointer that it is given.
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

    /// Removes a file as SQLite has it removed, for tests.
    ///
    /// Returns whether SQLite would take it for done.
    package func remove(_ path: String) -> Bool {
        layer.withMemoryRebound(to: sqlite3_vfs.self, capacity: 1) { $0.pointee.xDelete($0, path, 0) == SQLITE_OK }
    }

    private func open(
        _ file: UnsafeMutablePointer<sqlite3_file>, _ flags: Int32, _ granted: UnsafeMutablePointer<Int32>?
    ) -> Int32 {
        file.pointee.pMethods = nil
        // Where it throws, memory is short or libcrypto refuses: SQLite has no code for that.
        guard let opened = (try? openFile(flags)) ?? nil else { return SQLITE_CANTOPEN }
        granted?.pointee = flags
        file.withMemoryRebound(to: LayeredFileHandle.self, capacity: 1) {
            $0.pointee.opened = .passRetained(OpenLayeredFile(opened, self))
            $0.pointee.base.pMethods = LayeredFileHandle.methods
        }
        return SQLITE_OK
    }

    /// The result of a read that gave these bytes.
    func judge(_ result: Int32, _ bytes: UnsafeRawBufferPointer, isFirstPage: () -> Bool) -> Int32 {
        guard let cipherPages, !cipherPages.admit(bytes, isFirstPage: isFirstPage) else { return result }
        return SQLITE_NOTADB
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

/// A journal without a name: it does not outlive a crash, so nothing of it needs to be on the disk.
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

/// A file of the layer, with the layer that is told how it ended.
private final class OpenLayeredFile {
    let file: any LayeredFile
    private let layer: FileLayer

    init(_ file: any LayeredFile, _ layer: FileLayer) {
        self.file = file
        self.layer = layer
    }

    func fail(_ result: Int32) { layer.remember(result) }

    func read(into buffer: UnsafeMutableRawPointer, count: Int, offset: Int64) -> Int32 {
        layer.judge(
            file.read(into: buffer, count: count, offset: offset), UnsafeRawBufferPointer(start: buffer, count: count)
        ) { offset == 0 }
    }

    func close() -> Int32 {
        let result = file.close()
        layer.remember(result)
        return result
    }
}

/// What SQLite holds of an open file: its own structure first.
private struct LayeredFileHandle {
    var base: sqlite3_file
    var opened: Unmanaged<OpenLayeredFile>

    static func file(_ pointer: UnsafeMutablePointer<sqlite3_file>?) -> (any LayeredFile)? {
        pointer?.withMemoryRebound(to: LayeredFileHandle.self, capacity: 1) {
            $0.pointee.opened.takeUnretainedValue().file
        }
    }

    /// Keeps a failure that the caller may not look at.
    private static func remember(_ result: Int32, _ pointer: UnsafeMutablePointer<sqlite3_file>?) -> Int32 {
        if result != SQLITE_OK {
            pointer?.withMemoryRebound(to: LayeredFileHandle.self, capacity: 1) {
                $0.pointee.opened.takeUnretainedValue().fail(result)
            }
        }
        return result
    }

    // Unchecked, and safe between threads: written once, when it is made, then only read, and never released.
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
            // SQLCipher does not look at the result, and would go on with whatever stands there.
            size.pointee = 0
            return remember(file.getSize(&size.pointee), pointer)
        }
        // Nobody else knows the file.
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
