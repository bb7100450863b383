internal import CipherErrors
internal import CipherKeyProviders
internal import CipherPageOpening
internal import CipherPageSealing
internal import CipherPrimitives
internal import CipherRecovery
internal import CipherSQLite
internal import CipherSQLiteFormat

/// Finds the key and the format that open pages of a damaged, encrypted file.
///
/// It tries all pages, because the first may be lost.
struct EncryptedSource {
    private let paths: DatabasePaths
    private let bytes: ReadBytes
    private let hasPlaintextHeader: Bool

    init(_ paths: DatabasePaths, _ bytes: ReadBytes, hasPlaintextHeader: Bool) {
        self.paths = paths
        self.bytes = bytes
        self.hasPlaintextHeader = hasPlaintextHeader
    }

    /// Opens the file.
    ///
    /// - Throws: ``StoreError`` with the code `keyDoesNotFit` if the key opens no page in any of the formats.
    func open(_ provider: any KeyProvider, _ formats: [CipherSettings]) throws -> DamagedSource {
        let key = try provider.checkedKey(for: .existing, database: paths.database)
        if let found = try open(key, formats) { return found }
        if let previous = try provider.checkedPreviousKey(database: paths.database), previous != key,
            let found = try open(previous, formats)
        {
            return found
        }
        throw StoreError(
            .keyDoesNotFit, path: paths.database,
            "the key does not open any page of this file: the file uses a different key or cipher format, or all of "
                + "its pages are damaged",
            advice: "check the key; if the beginning of the file is lost, pass the raw key followed by the file's "
                + "salt, as x'…' with 96 hex digits", changed: .nothing)
    }

    private func open(_ key: CipherKey, _ formats: [CipherSettings]) throws -> DamagedSource? {
        for format in formats where !hasPlaintextHeader || format.compatibility >= 4 {
            var settings = format
            settings.plaintextHeaderSize = hasPlaintextHeader ? 32 : 0
            guard let geometry = PageGeometry(pageSize: settings.pageSize, reserved: settings.reservedBytes) else {
                continue
            }
            var notes: [String] = []
            let (versions, sidecar) = try DamagedSource.versions(bytes, paths, geometry, &notes)
            let sealed = DamagedPages(bytes, geometry, versions: versions, in: sidecar)
            for salt in try salts(key, sealed) {
                let raw = try FileKey(key, salt: salt, settings).key
                let pages = try EncryptedPages(sealed, key: raw, settings: settings)
                let alone = try EncryptedPages(
                    DamagedPages(bytes, geometry, versions: nil, in: sidecar), key: raw, settings: settings)
                if let versions {
                    // The log or journal beside the database may belong to another database, and the key may be the key
                    // of that database. The database file itself must have a page with this key.
                    guard try bytes.size < Int64(settings.pageSize) || opensAny(alone, settings) else { continue }
                    // A log whose checksums are correct but whose pages are not authentic belongs to another database.
                    let isOwn =
                        try versions.offsets.isEmpty
                        || versions.offsets.keys.contains { try Self.opens($0, pages, settings) }
                    let match = LogMatch(
                        paths: paths,
                        firstPage: { (try bytes.read(at: 0, count: settings.pageSize) ?? [], bytes.size) },
                        opening: { try raw.openFirstPage($0, settings) })
                    let fileKey = FileKey(key: raw, settings: settings)
                    if isOwn, try !match.isOther(), try !Inspector(paths).isJournalOfOther(fileKey) {
                        if try HotJournal(paths)?.isDamaged(of: bytes, fileKey) == true {
                            notes.append(DamagedSource.damagedJournal)
                        }
                        return try source(pages, notes)
                    }
                    return try source(alone, notes + [DamagedSource.foreignSidecar])
                } else if try opensAny(pages, settings) {
                    return try source(pages, notes)
                }
            }
        }
        return nil
    }

    private func source(_ pages: EncryptedPages<some PageSource>, _ notes: [String]) throws -> DamagedSource {
        let header = try DamagedSource.header(of: pages)
        let size = pages.geometry.pageSize
        // In the older formats, SQLCipher 4 reserves as many bytes as in its own.
        let known = [pages.geometry.pageSize - pages.geometry.usableSize, 80].compactMap {
            PageGeometry(pageSize: size, reserved: $0)
        }
        if let told = try header?.geometry ?? PageGeometry.guess(among: known, in: pages), told.pageSize == size {
            pages.geometry = told
        }
        return DamagedSource(pages, header, notes: notes)
    }

    /// Returns the salts that the file may have: the key's own, or the first bytes of page 1, in the file or beside it.
    private func salts(_ key: CipherKey, _ sealed: some PageSource) throws -> [SecretBytes] {
        if let salt = key.salt { return [salt] }
        guard !hasPlaintextHeader else { throw saltMissing }
        var salts: [SecretBytes] = []
        if let start = try bytes.read(at: 0, count: CipherKey.saltLength) { salts.append(SecretBytes(start)) }
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: sealed.geometry.pageSize, alignment: 16)
        defer { memory.deallocate() }
        if let page = try sealed.lend(1, memory) {
            let salt = SecretBytes(Array(page.prefix(CipherKey.saltLength)))
            if !salts.contains(salt) { salts.append(salt) }
        }
        return salts
    }

    private var saltMissing: StoreError {
        StoreError(
            .saltMissing, path: paths.database,
            "the file has a plaintext header and does not contain its salt, so the salt must be passed with the key",
            advice: "pass the raw key followed by the salt, as x'…' with 96 hex digits", changed: .nothing)
    }

    private func opensAny(_ pages: some PageSource, _ settings: CipherSettings) throws -> Bool {
        guard pages.pageCount > 0 else { return false }
        return try (1...pages.pageCount).contains { try Self.opens($0, pages, settings) }
    }

    /// Returns whether a page is authentic.
    ///
    /// In format 1, which authenticates nothing, the page must look like a database page.
    private static func opens(_ number: UInt32, _ pages: some PageSource, _ settings: CipherSettings) throws -> Bool {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: settings.pageSize, alignment: 16)
        defer { memory.deallocate() }
        guard let page = try pages.lend(number, memory) else { return false }
        guard settings.compatibility < 2 else { return true }
        return number == 1 ? FileHeader.isPlaintext(Array(page.prefix(FileHeader.length))) : PageShape(page).isTree
    }
}
