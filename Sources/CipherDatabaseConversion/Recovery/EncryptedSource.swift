internal import CipherErrors
internal import CipherKeyProviders
internal import CipherPageOpening
internal import CipherPageSealing
internal import CipherPrimitives
internal import CipherRecovery
internal import CipherSQLite
internal import CipherSQLiteFormat

/// Finds the key and the seal of a damaged, encrypted file, and opens its pages.
///
/// A key fits if a page is authentic with it. The seal is found as ``Diagnostician`` finds it, from page 1 and a few other
/// pages, whatever the page size and the HMAC are. If all of these pages are damaged, every page is tried, with the
/// formats that the caller named and with SQLCipher's own.
///
/// Pages without an HMAC prove nothing. A file without HMACs is opened only if the caller named such a format, and only
/// if page 1 has the header of a database.
struct EncryptedSource {
    private let paths: DatabasePaths
    private let bytes: ReadBytes
    private let hasPlaintextHeader: Bool
    private let probe: PageProbe
    private let named: [CipherSettings]

    /// - Parameter formats: The cipher settings that the caller named.
    init(
        _ paths: DatabasePaths, _ bytes: ReadBytes, _ file: DatabaseFile, hasPlaintextHeader: Bool,
        formats: [CipherSettings]
    ) throws {
        self.paths = paths
        self.bytes = bytes
        self.hasPlaintextHeader = hasPlaintextHeader
        probe = try PageProbe(file, hasPlaintextHeader: hasPlaintextHeader)
        named = formats
    }

