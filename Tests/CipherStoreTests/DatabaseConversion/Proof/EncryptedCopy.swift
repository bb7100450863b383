internal import CipherDatabaseConversion
internal import CipherPageOpening
internal import CipherPrimitives
internal import CipherSQLite
internal import CipherSQLiteFormat
internal import CipherSystemFiles
import CipherTestSupport
import Foundation
import Testing

/// A database and its encrypted copy, which SQLCipher wrote.
///
/// In the default format, the copy's pages can be decrypted, changed and sealed again.
struct EncryptedCopy {
    let original: LegacyFile
    let file: NewFile
    let key: CipherKey
    let settings: CipherSettings
    private let folder: TemporaryFolder

    /// How a page is sealed: correctly, or with one mistake.
    enum Seal: CaseIterable {
        case right
        /// The HMAC is for another page number.
        case wrongNumber
        /// The initialization vector differs from the stored one, but the HMAC matches the stored one.
        case wrongVector
        /// The key of the HMAC is derived with another salt.
        case wrongSalt
        /// The page is encrypted under another key, with the correct HMAC.
        case wrongKey
        /// The HMAC has another key.
        case wrongMACKey
    }

    /// - Parameters:
    ///   - script: Makes both databases.
    ///   - settings: The format of the copy.
    ///   - change: An additional change to the copy.
    init(_ script: String, settings: CipherSettings = CipherSettings(), change: String = "") throws {
        self.settings = settings
        original = try LegacyFile { try $0.executeScript(text: script) }
        folder = try TemporaryFolder()
        file = try NewFile("copy.db", in: Folder(folder.url.path(percentEncoded: false)))
        key = try TestKeys.rawWithSalt()
        let connection = try Connection(
            path: file.path, mode: .readWrite, key: key, settings: settings, busyTimeout: .zero)
        defer { connection.close() }
        try connection.executeScript(text: script + change)
    }

    private var content: DescriptorFile { DescriptorFile(descriptor: file.descriptor, path: file.path) }

    /// Proves the copy.
    ///
    /// - Parameters:
    ///   - other: The key for reading its pages, if it is not SQLCipher's key.
    ///   - engineCopy: The copy that SQLCipher reads, if it is another one.
    func prove(
        _ reader: ProofReader = .records, key other: CipherKey? = nil, engineCopy: EncryptedCopy? = nil
    ) throws -> CopyProof.Outcome {
        func copy(_ key: CipherKey, of subject: EncryptedCopy? = nil) -> ProofConnection {
            ProofConnection(
                path: original.path, key: key, settings: settings, extensions: SQLExtensions(),
                copy: (subject ?? self).file)
        }
        return try CopyProof(
            original: ProofConnection(
                path: original.path, key: nil, settings: CipherSettings(), extensions: SQLExtensions()),
            copy: copy(key, of: engineCopy), copyWithDerivedKey: copy(other ?? key), reader: reader,
            observer: UpgradeObserver(path: original.path, report: nil, cancellation: nil)
        ).run()
    }

    // MARK: Pages

    func pages() throws -> CopyPages { try CopyPages(of: content, key: key) }

