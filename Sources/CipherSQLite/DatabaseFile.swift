internal import CCipherEngine
internal import CipherErrors
internal import CipherPlatform
internal import CipherSystemFiles

/// The bytes of a database file, accessed through SQLite's own file layer.
///
/// If this process opened, read and closed the file by other means, it would drop the POSIX locks that SQLite holds on
/// the file in the same process. SQLite's layer knows about those locks and preserves them.
/// Source: SQLite, "How To Corrupt An SQLite Database File", section 2.2.
package final class DatabaseFile {
    package enum Access: Sendable { case readOnly, readWrite }

    private let file: UnsafeMutablePointer<sqlite3_file>
    private let memory: UnsafeMutableRawPointer
    private var isOpen = true
    // SQLite's file layer keeps the pointer to the name as long as the file is open.
    private let name: UnsafeMutablePointer<CChar>
    private let path: String

    /// Opens an existing file.
    ///
    /// Opening takes no lock and changes nothing.
    package init(path: String, access: Access = .readOnly) throws {
        let flags = SQLITE_OPEN_MAIN_DB | (access == .readOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE)
        guard let vfs = sqlite3_vfs_find(nil), let open = vfs.pointee.xOpen else {
            throw DatabaseError(
                extendedCode: DatabaseError.inputOutput, message: "SQLite has no default VFS", path: path)
        }
        let bytes = SystemPath.bytes(path)
        let name = UnsafeMutablePointer<CChar>.allocate(capacity: bytes.count + 4)
        // A name created by SQLite ends with several NULs, because its parameters and the names of its sidecar files
        // may follow.
        name.initialize(repeating: 0, count: bytes.count + 4)
        for (index, byte) in bytes.enumerated() { name[index] = CChar(bitPattern: byte) }
        let memory = UnsafeMutableRawPointer.allocate(byteCount: Int(vfs.pointee.szOsFile), alignment: 16)
        memory.initializeMemory(as: UInt8.self, repeating: 0, count: Int(vfs.pointee.szOsFile))
        let file = memory.assumingMemoryBound(to: sqlite3_file.self)
        var granted: Int32 = 0
        let result = open(vfs, name, file, flags, &granted)
        guard result == SQLITE_OK else {
            let systemCode = errno
            memory.deallocate()
            name.deallocate()
            throw DatabaseError(
                extendedCode: result, message: "the file could not be opened", path: path, systemCode: systemCode)
        }
        self.file = file
        self.path = path
        self.name = name
        self.memory = memory
        guard access == .readOnly || granted & SQLITE_OPEN_READWRITE != 0 else {
            throw DatabaseError(extendedCode: SQLITE_READONLY, message: "the file is not writable", path: path)
        }
    }

    deinit { close() }

    /// Releases every lock and closes the file.
    ///
    /// A second call does nothing; no other method may be called afterwards.
    package func close() {
        guard isOpen else { return }
        _ = methods.xUnlock(file, SQLITE_LOCK_NONE)
        _ = methods.xClose(file)
        memory.deallocate()
        name.deallocate()
        isOpen = false
    }

    private var methods: sqlite3_io_methods { file.pointee.pMethods.pointee }

    private func check(_ result: Int32, _ message: String) throws {
        guard result == SQLITE_OK else {
            throw DatabaseError(extendedCode: result, message: message, path: path)
        }
    }

    /// The size in bytes.
    package func size() throws -> Int64 {
        var size: Int64 = 0
        try check(methods.xFileSize(file, &size), "the size of the file could not be read")
        return size
    }

    /// Returns up to `count` bytes from `offset`; fewer if the file ends first.
    package func read(at offset: Int64, count: Int) throws -> [UInt8] {
        let available = Int(max(0, min(Int64(count), try size() - offset)))
        guard available > 0 else { return [] }
        return try [UInt8](unsafeUninitializedCapacity: available) { buffer, initialized in
            try check(methods.xRead(file, buffer.baseAddress, Int32(available), offset), "the file could not be read")
            initialized = available
        }
    }

    /// Fills a buffer.
    ///
    /// - Returns: Whether the file has that many bytes from `offset` on.
    package func fill(_ buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws -> Bool {
        let result = methods.xRead(file, buffer.baseAddress, Int32(buffer.count), offset)
        guard result != DescriptorFile.shortRead else { return false }
        try check(result, "the file could not be read")
        return true
    }

    package func write(_ bytes: [UInt8], at offset: Int64) throws {
        try bytes.withUnsafeBytes {
            try check(methods.xWrite(file, $0.baseAddress, Int32($0.count), offset), "the file could not be written")
        }
    }

    package func sync() throws {
        try check(methods.xSync(file, SQLITE_SYNC_FULL), "the file could not be synced")
    }

    // MARK: Locks

    /// Runs `body` while no other connection, in any process, has the file open in WAL mode or is reading or writing
    /// it.
    ///
    /// - Parameter timeout: How long to wait for other connections.
    /// - Returns: The result of `body`; `nil` if the file was in use the whole time, so that `body` did not run.
    package func whileUnused<Result>(timeout: Duration = .zero, _ body: () throws -> Result) rethrows -> Result? {
        guard lock([SQLITE_LOCK_SHARED, SQLITE_LOCK_EXCLUSIVE], timeout: timeout, lettingGo: true) else { return nil }
        defer { unlock() }
        return try body()
    }

    /// Takes the write lock: other connections can read, but not write.
    ///
    /// - Parameter timeout: How long to wait for the lock.
    /// - Returns: Whether the lock was taken.
    package func reserve(timeout: Duration) -> Bool {
        lock([SQLITE_LOCK_SHARED, SQLITE_LOCK_RESERVED], timeout: timeout, lettingGo: true)
    }

    /// Upgrades a write lock to an exclusive lock, which excludes readers; while it waits, no new reader can begin.
    ///
    /// - Parameter timeout: How long to wait for readers.
    /// - Returns: Whether the lock was taken.
    package func exclude(timeout: Duration) -> Bool {
        lock([SQLITE_LOCK_EXCLUSIVE], timeout: timeout, lettingGo: false)
    }

    /// Releases every lock.
    package func unlock() {
        _ = methods.xUnlock(file, SQLITE_LOCK_NONE)
    }

    private func lock(_ levels: [Int32], timeout: Duration, lettingGo: Bool) -> Bool {
        let deadline = ContinuousClock.now + timeout
        while !levels.allSatisfy({ methods.xLock(file, $0) == SQLITE_OK }) {
            if lettingGo { unlock() }
            let left = ContinuousClock.now.duration(to: deadline)
            guard left > .zero else { return false }
            sqlite3_sleep(max(1, min(left.inMilliseconds, 10)))
        }
        return true
    }
}

extension Connection {
    /// Returns SQLite's own structure for the database file.
    ///
    /// The corresponding C call is `sqlite3_file_control` with `SQLITE_FCNTL_FILE_POINTER`.
    func mainFile() throws -> UnsafeMutablePointer<sqlite3_file> {
        var file: UnsafeMutablePointer<sqlite3_file>?
        let result = sqlite3_file_control(handle, "main", SQLITE_FCNTL_FILE_POINTER, &file)
        guard result == SQLITE_OK, let file, file.pointee.pMethods != nil else {
            throw DatabaseError(extendedCode: result, message: "the file is not open", path: path)
        }
        return file
    }
}

extension DatabaseFile: ReadableFile {}
