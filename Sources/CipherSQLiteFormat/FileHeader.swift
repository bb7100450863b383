package import CipherPrimitives
package import CipherSQLite

/// The first bytes of a database file: its header, and the header of the b-tree page after it.
///
/// Source: SQLite, "Database File Format", section 1.3.
package struct FileHeader {
    package static let length = 112
    package static let smallestPage = 512
    private static let magic = Array("SQLite format 3\0".utf8)

    private let bytes: [UInt8]
    package let fileSize: Int64

    package init(_ file: DatabaseFile) throws {
        self.init(bytes: try file.read(at: 0, count: Self.length), fileSize: try file.size())
    }

    /// Reads the header; returns `nil` if the bytes end before the header does.
    package init?(of database: some ByteSource) throws {
        let count = Int(min(database.size, Int64(Self.length)))
        guard count >= 100, let bytes = try database.read(at: 0, count: count) else { return nil }
        self.init(bytes: bytes, fileSize: database.size)
    }

    package init(bytes: [UInt8], fileSize: Int64) {
        self.bytes = bytes
        self.fileSize = fileSize
    }

    /// Reads a header whose magic string is damaged; returns `nil` unless the rest is a valid header, and the beginning
    /// of a b-tree page follows it.
    package static func withDamagedMagic(_ bytes: [UInt8], fileSize: Int64) -> FileHeader? {
        guard bytes.count >= length else { return nil }
        let whole = magic + bytes[magic.count...]
        return isPlausible(whole) ? FileHeader(bytes: whole, fileSize: fileSize) : nil
    }

    package static func startsWithMagic(_ bytes: some Sequence<UInt8>) -> Bool { bytes.starts(with: magic) }

    /// Returns whether a file that begins with these bytes is plaintext.
    ///
    /// The magic string alone does not prove this: an encrypted file with a plaintext header has it, too, with random
    /// bytes from offset 32 on.
    ///
    /// SQLite writes zeros at offsets 72 to 91, but reads files that have other bytes at these offsets. For those
    /// files, the numbers in between and the beginning of the first b-tree page decide: random bytes pass with a
    /// probability of less than one in 2^60. A file that does not pass is not treated as plaintext.
    package static func isPlaintext(_ bytes: [UInt8]) -> Bool {
        guard startsWithMagic(bytes), bytes.count >= 92 else { return false }
        return bytes[FixedHeaderFields.zeros].allSatisfy { $0 == 0 } || isPlausible(bytes)
    }

    private static func isPlausible(_ bytes: [UInt8]) -> Bool {
        guard bytes.count >= length, FixedHeaderFields.areValid(bytes) else { return false }
        let header = FileHeader(bytes: bytes, fileSize: 0)
        let usable = header.pageSize - Int(bytes[20])
        // The root page of the schema table is a leaf or an interior page.
        let (isLeaf, isInterior) = (bytes[100] == 0x0d, bytes[100] == 0x05)
        let cells = Int(header.big16(103))
        let content = header.big16(105) == 0 ? 65536 : Int(header.big16(105))
        return (isLeaf || isInterior) && (isLeaf ? 108 : 112) + 2 * cells <= content && content <= usable
            && Int(header.big16(101)) < usable && bytes[107] <= 60
    }

    /// Whether the file is plaintext.
    ///
    /// An encrypted file consists of whole pages, so a file with the magic string that is shorter than a page is a
    /// truncated plaintext file.
    package var isPlaintext: Bool {
        Self.isPlaintext(bytes) || fileSize < Self.smallestPage && Self.startsWithMagic(bytes)
    }
    package var isEncryptedWithPlaintextHeader: Bool { Self.startsWithMagic(bytes) && !isPlaintext }

    /// Whether the header contains only zeros.
    package var isBlank: Bool { bytes.allSatisfy { $0 == 0 } }

    /// The salt of an encrypted file without a plaintext header.
    ///
    /// Source: SQLCipher Design, "Database Salt".
    package var salt: SecretBytes? {
        guard bytes.count >= CipherKey.saltLength, !Self.startsWithMagic(bytes) else { return nil }
        return SecretBytes(bytes[..<CipherKey.saltLength])
    }

    package var isWriteAheadLog: Bool { bytes.count > 19 && (bytes[18] == 2 || bytes[19] == 2) }
    /// SQLite's "file format read version": 1 for a rollback journal, 2 for a write-ahead log, greater for newer
    /// formats.
    package var readVersion: Int { bytes.count > 19 ? Int(bytes[19]) : 0 }
    package var pageSize: Int { bytes.count > 17 ? FixedHeaderFields.pageSize(bytes) : 0 }
    /// The page sizes; `nil` if SQLite does not support them.
    package var geometry: PageGeometry? {
        bytes.count > 20 ? PageGeometry(pageSize: pageSize, reserved: Int(bytes[20])) : nil
    }
    /// The first page of the free list; 0 if there is none.
    package var firstFreePage: UInt32 { big32(32) }
    /// The number of free pages.
    package var freePages: UInt32 { big32(36) }
    /// Whether the file has the pointer map of auto-vacuum.
    package var hasPointerMap: Bool { big32(52) != 0 }
    /// Whether free pages are kept until the app removes them; meaningful only with a pointer map.
    package var isIncrementalVacuum: Bool { big32(64) != 0 }
    /// The text encoding; `nil` for a number that SQLite does not know.
    package var textEncoding: TextEncoding? { big32(56) == 0 ? .utf8 : TextEncoding(rawValue: big32(56)) }
    /// SQLite's "schema format number", 1 to 4; 0 before the first table.
    package var schemaFormat: Int { Int(big32(44)) }
    package var defaultCacheSize: Int { Int(Int32(bitPattern: big32(48))) }
    /// The value of `PRAGMA user_version`.
    package var userVersion: Int { Int(Int32(bitPattern: big32(60))) }
    /// The value of `PRAGMA application_id`.
    package var applicationID: Int { Int(Int32(bitPattern: big32(68))) }
    /// The version number of the SQLite library that last wrote the file.
    package var writerVersion: Int { Int(big32(96)) }

    /// The number of pages that the header claims; `nil` if its counter differs from the change counter, because the
    /// number cannot be trusted then.
    package var claimedPages: Int? {
        guard bytes.count >= 100, big32(28) > 0, big32(24) == big32(92) else { return nil }
        return Int(big32(28))
    }

    /// The counter that SQLite changes each time it writes page 1; `nil` if an old release wrote the page, because such
    /// a release may not have changed the counter in a log.
    package var changeCounter: UInt32? {
        guard claimedPages != nil, writerVersion >= 3_008_000 else { return nil }
        return big32(24)
    }

    private func big16(_ offset: Int) -> UInt16 {
        guard bytes.count >= offset + 2 else { return 0 }
        return UInt16(bytes[offset]) << 8 | UInt16(bytes[offset + 1])
    }

    private func big32(_ offset: Int) -> UInt32 {
        guard bytes.count >= offset + 4 else { return 0 }
        return bytes[offset..<(offset + 4)].reduce(0) { $0 << 8 | UInt32($1) }
    }
}

/// The text encoding of a database.
package enum TextEncoding: UInt32, Sendable {
    case utf8 = 1
    case utf16LittleEndian = 2
    case utf16BigEndian = 3
}

extension [UInt8] {
    /// Returns the big-endian number in four bytes, which must exist.
    package func big32(_ offset: Int) -> UInt32 { self[offset..<(offset + 4)].reduce(0) { $0 << 8 | UInt32($1) } }
}