    /// Returns the content of a page; `nil` if the page is not authentic.
    func page(_ number: UInt32) throws -> [UInt8]? {
        let pages = try pages()
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 4_096, alignment: 16)
        defer { memory.deallocate() }
        return try pages.lend(number, memory).map { Array($0) }
    }

    /// Returns the root page of a table or index.
    func root(_ name: String) throws -> UInt32 {
        let entries = try SchemaEntry.all(in: pages()) { throw $0 }
        return try #require(entries.first { $0.name.elementsEqual(name.utf8) }).rootPage
    }

    /// Returns the pages of a tree with a given first byte, which identifies their kind.
    func pages(of name: String, _ kinds: TreePage.Kind...) throws -> [UInt32] {
        let root = try root(name)
        return try used().filter { number, use in
            try use == .tree(root: root) && kinds.contains { $0.rawValue == (try page(number)?.first ?? 0) }
        }.map(\.0)
    }

    func overflowPages(of name: String) throws -> [UInt32] {
        let root = try root(name)
        return try used().filter { $0.1 == .overflow(root: root) }.map(\.0)
    }

    private func used() throws -> [(UInt32, PageUse)] {
        let pages = try pages()
        let first = try #require(try page(1))
        let usage = try PageUsage(
            of: pages, header: FileHeader(bytes: first, fileSize: Int64(pages.pageCount) * 4_096))
        return (1...pages.pageCount).compactMap { number in usage[number].map { (number, $0) } }
    }

    /// Changes the content of a page, and seals it again.
    func change(_ number: UInt32, _ seal: Seal = .right, _ body: (inout [UInt8]) throws -> Void = { _ in }) throws {
        var bytes = try #require(try page(number))
        try body(&bytes)
        try write(bytes, as: number, seal)
    }

    /// Seals a page as SQLCipher's documentation describes.
    func write(_ bytes: [UInt8], as number: UInt32, _ seal: Seal = .right) throws {
        let salt = try #require(key.salt)
        let start = number == 1 ? 16 : 0
        let vector = (0..<16).map { UInt8($0 * 7 + 1) }
        let raw = seal == .wrongKey ? SecretBytes([UInt8](repeating: 3, count: 32)) : key.rawBytes
        let encryption = try #require(raw.withUnsafeBytes { AESCBC(.encrypt, key: $0) })
        var sealed = [UInt8](repeating: 0, count: 4_096)
        if start > 0 { salt.withUnsafeBytes { sealed.replaceSubrange(0..<16, with: $0) } }
        var cipher = [UInt8](repeating: 0, count: 4_016 - start)
        let used = seal == .wrongVector ? [UInt8](repeating: 0, count: 16) : vector
        #expect(encryption.apply(Array(bytes[start..<4_016]), count: 4_016 - start, vector: used, into: &cipher))
        sealed.replaceSubrange(start..<4_016, with: cipher)
        sealed.replaceSubrange(4_016..<4_032, with: vector)
        let macSalt = salt.withUnsafeBytes { $0.map { $0 ^ (seal == .wrongSalt ? 0x3b : 0x3a) } }
        var macKey = [UInt8](repeating: 0, count: 32)
        let password = seal == .wrongMACKey ? SecretBytes([UInt8](repeating: 3, count: 32)) : key.rawBytes
        let isDerived = password.withUnsafeBytes { key in
            macSalt.withUnsafeBytes { salt in
                macKey.withUnsafeMutableBytes {
                    Cryptography.pbkdf2(.sha512, password: key, salt: salt, rounds: 2, into: $0)
                }
            }
        }
        #expect(isDerived)
        let authentication = try #require(macKey.withUnsafeBytes { HMAC(.sha512, key: $0) })
        var message = Array(sealed[start..<4_032])
        let named = seal == .wrongNumber ? number + 1 : number
        withUnsafeBytes(of: named.littleEndian) { message.append(contentsOf: $0) }
        var mac = [UInt8](repeating: 0, count: 64)
        #expect(
            authentication.begin() && authentication.update(message, count: message.count)
                && authentication.finish(into: &mac))
        sealed.replaceSubrange(4_032..<4_096, with: mac)
        try writeSealed(sealed, at: number)
    }

    /// Returns the bytes of a page as they are on the disk.
    func sealed(_ number: UInt32) throws -> [UInt8] {
        try content.read(at: Int64(number - 1) * Int64(settings.pageSize), count: settings.pageSize)
    }

    func writeSealed(_ bytes: [UInt8], at number: UInt32) throws {
        #expect(content.write(bytes, count: bytes.count, offset: Int64(number - 1) * Int64(settings.pageSize)) == 0)
    }

    func truncate(to size: Int64) { #expect(content.truncate(to: size) == 0) }

    var size: Int64 { get throws { try file.size() } }
}

extension [UInt8] {
    /// Returns where the cells of a b-tree's page begin; not for page 1.
    var cells: [Int] {
        let first = self[0] & 8 == 0 ? 12 : 8
        return (0..<big16(3)).map { big16(first + 2 * $0) }
    }

    func big16(_ offset: Int) -> Int { Int(self[offset]) << 8 | Int(self[offset + 1]) }

    mutating func set32(_ offset: Int, _ number: UInt32) {
        replaceSubrange(offset..<(offset + 4), with: Swift.withUnsafeBytes(of: number.bigEndian) { Array($0) })
    }
}