    /// Opens the file.
    ///
    /// - Throws: ``StoreError`` with the code `keyDoesNotFit` if no page is authentic with the key, and the caller did not
    ///   name the format of a file without HMACs.
    func open(_ provider: any KeyProvider) throws -> DamagedSource {
        let key = try provider.checkedKey(for: .existing, database: paths.database)
        if let found = try open(key) { return found }
        if let previous = try provider.checkedPreviousKey(database: paths.database), previous != key,
            let found = try open(previous)
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

    // MARK: The seal

    /// A seal with the key that opens it.
    private struct Candidate {
        /// The raw key with the file's salt.
        let key: CipherKey
        let seal: PageSeal
        /// The number of bytes at the start of page 1 that are not encrypted.
        let firstStart: Int
        /// The settings that are nearest to the seal.
        let settings: CipherSettings
        /// Whether SQLCipher opens the file with these settings alone.
        let isUsual: Bool
        /// Whether the caller passed the salt with the key.
        var hasOwnSalt = false
    }

    private func open(_ key: CipherKey) throws -> DamagedSource? {
        var formats = named
        for format in CipherSettings.authenticated() where !formats.contains(format) { formats.append(format) }
        // After PRAGMA rekey in WAL mode, all pages with the key may be in the log, whose header states their size.
        if let log = try SidecarFile(paths.wal), let size = try LogHeader(log)?.pageSize {
            formats += formats.filter { $0.pageSize != size }.map {
                CipherSettings(
                    compatibility: $0.compatibility, pageSize: size, kdfIterations: $0.kdfIterations,
                    hmacAlgorithm: $0.hmacAlgorithm, kdfAlgorithm: $0.kdfAlgorithm)
            }
        }
        let salts = try salts(key)
        for salt in salts {
            for derivation in Self.derivations(of: key, formats) {
                let raw = try FileKey(key, salt: salt, derivation).key
                if var found = try probed(raw, salt, key.form == .passphrase ? derivation : nil) {
                    found.hasOwnSalt = key.salt != nil
                    return try open(found)
                }
            }
        }
        for format in formats
        where format.isAuthenticated && (!hasPlaintextHeader || format.traits.canHaveReadableHeader) {
            var settings = format
            settings.plaintextHeaderSize = hasPlaintextHeader ? 32 : 0
            for salt in salts {
                let candidate = Candidate(
                    key: try FileKey(key, salt: salt, settings).key, seal: PageSeal(settings),
                    firstStart: max(CipherKey.saltLength, settings.plaintextHeaderSize), settings: settings,
                    isUsual: true, hasOwnSalt: key.salt != nil)
                if let source = try open(candidate) { return source }
            }
        }
        return nil
    }

    /// Returns one of the formats for each way in which they derive a key.
    private static func derivations(of key: CipherKey, _ formats: [CipherSettings]) -> [CipherSettings] {
        guard key.form == .passphrase else { return Array(formats.prefix(1)) }
        var derivations: [CipherSettings] = []
        for format in formats where !derivations.contains(where: { $0.derivesKeys(as: format) }) {
            derivations.append(format)
        }
        return derivations
    }

    /// Returns the seal of the examined pages under a key; `nil` if the key does not fit.
    ///
    /// - Parameter derivation: The format with which the key was derived from a passphrase; `nil` for a raw key.
    /// - Throws: ``StoreError`` with the code `keyDoesNotFit` if the file has no HMACs and the caller did not name its
    ///   format.
    private func probed(_ raw: CipherKey, _ salt: SecretBytes, _ derivation: CipherSettings?) throws -> Candidate? {
        let kdfs = derivation.map { [$0.kdfAlgorithm] } ?? CipherSettings.Digest.allCases
        guard
            let found = probe.sealed(
                under: raw.rawBytes, salts: [salt.withUnsafeBytes { Array($0) }], kdfs)
        else { return nil }
        let headerSize =
            hasPlaintextHeader
            ? found.firstPageStart ?? 32
            : try found.firstPageStart == nil && isReadableHeader(raw, found.seal) ? 32 : 0
        let nearest = CipherSettings.nearest(
            to: found.seal, rounds: derivation?.kdfIterations, headerSize: headerSize == 32 ? 32 : 0,
            given: named.first ?? CipherSettings())
        if found.seal.hmac == nil, !named.contains(where: { $0.describes(found.seal, derivation) }) {
            throw notNamed(nearest)
        }
        return Candidate(
            key: raw, seal: found.seal, firstStart: max(CipherKey.saltLength, headerSize),
            settings: nearest ?? CipherSettings(plaintextHeaderSize: headerSize == 0 ? 0 : 32),
            isUsual: nearest != nil && found.seal.isUsual && [0, 32].contains(headerSize))
    }

    /// Returns whether page 1 is authentic from the end of a readable header on, whose first bytes are damaged.
    private func isReadableHeader(_ key: CipherKey, _ seal: PageSeal) throws -> Bool {
        guard seal.hmac != nil, let page = try bytes.read(at: 0, count: seal.pageSize) else { return false }
        return try PageOpening(key, seal, firstStart: 32).isAuthentic(1, page)
    }

    private func notNamed(_ settings: CipherSettings?) -> StoreError {
        let detail = "the pages of this file have no HMAC, so anyone who can write the file could have changed its rows"
        guard let settings else {
            return StoreError(
                .keyDoesNotFit, path: paths.database, detail,
                advice: "open the file with SQLCipher directly, using PRAGMA cipher_use_hmac = OFF", changed: .nothing)
        }
        let usual = CipherSettings(compatibility: settings.compatibility)
        let (size, rounds) = (settings.pageSize, settings.kdfIterations)
        let texts = [
            "\(settings.compatibility)", size == usual.pageSize ? nil : "page-size=\(size)",
            rounds == usual.kdfIterations ? nil : "kdf-iterations=\(rounds)",
        ]
        return StoreError(
            .keyDoesNotFit, path: paths.database, detail,
            advice: "if you trust the file, name its cipher format: pass --old-cipher-compatibility "
                + "\(texts.compactMap { $0 }.joined(separator: ",")), or in Swift, formats: "
                + "[CipherSettings(compatibility: \(settings.compatibility), pageSize: \(size), kdfIterations: "
                + "\(rounds))]", changed: .nothing)
    }

    // MARK: The pages

    private func open(_ found: Candidate) throws -> DamagedSource? {
        let (seal, settings) = (found.seal, found.settings)
        guard let geometry = PageGeometry(pageSize: seal.pageSize, reserved: seal.reserved) else { return nil }
        var notes: [String] = []
        if seal.hmac == nil { notes.append(DamagedSource.notAuthenticated) }
        if found.firstStart > CipherKey.saltLength, !hasPlaintextHeader { notes.append(DamagedSource.damagedMagic) }
        let (versions, sidecar) = try DamagedSource.versions(bytes, paths, geometry, &notes)
        func pages(_ versions: PageVersions?) throws -> EncryptedPages<DamagedPages<ReadBytes, SidecarFile>> {
            try EncryptedPages(
                DamagedPages(bytes, geometry, versions: versions, in: sidecar), key: found.key, seal: seal,
                firstStart: found.firstStart)
        }
        let (whole, alone) = (try pages(versions), try pages(nil))
        func source(_ pages: EncryptedPages<some PageSource>, _ notes: [String]) throws -> DamagedSource {
            var source = try self.source(pages, notes)
            source.format = found.isUsual ? settings : nil
            source.hasReadableHeader = found.firstStart > CipherKey.saltLength
            return source
        }
        guard let versions else { return try opensAny(whole, seal) ? source(whole, notes) : nil }
        let opening = try PageOpening(found.key, seal, firstStart: found.firstStart)
        // A log whose checksums are correct but whose pages are not authentic belongs to another database.
        let authenticity = try sidecar.map { try SidecarAuthenticity(versions, in: $0, opening) } ?? .all
        // The log or journal beside the database may belong to another database, and the key may be the key of that
        // database. The database file itself must have a page with this key, unless another key was changed to this one
        // in the log.
        let isOwn =
            try bytes.size < Int64(seal.pageSize) || opensAny(alone, seal)
            || authenticity == .all && replacesAll(versions, in: sidecar, hasOwnSalt: found.hasOwnSalt)
        guard isOwn else { return nil }
        let match = LogMatch(
            paths: paths, firstPage: { (try bytes.read(at: 0, count: seal.pageSize) ?? [], bytes.size) },
            opening: { try found.key.openFirstPage($0, settings) })
        let fileKey = FileKey(key: found.key, settings: settings)
        let stated = try whole.header()?.claimedPages.map { UInt32(clamping: $0) } ?? .max
        let inUse = versions.with(pageCount: min(versions.pageCount, stated))
        let isJournal = sidecar?.path == paths.journal
        let isForeign =
            try authenticity == .none || match.isOther()
            || isJournal && Inspector(paths).isJournalOfOther(fileKey)
            || authenticity == .all
                && StructureFaults.areAdded(by: inUse) { try adopting(pages($0)) }
        guard !isForeign else {
            return try source(alone, notes + [DamagedSource.foreignSidecar])
        }
        if authenticity == .some, let sidecar {
            let (authentic, finding) = try authenticPages(versions, in: sidecar, opening)
            return try source(pages(authentic), notes + [finding])
        }
        let count = UInt32(clamping: bytes.size / Int64(seal.pageSize))
        if let sidecar, versions.pageCount > 0, count > whole.pageCount,
            try StructureFaults(of: adopting(whole)).areBeyondEnd
        {
            // The pages after the wrong number have not been authenticated.
            let authentic = try versions.filter { try opening.isAuthentic($0, at: $1, in: sidecar) }
            return try source(pages(authentic.with(pageCount: count)), notes + [DamagedSource.wrongPageCount])
        }
        if isJournal, try HotJournal(paths)?.isDamaged(of: bytes, fileKey) == true {
            notes.append(DamagedSource.damagedJournal)
        }
        return try source(whole, notes)
    }

    /// Returns whether a log holds every page of the database, with the key's own salt, or with the salt or the readable
    /// header of the file.
    private func replacesAll(_ versions: PageVersions, in sidecar: SidecarFile?, hasOwnSalt: Bool) throws -> Bool {
        guard let sidecar, try LogHeader(sidecar) != nil, versions.areAllPages, let first = versions.offsets[1],
            let salt = try sidecar.read(at: first, count: CipherKey.saltLength)
        else { return false }
        return try hasOwnSalt || bytes.read(at: 0, count: CipherKey.saltLength) == salt
    }

    /// Returns what can be used of a log or journal of which some pages are not authentic, and the finding about it.
    ///
    /// A log is used up to the last transaction before the first such page, as SQLite uses one with a wrong checksum. In
    /// place of such a page in a journal, the page in the file is used.
    private func authenticPages(
        _ versions: PageVersions, in sidecar: SidecarFile, _ opening: PageOpening
    ) throws -> (PageVersions?, finding: String) {
        if let header = try LogHeader(sidecar) {
            let committed = try header.committedPages(in: sidecar) {
                try opening.isAuthentic($0.page, at: $0.offset, in: sidecar)
            }
            return (committed, LostCommits.finding)
        }
        return (
            try versions.filter { try opening.isAuthentic($0, at: $1, in: sidecar) }, DamagedSource.damagedJournal
        )
    }

    private func source(_ pages: EncryptedPages<some PageSource>, _ notes: [String]) throws -> DamagedSource {
        let pages = try adopting(pages)
        return DamagedSource(pages, try pages.header(), notes: notes)
    }

    /// Returns the pages with the number of reserved bytes that they have.
    private func adopting<Sealed>(_ pages: EncryptedPages<Sealed>) throws -> EncryptedPages<Sealed> {
        // If the key does not protect the number of reserved bytes, the authentic pages show it.
        let least = pages.geometry
        if try !pages.adoptReservedSize() {
            let known = [pages.geometry, least, PageGeometry(pageSize: least.pageSize, reserved: 80)].compactMap { $0 }
            if let fitting = try PageGeometry.guess(among: known, in: pages) { pages.geometry = fitting }
        }
        return pages
    }

    /// Returns the salts that the file may have: the key's own, or the first bytes of page 1, in the file or beside it.
    private func salts(_ key: CipherKey) throws -> [SecretBytes] {
        if let salt = key.salt { return [salt] }
        guard !hasPlaintextHeader else { throw saltMissing }
        var salts: [SecretBytes] = []
        if let start = try bytes.read(at: 0, count: CipherKey.saltLength) { salts.append(SecretBytes(start)) }
        for beside in try saltsBeside() where !salts.contains(beside) { salts.append(beside) }
        return salts
    }

    /// Returns the first bytes of page 1 in the hot journal and in the log.
    private func saltsBeside() throws -> [SecretBytes] {
        var versions: [(pages: PageVersions, file: SidecarFile)] = []
        if let journal = try HotJournal(paths), let pages = try journal.originalPages() {
            versions.append((pages, journal.file))
        }
        if let log = try SidecarFile(paths.wal), let pages = try LogHeader(log)?.committedPages(in: log) {
            versions.append((pages, log))
        }
        return try versions.compactMap { pages, file in
            try pages.offsets[1].flatMap { try file.read(at: $0, count: CipherKey.saltLength) }.map { SecretBytes($0) }
        }
    }

    private var saltMissing: StoreError {
        StoreError(
            .saltMissing, path: paths.database,
            "the file has a plaintext header and does not contain its salt, so the salt must be passed with the key",
            advice: "pass the raw key followed by the salt, as x'…' with 96 hex digits", changed: .nothing)
    }

    private func opensAny(_ pages: some PageSource, _ seal: PageSeal) throws -> Bool {
        guard pages.pageCount > 0 else { return false }
        // Without HMACs, only page 1 shows whether the key is right.
        let numbers = seal.hmac == nil ? 1...1 : 1...pages.pageCount
        return try numbers.contains { try Self.opens($0, pages, seal) }
    }

    /// Returns whether a page is authentic or, without HMACs, has the shape of a database page.
    private static func opens(_ number: UInt32, _ pages: some PageSource, _ seal: PageSeal) throws -> Bool {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: seal.pageSize, alignment: 16)
        defer { memory.deallocate() }
        guard let page = try pages.lend(number, memory) else { return false }
        guard seal.hmac == nil else { return true }
        return number == 1 ? FixedHeaderFields.areValid(Array(page.prefix(FileHeader.length))) : PageShape(page).isTree
    }
}

extension CipherSettings {
    /// Whether the same key is derived from a passphrase with other settings.
    fileprivate func derivesKeys(as other: CipherSettings) -> Bool {
        kdfAlgorithm == other.kdfAlgorithm && kdfIterations == other.kdfIterations
    }

    /// Whether these are the settings of a file without HMACs.
    fileprivate func describes(_ seal: PageSeal, _ derivation: CipherSettings?) -> Bool {
        !isAuthenticated && seal.hmac == nil && pageSize == seal.pageSize
            && derivation.map { derivesKeys(as: $0) } ?? true
    }
}
