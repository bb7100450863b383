internal import CipherErrors
internal import CipherPageOpening
internal import CipherPrimitives
internal import CipherSQLite
internal import CipherSQLiteFormat

/// What the pages of an encrypted file tell of a key, by libcrypto alone: SQLCipher is asked once a key has fitted.
///
/// SQLite keeps zeros at 72 to 91 of page 1. In CBC mode a block is opened with the key and the block before it, so
/// those bytes tell a key from others whatever the size of the pages, their HMAC and the initialisation vector are, and
/// in a file that is cut off within its first page. If that page is damaged, the HMAC of another page tells, or its
/// shape. Source: NIST SP 800-38A, section 6.2; SQLite, "Database File Format", section 1.3.
final class PageProbe {
    /// What shows that a key is the file's.
    enum Evidence: Equatable {
        /// The header in page 1.
        case header
        /// A page that is authentic.
        case page(UInt32, PageSeal)
        /// The shape of a page that nothing authenticates here: the salt is lost, or there is no HMAC.
        case shape(UInt32, pageSize: Int, reserved: Int)
    }

    let file: DatabaseFile
    let size: Int64
    /// The beginning of the file, as much as the largest page has.
    let start: [UInt8]
    let hasPlaintextHeader: Bool
    private var samples: [Int: [(number: UInt32, page: [UInt8])]] = [:]

    private static let mostSamples = 3

    init(_ file: DatabaseFile, hasPlaintextHeader: Bool) throws {
        self.file = file
        self.hasPlaintextHeader = hasPlaintextHeader
        size = try file.size()
        start = try file.read(at: 0, count: 65_536)
        for pageSize in PageSeal.pageSizes {
            let pages = size / Int64(pageSize)
            guard pages > 1 else { continue }
            let numbers = Set([2, pages / 2 + 1, pages]).filter { $0 > 1 }.sorted().prefix(Self.mostSamples)
            samples[pageSize] = try numbers.map { number in
                (
                    UInt32(clamping: number),
                    try file.read(at: (number - 1) * Int64(pageSize), count: pageSize)
                )
            }.filter { sample in sample.page.contains { $0 != 0 } }
        }
    }

    /// The salt that the file holds; `nil` if its beginning is readable.
    var salt: [UInt8]? {
        hasPlaintextHeader || start.count < CipherKey.saltLength ? nil : Array(start.prefix(CipherKey.saltLength))
    }

    /// How much of page 1 may stay readable, or is the salt.
    private var firstPageStarts: [Int] { hasPlaintextHeader ? [32, 16, 48, 64, 80] : [CipherKey.saltLength] }

    // MARK: Keys

    /// What shows that 32 bytes are the key of the file; `nil` if nothing does.
    ///
    /// - Parameters:
    ///   - kdfs: The hash functions by which the key of the HMAC may have been derived.
    func evidence(for key: SecretBytes, salt: [UInt8]?, _ kdfs: [CipherSettings.Digest]) -> Evidence? {
        if key.withUnsafeBytes({ opensHeader($0) }) { return .header }
        if let salt {
            for seal in seals(kdfs, masks: [PageSeal.usualMask], bigEndian: [false]) {
                guard let authenticator = PageAuthenticator(seal, key: key, salt: salt) else { continue }
                if authenticStart(authenticator, seal) != nil { return .page(1, seal) }
                if let number = authenticPage(authenticator, seal) { return .page(number, seal) }
            }
        }
        return shape(under: key)
    }

    /// Whether the header in page 1 opens under a key.
    func opensHeader(_ key: UnsafeRawBufferPointer) -> Bool {
        // The last block that holds some of the zeros: 96 bits of them.
        let (block, zeros) = (80, 80..<92)
        guard start.count >= block + 16, !hasPlaintextHeader || start[zeros].contains(where: { $0 != 0 }),
            let decryption = AESCBC(.decrypt, key: key)
        else { return false }
        var opened = [UInt8](repeating: 0, count: 16)
        let isDone = start.withUnsafeBufferPointer { bytes in
            bytes.baseAddress.map {
                decryption.apply($0 + block, count: 16, vector: $0 + block - 16, into: &opened)
            }
        }
        return isDone == true && zeros.allSatisfy { opened[$0 - block] == 0 }
    }

    // MARK: Seals

    /// How the pages are sealed under a key that the header has shown to be the file's; `nil` if no page is authentic.
    func seal(
        under key: SecretBytes, salt: [UInt8], _ kdfs: [CipherSettings.Digest]
    ) -> (seal: PageSeal, firstPageStart: Int?)? {
        seal(under: key, salt: salt, among: seals(kdfs, masks: PageSeal.masks, bigEndian: [false, true]))
    }

