package import CipherPageOpening
package import CipherSQLite
package import CipherSQLiteFormat

/// The pages of a copy in SQLCipher 4's default format, read through its descriptor.
package typealias CopyPages = EncryptedPages<FilePages<ReadBytes>>

extension EncryptedPages where Sealed == FilePages<ReadBytes> {
    /// Returns whether copies with these settings can be read.
    static func canOpen(_ settings: CipherSettings) -> Bool { settings == .ownCode }

    /// Opens a copy for reading by one thread.
    ///
    /// - Parameter key: The raw key with the file's salt.
    /// - Throws: ``DamagedPage`` if the file does not end with a whole page; ``KeyError`` if the key lacks its salt or
    ///   the cryptographic library fails; ``DatabaseError`` if the file cannot be read.
    package convenience init(of file: DescriptorFile, key: CipherKey) throws {
        let settings = CipherSettings.ownCode
        let size = try file.size()
        let pageCount = UInt32(clamping: size / Int64(settings.pageSize))
        guard size % Int64(settings.pageSize) == 0,
            let geometry = PageGeometry(pageSize: settings.pageSize, reserved: settings.reservedBytes)
        else { throw DamagedPage(pageCount + 1, .missing) }
        let bytes = ReadBytes(size: size) { offset, buffer in
            guard let start = buffer.baseAddress else { return false }
            try file.fill(start, count: buffer.count, offset: offset)
            return true
        }
        try self.init(
            FilePages(bytes, geometry, pageCount: pageCount), key: key, settings: settings, checksSalt: true)
    }
}
