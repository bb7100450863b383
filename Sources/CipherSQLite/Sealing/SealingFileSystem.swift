internal import CSQLCipher

/// A file layer for SQLite through which a connection without a key writes a database that SQLCipher 4 reads.
///
/// SQLCipher seals each page while the b-tree waits; here pages are sealed on other threads, many at once. It is a second
/// writer of SQLCipher's format and no more than that: whatever it wrote counts only once SQLCipher has read all of it.
/// Only for SQLCipher's default format, for a new file that nobody else knows, and for a connection without a journal.
/// Source: SQLite, "The SQLite OS Interface or VFS"; SQLCipher Design.
package final class SealingFileSystem {
    /// The name under which SQLite finds it.
    let name: String

    /// What SQLite is given: its own structure first, and behind it the way back to this object.
    private struct Layer {
        var vfs: sqlite3_vfs
        var owner: Unmanaged<SealingFileSystem>
    }

    private let layer: UnsafeMutablePointer<Layer>
    private let nameBytes: UnsafeMutablePointer<CChar>
    private let base: UnsafeMutablePointer<sqlite3_vfs>
    private let keys: SealingKeys
    private let startThread: SealingCrew.ThreadStart
    /// The first failure of a file that is closed by now.
    fileprivate(set) var failure = SQLITE_OK

    /// Whether the running engine and the settings allow it.
    package static func canWrite(_ settings: CipherSettings, engine: Engine = .current) -> Bool {
        // The switch for bytes reserved at the end of each page came with SQLite 3.33.
        engine.sqliteVersionNumber >= 3_033_000 && engine.defaultCompatibility == 4
            && settings == CipherSettings(compatibility: 4)
    }

    /// A file layer for files with this key.
    ///
    /// - Parameters:
    ///   - key: The raw key with the salt of the new file.
    ///   - startThread: Starts a thread that runs a closure; `false` where there is none to be had.
    package init(
        key: CipherKey, startThread: @escaping @Sendable (@escaping @Sendable () -> Void) -> Bool
    ) throws {
        guard let base = sqlite3_vfs_find(nil) else {
            throw DatabaseError(extendedCode: DatabaseError.inputOutput, message: "SQLite has no file layer")
        }
        self.base = base
        keys = try SealingKeys(key)
        self.startThread = startThread
        layer = .allocate(capacity: 1)
        // A name of its own for each, so that upgrades of several files can run at the same time.
        name = "cipherstore-sealing-\(UInt(bitPattern: layer))"
        let name = Array(name.utf8CString)
        nameBytes = .allocate(capacity: name.count)
        nameBytes.initialize(from: name, count: name.count)
        var vfs = base.pointee
        vfs.pNext = nil
        vfs.zName = UnsafePointer(nameBytes)
        vfs.szOsFile = Int32(MemoryLayout<SealedFileHandle>.size)
        vfs.xOpen = { vfs, path, file, flags, granted in
            guard let vfs, let file else { return SQLITE_CANTOPEN }
            return vfs.withMemoryRebound(to: Layer.self, capacity: 1) { layer in
                layer.pointee.owner.takeUnretainedValue().open(path, file, flags, granted)
            }
        }
        layer.initialize(to: Layer(vfs: vfs, owner: .passUnretained(self)))
        let result = layer.withMemoryRebound(to: sqlite3_vfs.self, capacity: 1) { sqlite3_vfs_register($0, 0) }
        guard result == SQLITE_OK else {
            throw DatabaseError(extendedCode: result, message: "SQLite does not take the sealing file layer")
        }
    }

    deinit {
        layer.withMemoryRebound(to: sqlite3_vfs.self, capacity: 1) { _ = sqlite3_vfs_unregister($0) }
        layer.deallocate()
        nameBytes.deallocate()
    }

    /// Reports a write that failed when its connection was being closed, where SQLite does not look.
    ///
    /// - Throws: ``DatabaseError``.
    package func checkWritten(_ path: String) throws {
        guard failure == SQLITE_OK else {
            throw DatabaseError(extendedCode: failure, message: "the file cannot be written", path: path)
        }
    }

    private func open(
        _ path: UnsafePointer<CChar>?, _ file: UnsafeMutablePointer<sqlite3_file>, _ flags: Int32,
        _ granted: UnsafeMutablePointer<Int32>?
    ) -> Int32 {
        file.pointee.pMethods = nil
        // Journals and temporary files would be plaintext; a connection that is set up as it should be has none.
        guard flags & SQLITE_OPEN_MAIN_DB != 0, let open = base.pointee.xOpen else { return SQLITE_CANTOPEN }
        let memory = UnsafeMutableRawPointer.allocate(byteCount: Int(base.pointee.szOsFile), alignment: 16)
        memory.initializeMemory(as: UInt8.self, repeating: 0, count: Int(base.pointee.szOsFile))
        let disk = memory.assumingMemoryBound(to: sqlite3_file.self)
        let result = open(base, path, disk, flags, granted)
        guard result == SQLITE_OK else {
            memory.deallocate()
            return result
        }
        do {
            let sealed = OpenSealedFile(file: try SealedFile(disk, keys, startThread), memory: memory, owner: self)
            file.withMemoryRebound(to: SealedFileHandle.self, capacity: 1) {
                $0.pointee.opened = .passRetained(sealed)
                $0.pointee.base.pMethods = SealedFileHandle.methods
            }
            return SQLITE_OK
        } catch {
            // Out of memory, or libcrypto refuses: SQLite has no code for that.
            _ = disk.pointee.pMethods.pointee.xClose(disk)
            memory.deallocate()
            return SQLITE_CANTOPEN
        }
    }
}