    /// The same with every mask of the salt, for one size of pages.
    func unusualSeal(
        under key: SecretBytes, salt: [UInt8], _ kdfs: [CipherSettings.Digest], pageSize: Int
    ) -> (seal: PageSeal, firstPageStart: Int?)? {
        let all = seals(kdfs, masks: Array(UInt8.min...UInt8.max), bigEndian: [false, true], pageSizes: [pageSize])
        return seal(under: key, salt: salt, among: all)
    }

    private func seal(
        under key: SecretBytes, salt: [UInt8], among seals: [PageSeal]
    ) -> (seal: PageSeal, firstPageStart: Int?)? {
        for seal in seals {
            guard let authenticator = PageAuthenticator(seal, key: key, salt: salt) else { continue }
            if let pageStart = authenticStart(authenticator, seal) { return (seal, pageStart) }
            if authenticPage(authenticator, seal) != nil { return (seal, nil) }
        }
        return nil
    }

    /// Whether pages besides the first one were looked at.
    func hasOtherPages(of pageSize: Int) -> Bool { samples[pageSize]?.isEmpty == false }

    /// The size of a page and how much SQLCipher takes of its end, from the header under its initialisation vector; for
    /// files without an HMAC, and for page 1 whose HMAC is wrong.
    ///
    /// The header may leave more free: SQLite never takes back what a format left free that was set first.
    func layout(under key: SecretBytes) -> (pageSize: Int, reserved: Int, firstPageStart: Int)? {
        guard let decryption = key.withUnsafeBytes({ AESCBC(.decrypt, key: $0) }) else { return nil }
        for pageStart in firstPageStarts {
            for pageSize in PageSeal.pageSizes where start.count >= pageSize {
                for hmac in [nil, CipherSettings.Digest.sha1, .sha512] {
                    let seal = PageSeal(pageSize: pageSize, hmac: hmac, kdf: .sha1)
                    guard let page = seal.opened(Array(start[..<pageSize]), from: pageStart, decryption),
                        case let header = FileHeader(bytes: page, fileSize: size),
                        header.geometry?.pageSize == pageSize, page[21..<24].elementsEqual([64, 32, 32]),
                        // Behind a readable header, what the vector decides on.
                        (1...4).contains(header.schemaFormat), header.textEncoding != nil
                    else { continue }
                    return (pageSize, seal.reserved, pageStart)
                }
            }
        }
        return nil
    }

    /// Whether page 1 is authentic, and from where on.
    func authenticStart(_ authenticator: PageAuthenticator, _ seal: PageSeal) -> Int? {
        guard start.count >= seal.pageSize else { return nil }
        return start.withUnsafeBytes { bytes in
            let page = UnsafeRawBufferPointer(rebasing: bytes[..<seal.pageSize])
            return firstPageStarts.first { authenticator.isAuthentic(page, 1, from: $0) }
        }
    }

    private func authenticPage(_ authenticator: PageAuthenticator, _ seal: PageSeal) -> UInt32? {
        samples[seal.pageSize]?.first { sample in
            sample.page.withUnsafeBytes { authenticator.isAuthentic($0, sample.number, from: 0) }
        }?.number
    }

    private func seals(
        _ kdfs: [CipherSettings.Digest], masks: [UInt8], bigEndian: [Bool], pageSizes: [Int] = PageSeal.pageSizes
    ) -> [PageSeal] {
        masks.flatMap { mask in
            bigEndian.flatMap { isBigEndian in
                kdfs.flatMap { kdf in
                    CipherSettings.Digest.allCases.reversed().flatMap { hmac in
                        pageSizes.map {
                            PageSeal(pageSize: $0, hmac: hmac, kdf: kdf, saltMask: mask, isBigEndian: isBigEndian)
                        }
                    }
                }
            }
        }
    }

    /// A page whose content has the shape of a b-tree's under a key.
    private func shape(under key: SecretBytes) -> Evidence? {
        guard let decryption = key.withUnsafeBytes({ AESCBC(.decrypt, key: $0) }) else { return nil }
        for pageSize in PageSeal.pageSizes {
            for hmac in [nil, CipherSettings.Digest.sha1, .sha512] {
                let seal = PageSeal(pageSize: pageSize, hmac: hmac, kdf: .sha1)
                for sample in samples[pageSize] ?? [] {
                    guard let content = seal.opened(sample.page, from: 0, decryption),
                        PageShape(content + [UInt8](repeating: 0, count: seal.reserved)).isTree
                    else { continue }
                    return .shape(sample.number, pageSize: pageSize, reserved: seal.reserved)
                }
            }
        }
        return nil
    }

    /// A page in plaintext: the file is not encrypted, whatever its first page is.
    var plaintextPage: (number: UInt32, pageSize: Int)? {
        for pageSize in PageSeal.pageSizes {
            for sample in samples[pageSize] ?? [] where PageShape(sample.page).isTree {
                return (sample.number, pageSize)
            }
        }
        return nil
    }
}
