internal import CCipherEngine

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// The pages that SQLCipher reads and writes of one file, which SQLite's must be like.
///
/// SQLite takes the size of its pages from the header in page 1, and an encrypted file may have a readable one.
/// SQLCipher continues with the size of its format, and writes beyond the buffer of a smaller page (4.6.1,
/// `sqlite3Codec`). So page 1 is looked at in SQLite's own buffer as it is read, from the file or its log: no look
/// beforehand would see what is there then. In format 1, which authenticates nothing, the header is looked at as it is
/// decrypted: who cannot read it can change it all the same. Source: SQLite, "Database File Format", sections 1.3.2 and
/// 1.3.4.
struct CipherPages {
    /// In bytes.
    let size: Int
    /// Bytes at the end of each page that SQLCipher needs, and SQLite must leave free.
    let reserved: Int
    /// Gives 16 bytes of page 1, from 16 on, where nothing authenticates them; they are empty where that fails.
    let decryptHeader: ((UnsafeRawBufferPointer) -> [UInt8])?

    /// Whether these bytes of a file hold no header, or one of such pages.
    ///
    /// A page that is encrypted does not begin as a readable header does, but once in 2^128. More may be left free than is
    /// needed: SQLite never takes back what a format left free that was set first.
    ///
    /// - Parameter isFirstPage: Whether they are page 1.
    func admit(_ bytes: UnsafeRawBufferPointer, isFirstPage: () -> Bool) -> Bool {
        guard bytes.count >= 24, let start = bytes.baseAddress else { return true }
        if memcmp(start, "SQLite format 3", 16) == 0 { return admitHeader(bytes[16..<24]) }
        guard let decryptHeader, bytes.count == size, isFirstPage() else { return true }
        let header = decryptHeader(bytes)
        return header.count == 16 && header.withUnsafeBytes { admitHeader($0[...]) }
    }

    /// The bytes of a header from 16 on.
    private func admitHeader(_ bytes: Slice<UnsafeRawBufferPointer>) -> Bool {
        let first = bytes.startIndex
        let size = Int(bytes[first]) << 8 | Int(bytes[first + 1])
        return (size == 1 ? 65_536 : size) == self.size && Int(bytes[first + 4]) >= reserved
    }
}

/// What is kept of a file of SQLite's own layer, behind what that layer keeps of it.
///
/// Source: SQLite, "The SQLite OS Interface or VFS": a file's methods are a table that it points to, and a table in its
/// place can pass every call on.
struct GuardedFile {
    private let methods: sqlite3_io_methods
    private let base: UnsafePointer<sqlite3_io_methods>
    private let layer: Unmanaged<FileLayer>
    private let isLog: Bool
    /// `nil` if each read is one of the system.
    private let ahead: Unmanaged<ReadAhead>?

    /// Where it begins, behind the file of the layer that was the default when the first database was opened.
    private static let offset = (Int(sqlite3_vfs_find(nil)?.pointee.szOsFile ?? 0) + 15) / 16 * 16

    /// The size of a file with this behind it.
    static let size = Int32(offset + MemoryLayout<GuardedFile>.size)

    /// Whether the files of a layer have the room.
    static func fits(_ base: sqlite3_vfs) -> Bool { base.szOsFile <= offset }

    /// Looks at what is read of an open file, until it is closed.
    static func install(in file: UnsafeMutablePointer<sqlite3_file>, isLog: Bool, of layer: FileLayer) {
        guard let methods = file.pointee.pMethods else { return }
        var replaced = methods.pointee
        // The newest that is known here.
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
        if readsAhead { forgetAtLocks(&replaced) }
        let guarded = of(file)
        guarded.initialize(
            to: GuardedFile(
                methods: replaced, base: methods, layer: .passUnretained(layer), isLog: isLog,
                ahead: readsAhead ? .passRetained(ReadAhead()) : nil))
        file.pointee.pMethods = UnsafeRawPointer(guarded).assumingMemoryBound(to: sqlite3_io_methods.self)
    }

    /// While a lock lasts, what is read under it stays as it is.
    private static func forgetAtLocks(_ methods: inout sqlite3_io_methods) {
        methods.xLock = { file, level in
            guard let file else { return SQLITE_IOERR }
            return GuardedFile.of(file).pointee.forgetting.xLock(file, level)
        }
        methods.xUnlock = { file, level in
            guard let file else { return SQLITE_IOERR }
            return GuardedFile.of(file).pointee.forgetting.xUnlock(file, level)
        }
        methods.xShmLock = { file, offset, count, flags in
            guard let file else { return SQLITE_IOERR }
            return GuardedFile.of(file).pointee.forgetting.xShmLock(file, offset, count, flags)
        }
        methods.xWrite = { file, content, count, offset in
            guard let file else { return SQLITE_IOERR }
            return GuardedFile.of(file).pointee.forgetting.xWrite(file, content, count, offset)
        }
        methods.xTruncate = { file, size in
            guard let file else { return SQLITE_IOERR }
            return GuardedFile.of(file).pointee.forgetting.xTruncate(file, size)
        }
    }

    /// The methods below, once what was read ahead is forgotten.
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
