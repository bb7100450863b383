internal import CCipherEngine
internal import CipherPlatform

/// The properties of the pages that SQLCipher reads and writes in one file; SQLite's pages must have the same ones.
///
/// SQLite takes its page size from the header in page 1, which may be readable in an encrypted file. SQLCipher
/// continues with the page size of its format, and writes beyond the buffer of a smaller page (4.6.1, `sqlite3Codec`).
/// Therefore, page 1 is checked in SQLite's own buffer as it is read, from the file or its log; no earlier check would
/// see the same bytes. In format 1, which authenticates nothing, the whole header is checked as it is decrypted: an
/// attacker who cannot read it can still change it, and under a raw key, a file with other settings decrypts to a header
/// of which 16 bytes are noise. Source: SQLite, "Database File Format", sections 1.3.2 and 1.3.4.
struct CipherPages {
    /// The page size in bytes.
    let size: Int
    /// The number of bytes at the end of each page that SQLCipher needs and SQLite must leave free.
    let reserved: Int
    /// The numbers of reserved bytes that a readable header may state; only one, once page 1 was read.
    var readableReserved: Set<Int>
    /// Whether the content of authentic pages has shown that a readable header states the right number.
    var isReservedSizeProven: Bool
    /// A closure that decrypts the header on page 1, for a format that does not authenticate it.
    ///
    /// The first 16 bytes of the result are not used. The result is empty if the decryption fails.
    let decryptHeader: ((UnsafeRawBufferPointer) -> [UInt8])?
    /// Whether a page of zeros is refused.
    ///
    /// SQLCipher reads such a page as if it were authentic, because SQLite may have allocated the page without writing
    /// it. SQLite reads a page like that only to reuse it, so a connection that never writes refuses it.
    var refusesBlankPages: Bool

    /// Returns whether these bytes are a page of zeros, other than page 1, that is refused.
    ///
    /// - Parameter isFirstPage: Returns whether the bytes are page 1.
    func refuseBlank(_ bytes: UnsafeRawBufferPointer, isFirstPage: () -> Bool) -> Bool {
        refusesBlankPages && bytes.count == size && bytes.allSatisfy { $0 == 0 } && !isFirstPage()
    }

    /// Returns whether these bytes of a file contain no header, or the header of a file with pages of these properties.
    ///
    /// The chance that an encrypted page begins like a readable header is one in 2^128. More bytes may be left free
    /// than needed: in the older formats, SQLCipher 4 leaves as many free as in its own. A readable header, which
    /// anyone can change, must state one of these two numbers, because the values on each page depend on it.
    ///
    /// - Parameter isFirstPage: Returns whether the bytes are page 1.
    func admit(_ bytes: UnsafeRawBufferPointer, isFirstPage: () -> Bool) -> Bool {
        guard bytes.count >= 24, let start = bytes.baseAddress else { return true }
        if memcmp(start, "SQLite format 3", 16) == 0 {
            return admitHeader(bytes[16..<24]) && readableReserved.contains(Int(bytes[20]))
        }
        guard let decryptHeader, bytes.count == size, isFirstPage() else { return true }
        let header = decryptHeader(bytes)
        return FixedHeaderFields.areValid(header) && header[FixedHeaderFields.zeros].allSatisfy { $0 == 0 }
            && header.withUnsafeBytes { admitHeader($0[16..<24]) }
    }

    /// Accepts from now on only the number of reserved bytes in a readable header that was admitted.
    mutating func adoptReserved(_ bytes: UnsafeRawBufferPointer) {
        guard readableReserved.count > 1, bytes.count >= 24, let start = bytes.baseAddress,
            memcmp(start, "SQLite format 3", 16) == 0
        else { return }
        readableReserved = [Int(bytes[20])]
    }

    /// Checks the bytes of a header from offset 16 on.
    private func admitHeader(_ bytes: Slice<UnsafeRawBufferPointer>) -> Bool {
        let first = bytes.startIndex
        let size = Int(bytes[first]) << 8 | Int(bytes[first + 1])
        return (size == 1 ? 65_536 : size) == self.size && Int(bytes[first + 4]) >= reserved
    }
}

/// This library's data for a file of SQLite's own layer, stored after that layer's data.
///
/// Source: SQLite, "The SQLite OS Interface or VFS": a file points to a table of its methods, and a replacement table
/// can pass every call on.
struct GuardedFile {
    private let methods: sqlite3_io_methods
    private let base: UnsafePointer<sqlite3_io_methods>
    private let layer: Unmanaged<FileLayer>
    private let isLog: Bool
    /// The read-ahead buffer; `nil` if each read is passed to the system.
    private let ahead: Unmanaged<ReadAhead>?

    /// The offset at which this data begins, after the file structure of the layer that was the default when the first
    /// database was opened.
    private static let offset = (Int(sqlite3_vfs_find(nil)?.pointee.szOsFile ?? 0) + 15) / 16 * 16

    /// The size of a file structure followed by this data.
    static let size = Int32(offset + MemoryLayout<GuardedFile>.size)