/// A file of the layer with what must be released when it is closed.
private final class OpenSealedFile {
    let file: SealedFile
    private let memory: UnsafeMutableRawPointer
    private let owner: SealingFileSystem

    init(file: SealedFile, memory: UnsafeMutableRawPointer, owner: SealingFileSystem) {
        self.file = file
        self.memory = memory
        self.owner = owner
    }

    func close() -> Int32 {
        let result = file.close()
        if owner.failure == SQLITE_OK { owner.failure = result }
        memory.deallocate()
        return result
    }
}

/// What SQLite holds of an open file: its own structure first.
private struct SealedFileHandle {
    var base: sqlite3_file
    var opened: Unmanaged<OpenSealedFile>

    static func file(_ pointer: UnsafeMutablePointer<sqlite3_file>?) -> SealedFile? {
        pointer?.withMemoryRebound(to: SealedFileHandle.self, capacity: 1) {
            $0.pointee.opened.takeUnretainedValue().file
        }
    }

    // Unchecked, and safe between threads: written once, when it is made, then only read, and never released.
    nonisolated(unsafe) static let methods: UnsafePointer<sqlite3_io_methods> = {
        var methods = sqlite3_io_methods()
        methods.iVersion = 1
        methods.xClose = { pointer in
            guard let pointer else { return SQLITE_OK }
            return pointer.withMemoryRebound(to: SealedFileHandle.self, capacity: 1) {
                $0.pointee.base.pMethods = nil
                return $0.pointee.opened.takeRetainedValue().close()
            }
        }
        methods.xRead = { pointer, buffer, count, offset in
            guard let file = file(pointer), let buffer else { return SealedFile.readFailure }
            return file.read(into: buffer, count: count, offset: offset)
        }
        methods.xWrite = { pointer, content, count, offset in
            guard let file = file(pointer), let content else { return SealedFile.writeFailure }
            return file.write(content, count: count, offset: offset)
        }
        methods.xTruncate = { pointer, size in file(pointer)?.truncate(to: size) ?? SQLITE_IOERR }
        methods.xSync = { pointer, flags in file(pointer)?.sync(flags) ?? SQLITE_IOERR }
        methods.xFileSize = { pointer, size in
            guard let file = file(pointer), let size else { return SQLITE_IOERR }
            size.pointee = file.fileSize
            return SQLITE_OK
        }
        methods.xLock = { pointer, level in file(pointer)?.lock(level) ?? SQLITE_IOERR }
        methods.xUnlock = { pointer, level in file(pointer)?.unlock(level) ?? SQLITE_IOERR }
        methods.xCheckReservedLock = { pointer, result in
            file(pointer)?.checkReservedLock(result) ?? SQLITE_IOERR
        }
        methods.xFileControl = { _, _, _ in SQLITE_NOTFOUND }
        methods.xSectorSize = { pointer in file(pointer)?.sectorSize ?? 4096 }
        methods.xDeviceCharacteristics = { _ in 0 }
        let pointer = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
        pointer.initialize(to: methods)
        return UnsafePointer(pointer)
    }()
}
