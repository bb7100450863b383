internal import CipherErrors
internal import CipherKeyProviders
internal import CipherRecovery
internal import CipherSQLite
internal import CipherSQLiteFormat
internal import CipherSystemFiles

/// The pages of a damaged database, which is opened for reading only.
struct DamagedSource {
    let pages: any PageSource
    /// The header on page 1; `nil` if it is lost.
    let header: FileHeader?
    /// Notes about the file for the report.
    var notes: [String] = []
    /// Whether the file is not encrypted.
    private(set) var isPlaintext = false
    /// The cipher settings of the file; `nil` if it is plaintext, or if no such settings describe it.
    var format: CipherSettings?
    /// Whether the file is encrypted, except for its header.
    var hasReadableHeader = false

    /// Opens a file.
    ///
    /// The pages are read through SQLite's file layer.
    ///
    /// - Parameters:
    ///   - sizes: The page geometry of a healthy database with the same schema, for use if the header is lost.
    ///   - provider: Provides the key. It is called only if the file is not plaintext.
    ///   - formats: The cipher settings that the caller named.
    /// - Throws: ``StoreError`` with the code `missingFile`, `corrupt` if no page is a database page, or
    ///   `keyDoesNotFit` if the key opens no page.
    init(_ paths: DatabasePaths, sizes: PageGeometry?, provider: any KeyProvider, formats: [CipherSettings]) throws {
        guard let status = try paths.status() else { throw StoreError.missingFile(paths.database) }
        try FileSystem.checkRegular(status, paths.database)
        guard FileSystem.canRead(paths.database) else {
            throw StoreError.permission(paths.database, "the file cannot be read", .read)
        }
        let file = try DatabaseFile(path: paths.database)
        let size = try file.size()
        let bytes = ReadBytes(size: size) { offset, buffer in
            let bytes = try file.read(at: offset, count: buffer.count)
            guard bytes.count == buffer.count else { return false }
            buffer.copyBytes(from: bytes)
            return true
        }
        guard size >= FileHeader.smallestPage else {
            throw StoreError(
                .corrupt, path: paths.database, "the file contains no complete page, so there is nothing to recover",
                advice: "check that this is the right file, or restore a backup", changed: .nothing)
        }
        let start = try FileHeader(of: bytes)
        if let start, start.isPlaintext, let geometry = start.geometry {
            // Page 1 of an encrypted database may have been overwritten. The page size is that of the new page 1.
            let shapes = try PageShapeCounts(bytes, geometry)
            let looksEncrypted = try bytes.size > Int64(geometry.pageSize) && ContentKind(file).restIsRandom
            guard shapes.unknown > 0 || looksEncrypted else {
                self = try Self.plaintext(bytes, paths, geometry)
                return
            }
            do {
                self = try EncryptedSource(paths, bytes, file, hasPlaintextHeader: false, formats: formats)
                    .open(provider)
            } catch let error as StoreError where error.tellsNoDamage {
                self = try Self.plaintext(bytes, paths, geometry)
                if looksEncrypted && !shapes.areMostlyKnown { notes.append(Self.replacedFirstPage) }
            }
            return
        }
        let hasPlaintextHeader = start?.isEncryptedWithPlaintextHeader == true
        let source = try EncryptedSource(paths, bytes, file, hasPlaintextHeader: hasPlaintextHeader, formats: formats)
        do {
            self = try source.open(provider)
        } catch let error as StoreError where error.tellsNoDamage {
            // The pages are those of a plaintext database whose header is damaged.
            guard !hasPlaintextHeader else { throw error }
            if let header = try Self.headerWithoutMagic(bytes), let geometry = header.geometry {
                self = try Self.plaintext(bytes, paths, geometry)
                return
            }
            guard let geometry = try PageGeometry.guess(bytes) else { throw error }
            self = try Self.plaintext(bytes, paths, sizes?.pageSize == geometry.pageSize ? sizes ?? geometry : geometry)
        }
    }

    init(_ pages: any PageSource, _ header: FileHeader?, notes: [String]) {
        self.pages = pages
        self.header = header
        self.notes = notes
    }

