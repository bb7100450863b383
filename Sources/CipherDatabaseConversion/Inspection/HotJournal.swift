internal import CipherErrors
internal import CipherSQLite
internal import CipherSQLiteFormat
internal import CipherSystemFiles

/// A journal that SQLite plays back before it reads the database.
///
/// Source: SQLite, "Atomic Commit In SQLite", section 5.5.
package struct HotJournal {
    let file: SidecarFile
    let header: JournalHeader
    /// The path of the super-journal, if it is unknown whether the transaction was committed because the database has
    /// been moved or copied since.
    private(set) var movedSuperJournal: String?

    /// Opens the journal of a database; returns `nil` if SQLite would play back nothing.
    ///
    /// A transaction across several databases is committed by removing its super-journal. From then on, SQLite removes
    /// the journals that name this super-journal and does not play them back. It also does so if the super-journal was
    /// moved together with the database, because the path in the journals is absolute. The super-journal counts as moved
    /// if a file with its name is beside the database, if its folder cannot be found, or if its path cannot be examined.
    init?(_ paths: DatabasePaths) throws {
        guard let file = try SidecarFile(paths.journal), let header = try JournalHeader(file), header.isHot else {
            return nil
        }
        if let name = try JournalHeader.superJournalName(in: file) {
            let path = SystemPath.text(name.prefix { $0 != 0 })
            // A path that cannot be examined is not known to be empty.
            let isThere = try? Self.hasContent(path)
            if isThere != true {
                let (folder, name) = FileSystem.split(path)
                let isFolderThere = (try? FileSystem.status(folder))??.isDirectory == true
                let isBeside = (try? Self.hasContent(FileName.sibling(name, of: paths.database))) == true
                guard isThere == nil || !isFolderThere || isBeside else { return nil }
                movedSuperJournal = path
            }
        }
        self.file = file
        self.header = header
    }

    /// Returns the path of the super-journal if it was moved and no connection is using the database.
    ///
    /// A file that cannot be written cannot be locked either, so it counts as unused. A running writer may find the super-journal at a path that leads elsewhere for this process, as in a container.
    func confirmedMovedSuperJournal(_ paths: DatabasePaths) throws -> String? {
        guard let path = movedSuperJournal else { return nil }
        guard FileSystem.canWrite(paths.database) else { return path }
        let file = try DatabaseFile(path: paths.database, access: .readWrite)
        return try file.whileUnused { try HotJournal(paths)?.movedSuperJournal } ?? nil
    }

    /// Returns whether SQLite would find a super-journal at the path.
    ///
    /// A file that is empty does not count; new versions of SQLite count anything that is not a regular file. Source:
    /// SQLite, `os_unix.c`, `unixAccess`.
    private static func hasContent(_ path: String) throws -> Bool {
        try FileSystem.status(path).map { !$0.isRegular || $0.size > 0 } ?? false
    }

    /// Returns whether there is a hot journal although the log contains committed transactions.
    ///
    /// SQLite would play back the journal, and then use the log. It writes no journal while a database is in WAL mode, and
    /// it leaves WAL mode only after the log is in the file, so the two do not belong together.
    ///
    /// Source: SQLite, "Write-Ahead Logging", section 1, and `sqlite3PagerSharedLock` in its `pager.c`.
    static func isBesideCommits(_ paths: DatabasePaths) throws -> Bool {
        guard try HotJournal(paths) != nil, let log = try SidecarFile(paths.wal), let header = try LogHeader(log),
            try header.pagesAtCommit(in: log) > 0
        else { return false }
        // A process that has ended its transaction since then may have begun the log.
        return try HotJournal(paths) != nil
    }

    /// Returns the pages that SQLite restores; `nil` if the journal has no segment that SQLite can read.
    ///
    /// - Parameter pageSize: The page size of the database, used if the journal does not contain one.
    func originalPages(pageSize: Int = 0) throws -> PageVersions? {
        try header.originalPages(in: file, pageSize: pageSize)
    }

    static let damage =
        "the hot journal is damaged, so SQLite would not restore all pages that an unfinished transaction changed"

    /// Checks that SQLite can roll back the journal, immediately before a connection does so.
    ///
    /// While another process is using the database, even if only to inspect it, ``Inspector/surface()`` cannot tell
    /// whether the journal is sound: a running writer may be changing it. This check therefore waits until the database
    /// is not in use. Without a hot journal, it does nothing.
    ///
    /// - Parameters:
    ///   - fileKey: The key that opens the database; `nil` for a plaintext database.
    ///   - timeout: How long to wait for connections that use the database.
    /// - Throws: ``StoreError`` with the code `corrupt` if the journal is damaged or its super-journal was moved, or
    ///   `busy` if the database was in use the whole time.
    package static func checkRollback(_ paths: DatabasePaths, _ fileKey: FileKey?, timeout: Duration) throws {
        guard try HotJournal(paths) != nil else { return }
        let isWritable = FileSystem.canWrite(paths.database)
        let file = try DatabaseFile(path: paths.database, access: isWritable ? .readWrite : .readOnly)
        func check() throws {
            guard let journal = try HotJournal(paths) else { return }
            if let path = journal.movedSuperJournal { throw SidecarClaims.movedSuperJournal(path, paths) }
            if try journal.isDamaged(of: bytes(of: file), fileKey) { throw StoreError.damaged(paths.database, damage) }
        }
        guard isWritable else { return try check() }
        // A writer that was running may have ended its transaction while others continue to read.
        guard try file.whileUnused(timeout: timeout, check) == nil, try HotJournal(paths) != nil else { return }
        throw StoreError.inUse(paths.database)
    }

    private static func bytes(of file: DatabaseFile) throws -> ReadBytes {
        try ReadBytes(size: file.size()) { try file.fill($1, at: $0) }
    }

    /// Returns whether the journal of a plaintext database is damaged, and no connection is using the database.
    ///
    /// A file that cannot be written cannot be locked either, so it counts as unused.
    func isDamaged(_ paths: DatabasePaths) throws -> Bool {
        guard try isDamaged(of: Self.bytes(of: DatabaseFile(path: paths.database)), nil) else { return false }
        guard FileSystem.canWrite(paths.database) else { return true }
        let file = try DatabaseFile(path: paths.database, access: .readWrite)
        return try file.whileUnused { try HotJournal(paths) != nil && isDamaged(of: Self.bytes(of: file), nil) }
            ?? false
    }

    /// Returns whether the journal is damaged, if no writer is using the database.
    func isDamaged(of database: some ByteSource, _ fileKey: FileKey?) throws -> Bool {
        guard let fileKey else {
            return try header.isDamaged(in: file, of: database, pageSize: FileHeader(of: database)?.pageSize ?? 0)
        }
        let opening = try PageOpening(fileKey)
        return try header.isDamaged(
            in: file, of: database, pageSize: fileKey.settings.pageSize, isSame: opening.areSame)
    }

    /// Returns page 1 as SQLite restores it, if the journal contains it.
    ///
    /// - Parameter pageSize: The page size of the database, used if the journal does not contain one.
    func firstPage(pageSize: Int = 0) throws -> [UInt8]? { try originalPages(pageSize: pageSize).flatMap(firstPage) }

    private func firstPage(_ versions: PageVersions) throws -> [UInt8]? {
        try versions.offsets[1].flatMap { try file.read(at: $0, count: versions.pageSize) }
    }

    /// Whether the journal is that of the first transaction of a database, so that SQLite truncates the file to 0
    /// bytes.
    var isOfFirstTransaction: Bool {
        get throws { try header.initialPages == 0 && originalPages() != nil }
    }

    /// Returns whether the journal belongs to another copy of the database.
    ///
    /// SQLite would overwrite the file with pages from that copy, and truncate it to the length of that copy.
    ///
    /// SQLite writes page 1 on commit, with a change counter that is one more than before, or 1 in a new database.
    /// Before that, it adds page 1 to the journal, unless the database is new. Therefore the counter of the file is one
    /// of two values. If the journal does not contain page 1, the page is as it was before the transaction, so it does
    /// not claim more pages than the journal does. SQLCipher derives the counter from encrypted bytes that the journal
    /// does not contain, so the counter in an encrypted file is known only in a new database.
    ///
    /// Source: SQLite, `pager.c`, `pager_write_changecounter`; measured with SQLite 3.15 and 3.46.
    ///
    /// - Parameters:
    ///   - page: Page 1 of the file.
    ///   - opening: Returns page 1 as plaintext.
    func isOther(
        than page: FileHeader, isPlaintext: Bool, opening: ([UInt8]) throws -> [UInt8]
    ) throws -> Bool {
        guard let counter = page.changeCounter, let claimed = page.claimedPages,
            let versions = try originalPages(pageSize: page.pageSize)
        else { return false }
        var before: UInt32? = 0
        if header.initialPages > 0 {
            guard let original = try firstPage(versions) else {
                return versions.pageSize != page.pageSize || claimed > header.initialPages
            }
            // VACUUM can change the page size, but not that of an encrypted file.
            let canOpen = isPlaintext || versions.pageSize == page.pageSize
            let opened = canOpen ? FileHeader(bytes: try opening(original), fileSize: 0) : nil
            // SQLite would cut the file to fewer pages than the database had.
            if let all = opened?.claimedPages, all > header.initialPages { return true }
            before = isPlaintext ? opened?.changeCounter : nil
        }
        // A commit that failed because another of its databases was busy can be repeated, which increases the counter
        // again.
        guard let before, try JournalHeader.superJournalName(in: file) == nil else { return false }
        return counter != before && counter != before &+ 1
    }
}
