package import CipherSQLite

extension FileLayer {
    /// Returns whether the running engine and the settings allow a layer that seals pages.
    package static func canSeal(_ settings: CipherSettings, engine: Engine = .current) -> Bool {
        // SQLite 3.33 introduced the setting for reserved bytes at the end of each page.
        engine.sqliteVersionNumber >= 3_033_000
            && engine.defaultCompatibility >= CipherSettings.ownCode.compatibility && settings == .ownCode
    }

    /// Creates a layer through which a connection without a key writes a database that SQLCipher 4 reads.
    ///
    /// SQLCipher seals each page while the b-tree code waits; this layer seals pages on other threads, many at once. It
    /// is only a second writer of SQLCipher's format: its output is used only after SQLCipher has read all of it. It
    /// supports only SQLCipher's default format, a new file, and a connection without a journal, because a journal
    /// would be plaintext.
    /// Source: SQLCipher Design.
    ///
    /// - Parameters:
    ///   - file: The new file.
    ///   - key: The raw key with the salt of the new file.
    ///   - startThread: Starts a thread that runs a closure; returns `false` if the system cannot start one.
    package convenience init(
        sealing file: DescriptorFile, key: CipherKey,
        startThread: @escaping @Sendable (@escaping @Sendable () -> Void) -> Bool
    ) throws {
        let keys = try SealingKeys(key)
        try self.init({ try SealedFile(file, keys, startThread) }, makeJournal: { nil })
    }
}

/// Access to the pages of a sealed file; the pages are numbered from 1.
extension DescriptorFile {
    func write(_ bytes: UnsafePointer<UInt8>, count: Int, page: UInt32) -> Int32 {
        write(UnsafeRawPointer(bytes), count: count, offset: Self.offset(of: page))
    }

    func read(_ bytes: UnsafeMutablePointer<UInt8>, page: UInt32) -> Int32 {
        read(into: bytes, count: PageSealer.pageSize, offset: Self.offset(of: page))
    }

    private static func offset(of page: UInt32) -> Int64 { Int64(page - 1) * Int64(PageSealer.pageSize) }
}
