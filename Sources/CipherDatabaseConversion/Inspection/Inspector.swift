package import CipherErrors
internal import CipherHistory
package import CipherKeyProviders
internal import CipherPageSealing
package import CipherSQLite
package import CipherSQLiteFormat
internal import CipherSystemFiles

/// Determines the kind and the state of a file.
///
/// It changes nothing, and reads the database only through SQLite's file layer.
package struct Inspector {
    let paths: DatabasePaths
    private let extensions: SQLExtensions
    /// How long to wait for other connections to the file.
    let busyTimeout: Duration
    private let isAlone: Bool

    /// Creates an inspector for a process that does nothing else with the file meanwhile.
    package init(path: String) throws {
        self.init(try DatabasePaths(path), isAlone: true)
    }

    /// - Parameters:
    ///   - extensions: The app's own extensions, which may be needed to read its schema.
    ///   - busyTimeout: How long to wait for other connections to the file.
    ///   - isAlone: Whether this process opens no other connection to the file meanwhile.
    package init(
        _ paths: DatabasePaths, extensions: SQLExtensions = SQLExtensions(), busyTimeout: Duration = .seconds(5),
        isAlone: Bool = false
    ) {
        self.paths = paths
        self.extensions = extensions
        self.busyTimeout = busyTimeout
        self.isAlone = isAlone
    }

    /// The kind of a file as determined without a key, by its header and its sidecars.
    ///
    /// All further decisions are based on this.
    ///
    /// ``FileState`` refines this with the key, and ``FileContent`` lists the kinds of file with which a conversion can
    /// begin.
    package enum Surface: Equatable {
        case missing
        case empty
        case plaintext
        case opaque(hasPlaintextHeader: Bool)
        case staleSidecar
    }

    /// Examines the header and the sidecars.
    ///
    /// The findings are used only if the file is still the same afterwards: another process may replace it, or create
    /// it, between two reads.
    ///
    /// - Throws: ``StoreError`` with the code `notAFile`, `permission`, `corrupt` if the content of a sidecar would
    ///   make SQLite harm this file or another one, `needsRecovery` or `staleSidecar` if an interrupted recovery has set
    ///   a sidecar aside, or `busy` if the file keeps changing.
    package func surface() throws -> Surface {
        for number in 1...FileSystem.looks {
            let before = try paths.status()
            let surface = Result { try look() }
            let after = try paths.status()
            let isSame = before?.identity == after?.identity && (before?.size == 0) == (after?.size == 0)
            // A file that was briefly missing may have come back with the same inode number.
            var wasGone = false
            if case .failure(let error as DatabaseError) = surface { wasGone = error.isCannotOpen }
            if isSame, !wasGone || number == FileSystem.looks { return try surface.get() }
        }
        throw FileSystem.changing(paths.database)
    }

    private func look() throws -> Surface {
        try checkSidecarNames()
        try AttemptRecord.checkSidecars(paths)
        guard let status = try paths.status() else {
            return try SidecarScan.holdsPages(paths) ? .staleSidecar : .missing
        }
        try FileSystem.checkRegular(status, paths.database)
        guard status.size > 0 else { return try SidecarScan.holdsPages(paths) ? .staleSidecar : .empty }
        guard FileSystem.canRead(paths.database) else {
            throw StoreError.permission(paths.database, "the file cannot be read", .read)
        }
        let header = try header()
        let isPlaintext = try isPlaintext(header)
        if try SidecarScan.isStale(paths, databaseIsPlaintext: isPlaintext) || HotJournal.isBesideCommits(paths) {
            return .staleSidecar
        }
        if try isPlaintext && (isLogOfOther(nil) || isJournalOfOther(nil)) { return .staleSidecar }
        try SidecarClaims.check(paths, header, isPlaintext: isPlaintext)
        if try hasOnlyFirstTransaction(header) { return .empty }
        return isPlaintext
            ? .plaintext : .opaque(hasPlaintextHeader: header.isEncryptedWithPlaintextHeader)
    }

    /// Returns whether the file is plaintext, or will be once SQLite has restored page 1 from a hot journal.
    ///
    /// A power loss can tear page 1 while it is overwritten. If the rest of the file looks encrypted, a plaintext journal
    /// does not belong to it. Overflow pages look encrypted if they contain compressed data, but b-tree pages do not.
    func isPlaintext(_ header: FileHeader) throws -> Bool {
        if header.isPlaintext { return true }
        guard let page = try HotJournal(paths)?.firstPage(), FileHeader.isPlaintext(page) else { return false }
        let file = try DatabaseFile(path: paths.database)
        return try !ContentKind(file).restIsRandom
            || PageProbe(file, hasPlaintextHeader: false).plaintextPageSize() != nil
    }

    /// Returns whether a crashed writer left the file's first transaction unfinished, so that SQLite reads an empty
    /// database.
    ///
    /// Until the commit, page 1 contains only zeros.
    func hasOnlyFirstTransaction(_ header: FileHeader) throws -> Bool {
        try (header.isBlank || header.isPlaintext) && HotJournal(paths)?.isOfFirstTransaction == true
    }

    /// Refuses files that SQLite cannot use as sidecars.
    ///
    /// SQLite waits forever when it opens a FIFO.
    ///
    /// It mistakes a file that it did not write for an obsolete log or journal, and removes it.
    ///
    /// A dangling link in place of the index only prevents SQLite from using WAL mode, which a conversion may have to
    /// restore.
    func checkSidecarNames(isConverting: Bool = false) throws {
        for path in [paths.wal, paths.sharedMemory, paths.journal] {
            guard let status = try FileSystem.status(path, followLinks: false) else { continue }
            if status.isRegular {
                // An index beside a log is rebuilt, whatever it contains.
                let isIndexOfLog = try path == paths.sharedMemory && FileSystem.exists(paths.wal)
                guard try !isIndexOfLog && SidecarScan.isForeign(path) else { continue }
                throw StoreError.inTheWay(
                    path, "SQLite did not write this file, but would delete it because of its name")
            }
            if !isConverting, path == paths.sharedMemory, try FileSystem.status(path) == nil { continue }
            throw StoreError.inTheWay(
                path, "SQLite uses this name for one of its files, but the name does not refer to a regular file",
                .notAFile)
        }
    }

    package func header() throws -> FileHeader {
        try FileHeader(DatabaseFile(path: paths.database))
    }

    /// Inspects the file completely.
    ///
    /// - Parameters:
    ///   - provider: Provides the key to try on an opaque file; no other key is requested. `nil` if there is no
    ///     provider.
    ///   - formats: The cipher settings to try, in order; each attempt is one key derivation.
    /// - Throws: ``StoreError`` with the code `corrupt` for a plaintext file that cannot be read, `keyDoesNotFit` if a
    ///   key was passed and opens the file in none of the formats, `notAFile` or `permission`.
    package func inspect(provider: (any KeyProvider)?, formats: [CipherSettings]) throws -> Inspection {
        // List the sidecars before the file is opened: while it is open, a reader's own -wal and -shm may be beside it.
        let sidecars = try sidecars()
        let surface: Surface
        do {
            surface = try self.surface()
        } catch let error as StoreError where error.code == .needsRecovery {
            return try result(.needsRecovery, sidecars)
        } catch let error as StoreError where error.code == .staleSidecar {
            return try result(.staleSidecar, sidecars)
        }
        switch surface {
        case .missing: return try result(.missing, sidecars)
        case .empty: return try result(FileSystem.size(paths.database) == 0 ? .empty : .needsRecovery, sidecars)
        case .staleSidecar: return try result(.staleSidecar, sidecars)
        case .plaintext:
            return try readingPlaintext { try facts($0, state: .plaintext, sidecars) }
                ?? result(.needsRecovery, sidecars)
        case .opaque(let hasPlaintextHeader):
            guard let provider else { return try result(.opaque, sidecars) }
            do {
                return try FileUnlocking(paths, provider: provider, formats: formats)
                    .run(self, hasPlaintextHeader: hasPlaintextHeader) { connection, file in
                        try facts(
                            connection, state: .encrypted, sidecars,
                            compatibility: file.fileKey.settings.compatibility)
                    }.result
            } catch let error as StoreError where error.code == .needsRecovery {
                return try result(.needsRecovery, sidecars)
            } catch let error as StoreError where error.code == .staleSidecar {
                return try result(.staleSidecar, sidecars)
            } catch let error as DatabaseError {
                throw readFailure(error)
            }
        }
    }

    package func keyDoesNotFit() -> StoreError {
        switch try? content() {
        case .notADatabase(let reason):
            return StoreError(
                .keyDoesNotFit, path: paths.database, "the file does not look like a database: \(reason)",
                advice: "check the path", changed: .nothing)
        case .damagedFirstPage(let detail):
            return StoreError(
                .keyDoesNotFit, path: paths.database, detail, advice: StoreError.damageAdvice, changed: .nothing)
        case .maybeEncrypted, nil: break
        }
        return StoreError(
            .keyDoesNotFit, path: paths.database,
            "the key does not open this file: the file is damaged, or it uses a different key or cipher format",
            advice: "check the key", changed: .nothing)
    }

    /// What the bytes of an opaque file show without a key.
    package enum Content: Equatable {
        /// The file is a database whose first page is damaged. The text states the damage.
        case damagedFirstPage(String)
        /// The file cannot be an encrypted database, for the reason stated as a clause.
        case notADatabase(String)
        /// Only a key can show whether the file is an encrypted database.
        case maybeEncrypted
    }

    /// Judges an opaque file by its bytes.
    package func content() throws -> Content {
        let file = try DatabaseFile(path: paths.database)
        let hasPlaintextHeader = try header().isEncryptedWithPlaintextHeader
        let probe = try PageProbe(file, hasPlaintextHeader: hasPlaintextHeader)
        return try content(ContentKind(file), probe, plaintextPageSize: probe.plaintextPageSize())
    }

    func content(_ kind: ContentKind, _ probe: PageProbe, plaintextPageSize: Int?) -> Content {
        // Otherwise, the beginning of another file may have overwritten the first page.
        if let plaintextPageSize, !kind.mayContainDatabase {
            return .damagedFirstPage(
                "the file is a plaintext database with a damaged first page: its other pages (of \(plaintextPageSize) "
                    + "bytes) can be read without a key")
        }
        if let name = kind.name { return .notADatabase("it looks like \(name)") }
        if kind.isBlank { return .notADatabase("it contains only zeros") }
        if kind.isText { return .notADatabase("it contains text") }
        if probe.size < Int64(FileHeader.smallestPage) {
            // SQLite reports a size of 0 for a file of one byte.
            let size = (try? FileSystem.size(paths.database)) ?? probe.size
            let bytes = "\(size) byte\(size == 1 ? "" : "s")"
            return .notADatabase("it has \(bytes), which is less than one page")
        }
        if kind.restIsRandom, kind.plainStart > 0, !probe.hasPlaintextHeader {
            return .damagedFirstPage(
                "the first \(kind.plainStart) bytes of the file are not encrypted, but the rest seems to be "
                    + "encrypted; the salt that was stored in these bytes is lost, and no passphrase can be tried "
                    + "without it")
        }
        return kind.isRandom || probe.hasPlaintextHeader || kind.hasReadablePageSize
            ? .maybeEncrypted : .notADatabase("its bytes do not look encrypted")
    }

    package func staleSidecar() -> StoreError {
        if (try? HotJournal.isBesideCommits(paths)) == true {
            return .staleSidecar(
                paths,
                "there is a -journal next to the file although its -wal contains committed transactions; SQLite writes no "
                    + "journal in this state, but would play this one back",
                "-journal")
        }
        return .staleSidecar(
            paths,
            "the -wal or -journal next to the file belongs to another copy of the database, and SQLite would overwrite "
                + "the file with pages from that copy",
            "-wal or -journal")
    }

    package func needsRecovery() -> StoreError {
        StoreError(
            .needsRecovery, path: paths.database,
            "a writer crashed and left a journal, which must be rolled back before the file is read",
            advice: (FileSystem.canWriteInFolder(paths.folder) ? "" : "make the folder writable; then ")
                + "open the file for writing, or run the upgrade")
    }

    /// Reads a plaintext file.
    ///
    /// Returns `nil` if a journal must be rolled back first.
    package func readingPlaintext<Result>(_ body: (Connection) throws -> Result) throws -> Result? {
        do {
            return try ReadOnlyAccess.withConnection(
                paths, nil, extensions, busyTimeout: busyTimeout, isAlone: isAlone
            ) { connection in
                try checkLength(connection, nil)
                return try body(connection)
            }
        } catch let error as DatabaseError {
            if error.needsRecovery { return nil }
            throw readFailure(error)
        }
    }

    /// Reads an encrypted file.
    ///
    /// - Returns: `nil` if the key does not open the file in this format.
    /// - Throws: ``StoreError`` with the code `needsRecovery` if a journal must be rolled back first.
    package func readingEncrypted<Result>(
        key: CipherKey, settings: CipherSettings, hasPlaintextHeader: Bool,
        _ body: (Connection, FileKey) throws -> Result
    ) throws -> Result? {
        // Older formats do not support a readable header.
        guard !hasPlaintextHeader || settings.traits.canHaveReadableHeader else { return nil }
        let unlocked = try fileKey(key, settings, hasPlaintextHeader: hasPlaintextHeader)
        do {
            return try ReadOnlyAccess.withConnection(
                paths, unlocked, extensions, busyTimeout: busyTimeout, isAlone: isAlone
            ) { connection in
                if try isLogOfOther(unlocked) { throw staleSidecar() }
                try checkLength(connection, unlocked)
                return try body(connection, unlocked)
            }
        } catch let error as DatabaseError where error.isNotADatabase {
            return nil
        } catch let error as DatabaseError where error.needsRecovery {
            throw needsRecovery()
        } catch let error as DatabaseError {
            // The content of the log may make the schema unreadable.
            if error.isCorrupt, try isLogOfOther(unlocked) { throw staleSidecar() }
            throw readFailure(error)
        }
    }

    /// Returns whether the log belongs to another copy of the file.
    ///
    /// - Parameter fileKey: The key that opens an encrypted file.
    private func isLogOfOther(_ fileKey: FileKey?) throws -> Bool {
        try LogMatch(
            paths: paths,
            firstPage: {
                let file = try DatabaseFile(path: paths.database)
                return (try file.read(at: 0, count: fileKey?.settings.pageSize ?? FileHeader.length), try file.size())
            }, opening: { try fileKey?.key.openFirstPage($0, fileKey?.settings ?? CipherSettings()) ?? $0 }
        ).isOther()
    }

    /// Returns whether a hot journal belongs to another copy of the file.
    ///
    /// - Parameter fileKey: The key that opens an encrypted file.
    func isJournalOfOther(_ fileKey: FileKey?) throws -> Bool {
        let file = try DatabaseFile(path: paths.database)
        let count = fileKey?.settings.pageSize ?? FileHeader.length
        let before = try file.read(at: 0, count: count)
        guard before.count == count, let journal = try HotJournal(paths) else { return false }
        func open(_ page: [UInt8]) throws -> [UInt8] {
            try fileKey.map { try $0.key.openFirstPage(page, $0.settings) } ?? page
        }
        let page = FileHeader(bytes: try open(before), fileSize: 0)
        guard try journal.isOther(than: page, isPlaintext: fileKey == nil, opening: open) else { return false }
        // If the page has changed, another process has ended the transaction of this journal.
        return try file.read(at: 0, count: count) == before
    }

    /// Derives the key with the file's own salt, once for all connections and stores of this process.
    func fileKey(_ key: CipherKey, _ settings: CipherSettings, hasPlaintextHeader: Bool) throws -> FileKey {
        var settings = settings
        guard hasPlaintextHeader else {
            settings.plaintextHeaderSize = 0
            guard let salt = try header().salt else { throw keyDoesNotFit() }
            return try FileKey(key, salt: salt, settings)
        }
        settings.plaintextHeaderSize = 32
        try key.checkSalt(for: settings, path: paths.database)
        return FileKey(key: key, settings: settings)
    }

    /// Detects a truncated file: some of the database's pages are neither in the file nor in its log.
    ///
    /// The length is checked before anything is opened for writing: a checkpoint would extend the file to its former
    /// length, with empty space in place of the lost pages.
    ///
    /// It would also merge the pages of the log, so those of an encrypted file are authenticated.
    private func checkLength(_ connection: Connection, _ fileKey: FileKey?) throws {
        // The header, the length and the log are consistent only within a read transaction. During the transaction, no
        // writer changes the file, no checkpoint moves frames that the transaction sees out of the log, and no log
        // restarts after such a checkpoint.
        try connection.transaction(.deferred) {
            let pages = try connection.value(Int.self, "PRAGMA page_count") ?? 0
            let header = try header()
            if let log = try SidecarFile(paths.wal), let claims = try LogHeader(log) {
                if let fileKey, try claims.pagesAtCommit(in: log) > 0 {
                    try LogAuthenticity(paths: paths, key: fileKey).check(claims, log)
                }
                let whole = Int(header.fileSize) / claims.pageSize
                guard pages > whole, try claims.lacks(pagesFrom: whole + 1, to: pages, in: log) else { return }
                throw cutOff(pages, claims.pageSize)
            }
            guard header.isPlaintext, let pages = header.claimedPages,
                Int64(pages) * Int64(header.pageSize) > header.fileSize
            else { return }
            throw cutOff(pages, header.pageSize)
        }
    }

    private func cutOff(_ pages: Int, _ pageSize: Int) -> StoreError {
        .damaged(
            paths.database,
            "the file is truncated: its header declares \(pages) page\(pages == 1 ? "" : "s") of \(pageSize) bytes")
    }

    private func facts(
        _ connection: Connection, state: FileState, _ sidecars: [String: Int64], compatibility: Int? = nil
    ) throws -> Inspection {
        try result(
            state, sidecars,
            version: connection.value(Int.self, "PRAGMA user_version"),
            recordedVersion: try? connection.withinSteps { try VersionRecords(connection).version },
            applicationID: connection.value(Int.self, "PRAGMA application_id"),
            journalMode: ReadOnlyAccess.journalMode(of: connection),
            compatibility: compatibility)
    }

    private func sidecars() throws -> [String: Int64] {
        let unfinished =
            try AttemptRecord.read(paths).map {
                [$0.copyName(paths), $0.unfinishedBackupName(paths)].map { FileName.sibling($0, of: paths.database) }
            } ?? []
        var sidecars: [String: Int64] = [:]
        let own = [paths.wal, paths.sharedMemory, paths.journal, paths.attempt]
        for path in try own + unfinished + paths.backups() + paths.damagedOriginals() {
            if let size = try FileSystem.size(path) { sidecars[FileSystem.split(path).name] = size }
        }
        return sidecars
    }

    private func result(
        _ state: FileState, _ sidecars: [String: Int64], version: Int? = nil, recordedVersion: SchemaVersion? = nil,
        applicationID: Int? = nil, journalMode: String? = nil, compatibility: Int? = nil
    ) throws -> Inspection {
        Inspection(
            path: paths.database, state: state, size: try FileSystem.size(paths.database) ?? 0, sidecars: sidecars,
            version: version, recordedVersion: recordedVersion, applicationID: applicationID, journalMode: journalMode,
            cipherCompatibility: compatibility)
    }

    /// Converts SQLite's error about the file into a typed error.
    package func readFailure(_ error: DatabaseError, during work: DatabaseWork = .use) -> StoreError {
        // In an encrypted file, these bytes are random.
        let writerVersion = (try? header()).flatMap { $0.isPlaintext ? $0.writerVersion : nil }
        let failure = StoreError(error, path: paths.database, during: work, writerVersion: writerVersion)
        guard failure.code == .corrupt, !error.isConstraintViolation,
            let size = try? FileSystem.size(paths.wal), size > 0
        else { return failure }
        return StoreError(
            .corrupt, path: failure.path, failure.detail + ", or its -wal belongs to another copy of the file",
            advice: "restore the file and its -wal from the same backup", underlying: error)
    }
}
