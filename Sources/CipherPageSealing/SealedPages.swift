internal import CCipherEngine
package import CipherSQLite

/// A file whose pages are written one by one and sealed on several cores, as SQLCipher 4 seals them.
///
/// It is used for a copy whose pages have the content of another file's pages. As with
/// ``FileLayer/init(sealing:key:startThread:)``, the result is used only after other code has read it. Use it only if
/// ``FileLayer/canSeal(_:engine:)`` returns `true`.
// Not `Sendable`: the object belongs to one thread, as `SealedFile` does.
package final class SealedPages {
    private let file: SealedFile
    private let disk: DescriptorFile
    private let path: String

    /// Creates the pages of a file.
    ///
    /// - Parameters:
    ///   - disk: The file.
    ///   - key: The raw key with the salt of the file.
    ///   - path: The path to name in errors.
    ///   - startThread: Starts a thread that runs a closure; returns `false` if the system cannot start one.
    /// - Throws: ``KeyError`` for a key without its salt, or if the cryptographic library fails.
    package init(
        _ disk: DescriptorFile, key: CipherKey, path: String,
        startThread: @escaping @Sendable (@escaping @Sendable () -> Void) -> Bool
    ) throws {
        self.disk = disk
        self.path = path
        file = try SealedFile(disk, SealingKeys(key), startThread)
    }

    deinit { _ = file.close() }

    /// Truncates or extends the file; the new part contains zeros.
    ///
    /// - Throws: ``DatabaseError`` if the file could not be written, as every method of this class does.
    package func resize(toPages count: UInt32) throws {
        try check(file.truncate(to: Int64(count) * Int64(PageSealer.pageSize)))
    }

    /// Submits a page to be sealed and written.
    ///
    /// - Parameter content: The bytes of a whole page; the reserved bytes at its end are ignored.
    package func write(_ page: UInt32, _ content: UnsafeRawPointer) throws {
        try check(file.write(content, count: PageSealer.pageSize, offset: Self.offset(of: page)))
    }

    /// Writes zeros in place of a page, as in a page that SQLCipher has never written.
    package func clear(_ page: UInt32) throws {
        try flush()
        let zeros = [UInt8](repeating: 0, count: PageSealer.pageSize)
        try check(
            zeros.withUnsafeBytes { bytes in
                bytes.baseAddress.map { disk.write($0, count: bytes.count, offset: Self.offset(of: page)) } ?? SQLITE_OK
            })
    }

    /// Waits until the pages are in the file.
    package func flush() throws { try check(file.flush()) }

    private static func offset(of page: UInt32) -> Int64 { Int64(page - 1) * Int64(PageSealer.pageSize) }

    private func check(_ result: Int32) throws {
        guard result == SQLITE_OK else {
            throw DatabaseError(extendedCode: result, message: "the copy could not be written", path: path)
        }
    }
}