    private static func plaintext(
        _ bytes: ReadBytes, _ paths: DatabasePaths, _ geometry: PageGeometry
    ) throws -> DamagedSource {
        var notes: [String] = []
        var (versions, sidecar) = try versions(bytes, paths, geometry, &notes)
        let match = LogMatch(
            paths: paths,
            firstPage: { (try bytes.read(at: 0, count: min(geometry.pageSize, Int(bytes.size))) ?? [], bytes.size) },
            opening: { $0 })
        let isJournal = sidecar?.path == paths.journal
        if versions != nil,
            try SidecarScan.isStale(paths, databaseIsPlaintext: true) || match.isOther()
                || isJournal && Inspector(paths).isJournalOfOther(nil)
        {
            notes.append(foreignSidecar)
            (versions, sidecar) = (nil, nil)
        } else if isJournal, try HotJournal(paths)?.isDamaged(of: bytes, nil) == true {
            notes.append(damagedJournal)
        }
        let pages = DamagedPages(bytes, geometry, versions: versions, in: sidecar)
        var header = try pages.header()
        if header == nil, let rest = try headerWithoutMagic(bytes) {
            header = rest
            notes.append(damagedMagic)
        }
        var source = DamagedSource(pages, header, notes: notes)
        source.isPlaintext = true
        return source
    }

    /// Whether the log or journal beside the file was not read because it belongs to another database.
    var hasForeignSidecar: Bool { [Self.foreignSidecar, Self.journalBesideLog].contains(where: notes.contains) }

    /// Whether SQLite would use a log or a journal that was not read, or not completely.
    ///
    /// A log without a committed transaction is not such a log, because SQLite ignores it too.
    var lacksSidecar: Bool { hasForeignSidecar || hasDamagedSidecar || notes.contains(Self.otherJournal) }

    /// Whether the log holds commits that were not read, the journal holds pages that were not restored, or the
    /// journal may belong to a committed transaction.
    var hasDamagedSidecar: Bool {
        [LostCommits.finding, Self.damagedJournal, Self.movedSuperJournal, Self.wrongPageCount]
            .contains(where: notes.contains)
    }

    /// Whether SQLite does not take the file for the database that it is, because its first bytes are damaged.
    var hasDamagedMagic: Bool { notes.contains(Self.damagedMagic) }

    /// Whether the file may be an encrypted one whose first page was replaced.
    var mayBeEncrypted: Bool { notes.contains(Self.replacedFirstPage) }

    static let replacedFirstPage =
        "page 1 is that of a database that is not encrypted, but most of the other pages look encrypted: page 1 of an "
        + "encrypted database, with its salt, may have been overwritten"

    static let damagedMagic = "the first 16 bytes of the file are damaged; the rest of the header was kept"

    static let notEncrypted =
        "the database was not encrypted, so anyone who can write the file could have changed its rows"

    static let notAuthenticated =
        "the pages of the damaged database have no HMAC, so they could not be authenticated"

    static let movedSuperJournal =
        "the super-journal of a transaction across several databases is not at the path in the journal, so the "
        + "transaction was rolled back, although it may have been committed"

    static let damagedJournal =
        "the journal is damaged, so some pages that the unfinished transaction changed were not restored"

    static let wrongPageCount =
        "the number of pages in the -wal or -journal is less than the database uses, so it was not applied"

    static let otherJournal =
        "the journal was not read, because its page size differs from the file's page size"

    static let journalBesideLog =
        "the journal was not read, because the -wal contains committed transactions, beside which SQLite writes no journal"

    static let foreignSidecar =
        "the -wal or -journal file next to the database was not read, because it belongs to another copy of this "
        + "database or to another database"

    private static func headerWithoutMagic(_ bytes: ReadBytes) throws -> FileHeader? {
        FileHeader.withDamagedMagic(try bytes.read(at: 0, count: FileHeader.length) ?? [], fileSize: bytes.size)
    }

    /// Returns the pages in the log or a hot journal that replace the file's pages.
    static func versions(
        _ bytes: some ByteSource, _ paths: DatabasePaths, _ geometry: PageGeometry, _ notes: inout [String]
    ) throws -> (PageVersions?, SidecarFile?) {
        if try HotJournal.isBesideCommits(paths) {
            notes.append(journalBesideLog)
        } else if let journal = try HotJournal(paths) {
            let versions = try journal.originalPages(pageSize: geometry.pageSize)
            if let versions, versions.pageSize == geometry.pageSize {
                notes.append(
                    "a writer crashed and left a journal; the writer's unfinished transaction was rolled back")
                if journal.movedSuperJournal != nil { notes.append(movedSuperJournal) }
                return (versions, journal.file)
            }
            if versions != nil {
                notes.append(otherJournal)
            } else if try journal.isDamaged(of: bytes, nil) {
                notes.append(damagedJournal)
            }
        }
        guard let log = try SidecarFile(paths.wal) else { return (nil, nil) }
        if try LogHeader.losesCommits(log) { notes.append(LostCommits.finding) }
        if let header = try LogHeader(log) {
            guard let versions = try header.committedPages(in: log) else {
                notes.append("the -wal was not read, because it contains no committed transaction")
                return (nil, nil)
            }
            if versions.pageSize == geometry.pageSize { return (versions, log) }
            notes.append(foreignSidecar)
        }
        return (nil, nil)
    }
}
