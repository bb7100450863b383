internal import CipherErrors
internal import CipherSQLite
internal import CipherSQLiteFormat

/// The apparent kind of a file that is not a plaintext database, by its bytes.
///
/// Encrypted pages look random, but random-looking bytes may be anything: only a key can show what they are.
struct ContentKind {
    /// The kind of file that the first bytes indicate, in words; `nil` if they indicate nothing.
    let name: String?
    /// Whether bytes 16 to 23 are those of a database header.
    ///
    /// SQLCipher encrypts these bytes; other formats leave them readable.
    let hasReadablePageSize: Bool
    /// The number of bytes at the beginning that do not look random.
    let plainStart: Int
    /// Whether there are bytes after this beginning, and they look random.
    let restIsRandom: Bool
    let isText: Bool
    let isBlank: Bool

    private static let chunk = 512

    init(_ file: DatabaseFile) throws {
        let size = try file.size()
        let start = try file.read(at: 0, count: 65_536)
        name = Self.name(of: start)
        hasReadablePageSize = Self.hasPageSize(start)
        // Sample the rest of a large file at several places.
        var chunks = stride(from: 0, to: start.count, by: Self.chunk).map {
            Array(start[$0..<min($0 + Self.chunk, start.count)])
        }
        for part in 1..<64 where size > Int64(start.count) {
            let offset = max(Int64(start.count), size / 64 * Int64(part)) / Int64(Self.chunk) * Int64(Self.chunk)
            chunks.append(try file.read(at: offset, count: Self.chunk))
        }
        // A short last chunk proves nothing.
        if chunks.count > 1, let last = chunks.last, last.count < 64 { chunks.removeLast() }
        let looks = chunks.map(Self.looksRandom)
        plainStart = (looks.firstIndex(of: true) ?? looks.count) * Self.chunk
        // A few damaged pages, or space that was allocated in advance, do not mean that the file is not a database.
        let rest = zip(chunks, looks).drop { !$0.1 }.filter { chunk, _ in chunk.contains { $0 != 0 } }
        restIsRandom = !rest.isEmpty && rest.count(where: { $0.1 }) * 4 >= rest.count * 3
        isText =
            !start.isEmpty && start.allSatisfy { $0 >= 0x20 && $0 != 0x7f || [9, 10, 12, 13].contains($0) }
            && String(utf8: start) != nil
        isBlank = !start.isEmpty && chunks.allSatisfy { $0.allSatisfy { $0 == 0 } }
    }

    /// Whether the whole file looks like an encrypted one.
    var isRandom: Bool { plainStart == 0 && restIsRandom }

    /// Returns whether the counts of the 256 byte values look random.
    ///
    /// For random bytes, the sum of their squared deviations is near its mean; it exceeds the limit used here for fewer
    /// than one in 10^9 chunks.
    private static func looksRandom(_ bytes: [UInt8]) -> Bool {
        guard bytes.count >= 16 else { return false }
        var counts = [Int](repeating: 0, count: 256)
        for byte in bytes { counts[Int(byte)] += 1 }
        let expected = Double(bytes.count) / 256
        let deviation = counts.reduce(0.0) { $0 + (Double($1) - expected) * (Double($1) - expected) / expected }
        return deviation < 430
    }

    /// Returns whether the bytes contain a readable page size.
    ///
    /// Sources: SQLite, "Database File Format", section 1.3; SQLite Encryption Extension, "Encryption Details", and
    /// SQLite3 Multiple Ciphers, "Legacy Cipher Schemes", which leave these bytes as they are.
    private static func hasPageSize(_ bytes: [UInt8]) -> Bool {
        guard bytes.count >= 24, !FileHeader.startsWithMagic(bytes) else { return false }
        let header = FileHeader(bytes: bytes, fileSize: 0)
        return header.geometry != nil && (1...2).contains(bytes[18]) && (1...2).contains(bytes[19])
            && bytes[21..<24].elementsEqual([64, 32, 32])
    }

    private static func name(of bytes: [UInt8]) -> String? {
        if LogHeader.length <= bytes.count, LogHeader.begins(bytes) { return "the -wal of a database" }
        if let known = beginnings.first(where: { bytes.starts(with: $0.bytes) }) { return known.name }
        if let known = signatures.first(where: { bytes.dropFirst($0.offset).starts(with: $0.text.utf8) }) {
            return known.name
        }
        return isDiskImage(bytes) ? "a disk image" : nil
    }

    /// Whether files of this kind can contain a database unchanged.
    var mayContainDatabase: Bool {
        name.map { ["a tar archive", "a zip archive", "a disk image"].contains($0) } ?? false
    }

    /// Signatures that are at a fixed offset rather than at the beginning of a file.
    private static let signatures: [(offset: Int, text: String, name: String)] = [
        (257, "ustar", "a tar archive"), (4, "ftyp", "a video or an image"), (512, "EFI PART", "a disk image"),
        (32_769, "CD001", "a disk image"),
    ]

    /// Returns whether the bytes begin with a partition table, or with an ext2, ext3 or ext4 file system.
    private static func isDiskImage(_ bytes: [UInt8]) -> Bool {
        guard bytes.count >= 1082 else { return false }
        let partitions = [446, 462, 478, 494].map { bytes[$0] }
        return bytes[510..<512].elementsEqual([0x55, 0xaa]) && partitions.allSatisfy { $0 == 0 || $0 == 0x80 }
            || bytes[..<1024].allSatisfy { $0 == 0 } && bytes[1080..<1082].elementsEqual([0x53, 0xef])
    }

    private static let beginnings: [(bytes: [UInt8], name: String)] =
        [
            (JournalHeader.magic, "the -journal of a database"),
            ([0x1f, 0x8b, 0x08], "a gzip file"), ([0x50, 0x4b, 0x03, 0x04], "a zip archive"),
            ([0x50, 0x4b, 0x05, 0x06], "an empty zip archive"), ([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00], "an xz file"),
            ([0x28, 0xb5, 0x2f, 0xfd], "a zstd file"), ([0x04, 0x22, 0x4d, 0x18], "an lz4 file"),
            ([0x37, 0x7a, 0xbc, 0xaf, 0x27, 0x1c], "a 7z archive"), ([0x89, 0x50, 0x4e, 0x47], "a PNG image"),
            ([0xff, 0xd8, 0xff, 0xe0], "a JPEG image"), ([0xff, 0xd8, 0xff, 0xe1], "a JPEG image"),
            ([0x7f, 0x45, 0x4c, 0x46], "a program (ELF)"), ([0xcf, 0xfa, 0xed, 0xfe], "a program (Mach-O)"),
            ([0x00, 0x01, 0x00, 0x00] + Array("Standard ".utf8), "a Microsoft Access database"),
        ]
        + [
            ("BZh9", "a bzip2 file"), ("%PDF-", "a PDF document"), ("GIF8", "a GIF image"),
            ("Rar!\u{1a}", "a rar archive"), ("bplist00", "a property list"), ("Salted__", "an `openssl enc` file"),
            ("age-encryption.org/", "an age file"), ("-----BEGIN PGP", "a PGP file"), ("LUKS", "a LUKS volume"),
            ("ANDROID BACKUP", "an Android backup"), ("version https://git-lfs", "a Git LFS pointer"),
            ("** This file contains an SQLite 2", "an SQLite 2 database"),
            ("PRAGMA foreign_keys=OFF;", "an SQL dump of a database"),
        ].map { (Array($0.0.utf8), $0.1) }
}
