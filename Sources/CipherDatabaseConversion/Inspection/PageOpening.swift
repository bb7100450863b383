internal import CipherErrors
internal import CipherPageOpening
internal import CipherRecovery
internal import CipherSQLite
internal import CipherSQLiteFormat

/// Opens pages of an encrypted database one at a time, wherever they are stored.
struct PageOpening {
    /// The bytes of one page, whatever its number is.
    private final class SealedPage: PageSource {
        let geometry: PageGeometry
        // Without any following pages, no page is read ahead.
        let pageCount: UInt32 = 0
        var bytes = UnsafeRawBufferPointer(start: nil, count: 0)

        init(_ geometry: PageGeometry) { self.geometry = geometry }

        func lend(_ page: UInt32, _ scratch: UnsafeMutableRawBufferPointer) -> UnsafeRawBufferPointer? { bytes }
    }

    private let sealed: SealedPage
    private let pages: EncryptedPages<SealedPage>

    /// - Parameter checksSalt: As in the other initializer.
    init(_ fileKey: FileKey, checksSalt: Bool = true) throws {
        let settings = fileKey.settings
        try self.init(
            fileKey.key, PageSeal(settings), firstStart: max(CipherKey.saltLength, settings.plaintextHeaderSize),
            checksSalt: checksSalt)
    }

    /// - Parameters:
    ///   - key: The raw key with the file's salt.
    ///   - firstStart: The length of the part of page 1 that is neither encrypted nor authenticated.
    ///   - checksSalt: Whether page 1 is opened only if it begins with the salt, which no HMAC includes. A page with
    ///     another salt would destroy the file's, and a passphrase would never open the file again.
    init(_ key: CipherKey, _ seal: PageSeal, firstStart: Int, checksSalt: Bool = true) throws {
        guard let geometry = PageGeometry(pageSize: seal.pageSize, reserved: seal.reserved) else {
            throw KeyError.derivationFailed
        }
        sealed = SealedPage(geometry)
        pages = try EncryptedPages(
            sealed, key: key, seal: seal, firstStart: firstStart,
            checksSalt: checksSalt && firstStart == CipherKey.saltLength)
    }

    /// Returns whether two encrypted versions of a page have the same content.
    ///
    /// A version in the database that is not authentic was torn while it was overwritten.
    func areSame(_ page: UInt32, _ record: UnsafeRawBufferPointer, _ present: UnsafeRawBufferPointer) throws -> Bool {
        guard let original = try open(page, record) else { return true }
        return try open(page, present) == original
    }

    /// Returns whether a page is authentic; without HMACs, every page is, except for a page 1 with another salt.
    ///
    /// - Parameter offset: The offset in the log or journal at which the page begins.
    func isAuthentic(_ page: UInt32, at offset: Int64, in file: SidecarFile) throws -> Bool {
        guard let bytes = try file.read(at: offset, count: sealed.geometry.pageSize) else { return false }
        return try isAuthentic(page, bytes)
    }

    func isAuthentic(_ page: UInt32, _ bytes: [UInt8]) throws -> Bool { try open(page, bytes) != nil }

    /// Returns the content of a page; `nil` if it is not authentic.
    func open(_ page: UInt32, _ bytes: [UInt8]) throws -> [UInt8]? { try bytes.withUnsafeBytes { try open(page, $0) } }

    private func open(_ page: UInt32, _ bytes: UnsafeRawBufferPointer) throws -> [UInt8]? {
        sealed.bytes = bytes
        var content = [UInt8](repeating: 0, count: bytes.count)
        return try content.withUnsafeMutableBytes { try pages.lend(page, $0) != nil } ? content : nil
    }
}

/// The pages of a log or a journal that are authentic.
///
/// SQLite trusts its checksums, which need no key, and would write into the file the pages of another database, those
/// from before an unfinished key change, or arbitrary bytes. SQLCipher encrypts and authenticates each page that it adds
/// to a log or a journal.
enum SidecarAuthenticity {
    case all, some, none

    init(_ versions: PageVersions, in file: SidecarFile, _ opening: PageOpening) throws {
        // SQLite uses no page after the last one, such as those that a VACUUM cut off before the key was changed.
        let used = versions.offsets.filter { $0.key <= versions.pageCount }
        let count = try used.count { try opening.isAuthentic($0.key, at: $0.value, in: file) }
        self = count == used.count ? .all : count > 0 ? .some : .none
    }
}

/// What a log or a journal with authentic pages would make of an encrypted file.
///
/// Its pages may be older than those of the file, and nothing authenticates the number of pages in it, or in a readable
/// header.
struct SidecarEffect {
    private let key: FileKey
    private let bytes: ReadBytes
    private let versions: PageVersions
    private let sidecar: SidecarFile
    private let geometry: PageGeometry

    init?(_ versions: PageVersions, in sidecar: SidecarFile, on file: DatabaseFile, _ key: FileKey) throws {
        guard let geometry = PageGeometry(pageSize: key.settings.pageSize, reserved: key.settings.reservedBytes)
        else { return nil }
        self.key = key
        self.versions = versions
        self.sidecar = sidecar
        self.geometry = geometry
        bytes = ReadBytes(size: try file.size()) { try file.fill($1, at: $0) }
    }

    private typealias Pages = EncryptedPages<DamagedPages<ReadBytes, SidecarFile>>

    private func pages(_ versions: PageVersions?) throws -> Pages {
        let pages = try EncryptedPages(
            DamagedPages(bytes, geometry, versions: versions, in: sidecar), key: key.key, settings: key.settings)
        try pages.adoptReservedSize()
        return pages
    }

    /// The versions as SQLite would use them: up to the number in the header, if its counters agree.
    private var versionsInUse: PageVersions {
        get throws {
            let stated = try pages(versions).header()?.claimedPages.map { UInt32(clamping: $0) }
            return versions.with(pageCount: min(versions.pageCount, stated ?? .max))
        }
    }

    /// Whether pages that the database uses would be cut off.
    func cutsUsedPages() throws -> Bool {
        let all = try pages(versionsInUse)
        return try bytes.size > Int64(all.pageCount) * Int64(geometry.pageSize) && StructureFaults(of: all).areBeyondEnd
    }

    /// Whether the rollback would damage the file (``StructureFaults/areAdded(by:_:)``).
    func damagesFile() throws -> Bool { try StructureFaults.areAdded(by: versionsInUse, pages) }
}

/// The part of page 1 that anyone can write, because neither encryption nor HMAC includes it.
///
/// A transaction can change the journal mode, a counter and the number of pages in it.
enum ReadableHeader {
    /// Returns whether two versions agree in what no transaction changes.
    ///
    /// - Parameter modes: The possible values of the journal mode.
    static func agree(_ page: [UInt8], _ other: [UInt8], modes: ClosedRange<UInt8>) -> Bool {
        page.count >= 32 && other.count >= 32 && page[..<18] == other[..<18]
            && other[18..<20].allSatisfy(modes.contains) && page[20..<24] == other[20..<24]
    }
}