    /// Returns whether the files of a layer have room for this data.
    static func fits(_ base: sqlite3_vfs) -> Bool { base.szOsFile <= offset }

    /// Begins to check what is read from an open file, until it is closed.
    static func install(in file: UnsafeMutablePointer<sqlite3_file>, isLog: Bool, of layer: FileLayer) {
        guard let methods = file.pointee.pMethods else { return }
        var replaced = methods.pointee
        // Version 3 is the newest version that this code knows.
        replaced.iVersion = min(replaced.iVersion, 3)
        replaced.xRead = { file, buffer, count, offset in
            guard let file, let buffer else { return DescriptorFile.readFailure }
            let guarded = GuardedFile.of(file)
            let base = guarded.pointee.base.pointee
            return guarded.pointee.layer.takeUnretainedValue().judge(
                guarded.pointee.read(file, buffer, count, offset),
                UnsafeRawBufferPointer(start: buffer, count: Int(count))
            ) {
                guard guarded.pointee.isLog else { return offset == 0 }
                // A frame begins with the number of its page.
                var number: UInt32 = 0
                return base.xRead(file, &number, 4, offset - 24) == SQLITE_OK && number.bigEndian == 1
            }
        }
        replaced.xClose = { file in
            guard let file else { return SQLITE_OK }
            let guarded = GuardedFile.of(file)
            file.pointee.pMethods = guarded.pointee.base
            guarded.pointee.ahead?.release()
            return guarded.pointee.base.pointee.xClose(file)
        }
        let readsAhead = layer.readsAhead && !isLog
        repeatUnlocks(&replaced)
        if readsAhead { forgetAtWrites(&replaced) }
        let guarded = of(file)
        guarded.initialize(
            to: GuardedFile(
                methods: replaced, base: methods, layer: .passUnretained(layer), isLog: isLog,
                ahead: readsAhead ? .passRetained(ReadAhead()) : nil))
        file.pointee.pMethods = UnsafeRawPointer(guarded).assumingMemoryBound(to: sqlite3_io_methods.self)
    }

    /// Makes the file repeat a failed unlock once, and discard its read-ahead buffer when a lock changes, because the
    /// buffer is valid only while a lock is held.
    ///
    /// If a signal interrupts the system's call, SQLite continues to count the lock as held, and every connection of the
    /// process waits for it until the one that holds it closes. Source: SQLite 3.46.1, `unixShmLock` and `posixUnlock`.
    private static func repeatUnlocks(_ methods: inout sqlite3_io_methods) {
        methods.xLock = { file, level in
            guard let file else { return SQLITE_IOERR }
            return GuardedFile.of(file).pointee.forgetting.xLock(file, level)
        }
        methods.xUnlock = { file, level in
            guard let file else { return SQLITE_IOERR }
            let base = GuardedFile.of(file).pointee.forgetting
            let result = base.xUnlock(file, level)
            return result == SQLITE_OK ? result : base.xUnlock(file, level)
        }
        methods.xShmLock = { file, offset, count, flags in
            guard let file else { return SQLITE_IOERR }
            let base = GuardedFile.of(file).pointee.forgetting
            let result = base.xShmLock(file, offset, count, flags)
            guard result != SQLITE_OK, flags & SQLITE_SHM_UNLOCK != 0 else { return result }
            return base.xShmLock(file, offset, count, flags)
        }
    }

    /// Makes the file discard its read-ahead buffer when the file changes.
    private static func forgetAtWrites(_ methods: inout sqlite3_io_methods) {
        methods.xWrite = { file, content, count, offset in
            guard let file else { return SQLITE_IOERR }
            return GuardedFile.of(file).pointee.forgetting.xWrite(file, content, count, offset)
        }
        methods.xTruncate = { file, size in
            guard let file else { return SQLITE_IOERR }
            return GuardedFile.of(file).pointee.forgetting.xTruncate(file, size)
        }
    }

    /// Discards the read-ahead buffer, and returns the underlying methods.
    private var forgetting: sqlite3_io_methods {
        ahead?.takeUnretainedValue().forget()
        return base.pointee
    }

    private func read(
        _ file: UnsafeMutablePointer<sqlite3_file>, _ buffer: UnsafeMutableRawPointer, _ count: Int32, _ offset: Int64
    ) -> Int32 {
        let base = base
        guard let ahead else { return base.pointee.xRead(file, buffer, count, offset) }
        var result = SQLITE_OK
        _ = try? ahead.takeUnretainedValue().read(
            at: offset, into: UnsafeMutableRawBufferPointer(start: buffer, count: Int(count)),
            size: {
                var size: Int64 = 0
                return base.pointee.xFileSize(file, &size) == SQLITE_OK ? size : 0
            }
        ) { offset, buffer in
            result = base.pointee.xRead(file, buffer.baseAddress, Int32(buffer.count), offset)
            return result == SQLITE_OK
        }
        return result
    }

    private static func of(_ file: UnsafeMutablePointer<sqlite3_file>) -> UnsafeMutablePointer<GuardedFile> {
        (UnsafeMutableRawPointer(file) + offset).assumingMemoryBound(to: GuardedFile.self)
    }
}
