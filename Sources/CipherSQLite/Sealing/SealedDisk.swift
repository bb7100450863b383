internal import CSQLCipher

/// The file on the disk, as SQLite's own file layer opened it.
// Unchecked, and safe between threads: a file of SQLite's may seek before it reads or writes, so it does so only while
// `lock` is held.
final class SealedDisk: @unchecked Sendable {
    private let lock = Lock()
    let file: UnsafeMutablePointer<sqlite3_file>

    init(_ file: UnsafeMutablePointer<sqlite3_file>) {
        self.file = file
    }

    /// SQLite's file layer for Unix takes no more than 128 KB less a byte at once, and no page is longer than this.
    private static let longestWrite = 65_536

    var methods: sqlite3_io_methods { file.pointee.pMethods.pointee }

    func write(_ bytes: UnsafePointer<UInt8>, count: Int, page: UInt32) -> Int32 {
        let offset = Self.offset(of: page)
        return lock.withLock {
            for start in stride(from: 0, to: count, by: Self.longestWrite) {
                let length = min(Self.longestWrite, count - start)
                let result = methods.xWrite(file, bytes + start, Int32(length), offset + Int64(start))
                guard result == SQLITE_OK else { return result }
            }
            return SQLITE_OK
        }
    }

    func read(_ bytes: UnsafeMutablePointer<UInt8>, page: UInt32) -> Int32 {
        lock.withLock { methods.xRead(file, bytes, Int32(PageSealer.pageSize), Self.offset(of: page)) }
    }

    static func offset(of page: UInt32) -> Int64 { Int64(page - 1) * Int64(PageSealer.pageSize) }
}
