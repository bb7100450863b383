internal import CipherErrors
internal import CipherPrimitives
package import CipherSQLite
package import CipherSQLiteFormat

/// The pages of an encrypted file in SQLCipher 4's default format, each authenticated before it is opened.
///
/// For the proof, which reads what the page sealer wrote: so this shares no code with the sealer but the cryptographic
/// library's algorithms, and derives the key of the page HMACs by itself. The file is read through its descriptor.
/// Source: SQLCipher Design, "Database Encryption and Decryption", "Per-Page MAC" and "Key Derivation".
// Not `Sendable`: the buffers and the contexts of the cryptographic library are one thread's.
package final class OpenedPages: PageSource {
    package let geometry: PageGeometry
    package let pageCount: UInt32
    /// The first page that was asked for and is not authentic; `nil` while there was none.
    package private(set) var forgedPage: UInt32?

    private static let pageSize = 4096
    private static let vectorSize = 16
    private static let macSize = 64
    private static let contentSize = pageSize - vectorSize - macSize
    private static let plaintextMagic = Array("SQLite format 3\0".utf8)

    private let file: DescriptorFile
    private let salt: SecretBytes
    private let decryption: AESCBC
    private let authentication: HMAC
    /// One sealed page, and after it the HMAC that it should have.
    private let memory: UnsafeMutablePointer<UInt8>

    /// Whether files with these settings can be read.
    package static func canOpen(_ settings: CipherSettings) -> Bool { settings == CipherSettings(compatibility: 4) }

    /// Opens a file for reading by one thread.
    ///
    /// - Parameter key: The raw key with the file's salt.
    /// - Throws: ``DamagedPage`` where the file does not end with a whole page; ``KeyError`` for a key without its salt, or
    ///   where the cryptographic library refuses; ``DatabaseError`` where the file cannot be read.
    package init(_ file: DescriptorFile, key: CipherKey) throws {
        guard let salt = key.salt else { throw KeyError.malformed }
        let encryptionKey = key.rawBytes
        // The salt of the HMAC key is the file's, each byte of it changed by 0x3a; two rounds.
        let macSalt = salt.withUnsafeBytes { $0.map { $0 ^ 0x3a } }
        let macKey = try SecretBytes(count: CipherKey.rawKeyLength) { output in
            let isDone = encryptionKey.withUnsafeBytes { key in
                macSalt.withUnsafeBytes {
                    Cryptography.pbkdf2(.sha512, password: key, salt: $0, rounds: 2, into: output)
                }
            }
            guard isDone else { throw KeyError.derivationFailed }
        }
        guard let decryption = encryptionKey.withUnsafeBytes({ AESCBC(.decrypt, key: $0) }),
            let authentication = macKey.withUnsafeBytes({ HMAC(.sha512, key: $0) }),
            let geometry = PageGeometry(pageSize: Self.pageSize, reserved: Self.vectorSize + Self.macSize)
        else { throw KeyError.derivationFailed }
        let size = try file.size()
        pageCount = UInt32(clamping: size / Int64(Self.pageSize))
        guard size % Int64(Self.pageSize) == 0 else { throw DamagedPage(pageCount + 1, .missing) }
        self.file = file
        self.salt = salt
        self.decryption = decryption
        self.authentication = authentication
        self.geometry = geometry
        memory = .allocate(capacity: Self.pageSize + Self.macSize)
    }

    deinit { memory.deallocate() }

    /// Authenticates a page and opens it into `scratch`; `nil` where it is missing or not authentic.
    ///
    /// - Throws: ``DatabaseError`` where the file cannot be read.
    package func lend(_ page: UInt32, _ scratch: UnsafeMutableRawBufferPointer) throws -> UnsafeRawBufferPointer? {
        guard page >= 1, page <= pageCount, let content = scratch.baseAddress, scratch.count >= Self.pageSize else {
            return nil
        }
        try file.fill(memory, count: Self.pageSize, offset: Int64(page - 1) * Int64(Self.pageSize))
        guard open(page, into: content.assumingMemoryBound(to: UInt8.self)) else {
            if forgedPage == nil { forgedPage = page }
            return nil
        }
        return UnsafeRawBufferPointer(start: content, count: Self.pageSize)
    }

    private func open(_ page: UInt32, into content: UnsafeMutablePointer<UInt8>) -> Bool {
        // The salt, in front of page 1, is neither encrypted nor authenticated: whoever opens the file takes it from there.
        let start = page == 1 ? CipherKey.saltLength : 0
        if start > 0 {
            let isSalt = salt.withUnsafeBytes {
                Cryptography.areEqual($0, UnsafeRawBufferPointer(start: memory, count: start))
            }
            guard isSalt else { return false }
        }
        let computed = memory + Self.pageSize
        guard authenticate(page, from: start, into: computed),
            Cryptography.areEqual(
                UnsafeRawBufferPointer(start: computed, count: Self.macSize),
                UnsafeRawBufferPointer(start: memory + Self.contentSize + Self.vectorSize, count: Self.macSize)),
            decryption.apply(
                memory + start, count: Self.contentSize - start, vector: memory + Self.contentSize,
                into: content + start)
        else { return false }
        if start > 0 { content.update(from: Self.plaintextMagic, count: start) }
        (content + Self.contentSize).update(repeating: 0, count: Self.vectorSize + Self.macSize)
        return true
    }

    /// The HMAC of the encrypted content, the initialisation vector and the page's number, lowest byte first.
    private func authenticate(_ page: UInt32, from start: Int, into mac: UnsafeMutablePointer<UInt8>) -> Bool {
        var number = page.littleEndian
        return authentication.begin()
            && authentication.update(memory + start, count: Self.contentSize + Self.vectorSize - start)
            && withUnsafeBytes(of: &number) { bytes in
                bytes.withMemoryRebound(to: UInt8.self) { bytes in
                    bytes.baseAddress.map { authentication.update($0, count: bytes.count) } ?? false
                }
            }
            && authentication.finish(into: mac)
    }
}
