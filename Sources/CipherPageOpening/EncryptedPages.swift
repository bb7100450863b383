internal import CipherErrors
internal import CipherPrimitives
package import CipherSQLite
package import CipherSQLiteFormat

/// The pages of an encrypted database in any of SQLCipher's formats. Each page is authenticated before it is opened,
/// and a page that is not authentic is treated as missing.
///
/// It is used to verify the pages that the page sealer wrote, and for files that may be damaged anywhere. It shares no
/// code with the sealer except the cryptographic library's algorithms, and derives the key of the page HMACs itself.
/// The caller supplies the sealed pages, whether they are in the file, its log or its journal. Format 1 does not
/// authenticate pages.
/// Source: SQLCipher Design, "Database Encryption and Decryption", "Per-Page MAC" and "Key Derivation".
// Not `Sendable`: the buffers and the contexts of the cryptographic library belong to one thread.
package final class EncryptedPages<Sealed: PageSource>: PageSource {
    /// The sizes in the settings, until page 1 specifies more reserved bytes, as in old formats that a newer SQLCipher
    /// wrote.
    package var geometry: PageGeometry
    package var pageCount: UInt32 { sealed.pageCount }
    package var areAuthenticated: Bool { authenticator != nil }
    /// The first requested page that is not authentic; `nil` if all pages so far were authentic.
    package private(set) var forgedPage: UInt32?

    private let sealed: Sealed
    private let seal: PageSeal
    /// The length of the part of page 1 that is neither encrypted nor authenticated: the salt, or the plaintext part of
    /// the header.
    private let firstStart: Int
    /// The salt with which page 1 must begin; `nil` if it may be damaged.
    private let salt: SecretBytes?
    private let decryption: AESCBC
    /// The authenticator; `nil` in format 1.
    private let authenticator: PageAuthenticator?
    private let memory: UnsafeMutableRawBufferPointer
    /// The pages that follow, which are authenticated together if pages are requested in the order of their numbers.
    private let run: PageRun
    /// The number of the last page that was authenticated alone.
    private var lastAlone: UInt32 = 0
    private static var magic: [UInt8] { Array("SQLite format 3\0".utf8) }

    /// Creates the pages of a database.
    ///
    /// - Parameters:
    ///   - sealed: The pages as they are in the files, with the page size of the seal.
    ///   - key: The raw key with the file's salt.
    ///   - firstStart: The length of the part of page 1 that is neither encrypted nor authenticated.
    ///   - checksSalt: Whether page 1 is authentic only if it begins with that salt, from which the key is derived if
    ///     the file is opened with a passphrase.
    /// - Throws: ``KeyError`` for a key without its salt, or if the cryptographic library fails.
    package init(
        _ sealed: Sealed, key: CipherKey, seal: PageSeal, firstStart: Int, checksSalt: Bool = false
    ) throws {
        guard let salt = key.salt else { throw KeyError.malformed }
        let authenticator = PageAuthenticator(
            seal, key: key.rawBytes, salt: salt.withUnsafeBytes { Array($0) }, isForMany: true)
        guard let decryption = key.rawBytes.withUnsafeBytes({ AESCBC(.decrypt, key: $0) }),
            let geometry = PageGeometry(pageSize: seal.pageSize, reserved: seal.reserved),
            authenticator != nil || seal.hmac == nil
        else { throw KeyError.derivationFailed }
        self.sealed = sealed
        self.seal = seal
        self.decryption = decryption
        self.geometry = geometry
        self.authenticator = authenticator
        self.salt = checksSalt ? salt : nil
        self.firstStart = firstStart
        memory = .allocate(byteCount: seal.pageSize, alignment: 16)
        run = PageRun(pageSize: seal.pageSize)
    }

    /// Creates the pages of a database with settings that describe its seal.
    package convenience init(
        _ sealed: Sealed, key: CipherKey, settings: CipherSettings, checksSalt: Bool = false
    ) throws {
        try self.init(
            sealed, key: key, seal: PageSeal(settings),
            firstStart: max(CipherKey.saltLength, settings.plaintextHeaderSize), checksSalt: checksSalt)
    }

    deinit { memory.deallocate() }

    /// Sets the number of reserved bytes to the number on page 1, and returns whether the key protects that number.
    ///
    /// In the older formats, SQLCipher 4 reserves as many bytes as in its own. No other number is adopted from a
    /// readable header, because anyone can change it.
    @discardableResult package func adoptReservedSize() throws -> Bool {
        guard let stated = try header()?.geometry, stated.pageSize == seal.pageSize else { return false }
        let isReadable = firstStart > CipherKey.saltLength
        let isUsual = stated.pageSize - stated.usableSize == CipherSettings().reservedBytes
        if !isReadable || isUsual { geometry = stated }
        return !isReadable
    }

    /// Authenticates a page and opens it into `scratch`; returns `nil` if the page is missing or not authentic.
    package func lend(_ page: UInt32, _ scratch: UnsafeMutableRawBufferPointer) throws -> UnsafeRawBufferPointer? {
        guard scratch.count >= seal.pageSize else { return nil }
        let bytes: UnsafeRawBufferPointer
        let isAuthentic: Bool
        if try isInRun(page) {
            (bytes, isAuthentic) = run[page]
        } else {
            guard let sealed = try sealed.lend(page, memory), sealed.count >= seal.pageSize else { return nil }
            bytes = UnsafeRawBufferPointer(rebasing: sealed[..<seal.pageSize])
            isAuthentic = self.isAuthentic(bytes, page)
        }
        guard isAuthentic, open(bytes, page, into: scratch) else {
            if forgedPage == nil { forgedPage = page }
            return nil
        }
        return UnsafeRawBufferPointer(rebasing: scratch[..<seal.pageSize])
    }

    /// Returns whether a page is in the run of pages that were authenticated together.
    ///
    /// If the page follows that run, or the last page requested outside a run, a new run that begins with it is
    /// authenticated first.
    private func isInRun(_ page: UInt32) throws -> Bool {
        guard let authenticator, authenticator.takesMany else { return false }
        if run.contains(page) { return true }
        // Only a part of page 1 is authenticated.
        guard page > 1, page == run.end || page - 1 == lastAlone else {
            lastAlone = page
            return false
        }
        try run.fill(from: page, upTo: pageCount, sealed)
        run.areAuthentic = authenticator.areAuthentic(run.pages, from: page)
        return run.contains(page)
    }

    private func isAuthentic(_ page: UnsafeRawBufferPointer, _ number: UInt32) -> Bool {
        authenticator?.isAuthentic(page, number, from: start(of: number)) ?? true
    }

    /// Returns the length of the part of a page that is neither encrypted nor authenticated.
    private func start(of number: UInt32) -> Int { number == 1 ? firstStart : 0 }

    private func open(
        _ page: UnsafeRawBufferPointer, _ number: UInt32, into scratch: UnsafeMutableRawBufferPointer
    ) -> Bool {
        let start = start(of: number)
        guard let bytes = page.baseAddress?.assumingMemoryBound(to: UInt8.self),
            let content = scratch.baseAddress?.assumingMemoryBound(to: UInt8.self),
            number != 1 || hasSalt(page), seal.open(bytes, from: start, decryption, into: content)
        else { return false }
        if start > 0 {
            content.update(from: Self.magic, count: Self.magic.count)
            (content + Self.magic.count).update(from: bytes + Self.magic.count, count: start - Self.magic.count)
        }
        (content + seal.contentEnd).update(repeating: 0, count: seal.reserved)
        return true
    }

    private func hasSalt(_ page: UnsafeRawBufferPointer) -> Bool {
        salt?.withUnsafeBytes { Cryptography.areEqual($0, UnsafeRawBufferPointer(rebasing: page[..<$0.count])) } ?? true
    }
}
