internal import CipherPageOpening
internal import CipherPrimitives
internal import CipherSQLite
internal import CipherSQLiteFormat
internal import CipherSystemFiles

/// Examines the sidecars of a file whose key was found, and what SQLite would do with them.
extension Diagnostician {
    /// Returns the pages of which a log or a hot journal has a different version than the file.
    func pagesBeside(pageSize: Int) throws -> Set<UInt32> {
        var pages: Set<UInt32> = []
        if let log = try SidecarFile(paths.wal), let header = try LogHeader(log), header.pageSize == pageSize,
            let versions = try header.committedPages(in: log)
        {
            pages.formUnion(versions.offsets.keys)
        }
        if let versions = try HotJournal(paths)?.originalPages(pageSize: pageSize), versions.pageSize == pageSize {
            pages.formUnion(versions.offsets.keys)
        }
        return pages
    }

    /// Whether pages of the database are neither in the file nor beside it.
    ///
    /// If a hot journal has another version of page 1, the writer of the file's version crashed, and the number in it may
    /// be larger than that of the database.
    ///
    /// - Parameter stated: The number of pages on page 1 of the file.
    func lacksPages(_ stated: Int, pageSize: Int, fileSize: Int64) throws -> Bool {
        // A damaged header states no page size.
        guard pageSize > 0 else { return false }
        let original = try HotJournal(paths)?.originalPages(pageSize: pageSize)
        let count = original.map { $0.offsets[1] == nil ? stated : min(stated, Int(clamping: $0.pageCount)) } ?? stated
        let whole = Int(fileSize / Int64(pageSize))
        guard count > whole else { return false }
        let besides = try pagesBeside(pageSize: pageSize)
        return count - whole > 1 << 20 || (whole + 1...count).contains { !besides.contains(UInt32($0)) }
    }

    mutating func lookBeside(_ sealed: PageProbe.Sealed) throws {
        for path in [paths.wal, paths.journal] where try SidecarScan.isForeign(path) { return addForeignSidecar() }
        if let log = try SidecarFile(paths.wal), let header = try LogHeader(log) {
            try lookAtLog(log, header, sealed)
        }
        if let journal = try SidecarFile(paths.journal), let header = try JournalHeader(journal), header.isHot {
            try lookAtJournal(sealed)
        }
    }

    private mutating func lookAtLog(_ log: SidecarFile, _ header: LogHeader, _ sealed: PageProbe.Sealed) throws {
        guard let versions = try header.committedPages(in: log) else { return }
        guard header.pageSize == sealed.seal.pageSize else {
            return addStaleLog(
                "the page size is \(header.pageSize) bytes in the -wal but \(sealed.seal.pageSize) bytes in the file")
        }
        let (authentic, all) = try count(versions, in: log, sealed)
        if authentic == 0 {
            let isPlaintext = try SidecarScan.isStale(paths, databaseIsPlaintext: false)
            addStaleLog(
                isPlaintext
                    ? "the pages in the -wal are not encrypted"
                    : "the pages in the -wal are encrypted with another key, so the -wal belongs to another file or "
                        + "was written before the file's key was changed")
        } else if authentic < all {
            addStaleLog("\(all - authentic) of \(all) pages in the -wal cannot be authenticated with the file's key")
        }
    }

    /// Reports a journal as a rollback would judge it, unless a writer is using the file and the journal.
    private mutating func lookAtJournal(_ sealed: PageProbe.Sealed) throws {
        guard try !HotJournal.isBesideCommits(paths) else { return addStale() }
        guard let format = diagnosis.format, format.fault() == nil,
            let salt = try sealed.salt ?? inspector.header().salt.map({ $0.withUnsafeBytes { Array($0) } })
        else { return addHotJournal() }
        let key = FileKey(key: try CipherKey.raw(sealed.key, salt: SecretBytes(salt)), settings: format)
        let (paths, inspector) = (paths, inspector)
        func judge() throws -> StoreError? {
            do {
                try JournalRollback(paths: paths).checkPages(key, inspector)
                return nil
            } catch let error as StoreError {
                return error
            }
        }
        // A file that cannot be written cannot be locked either.
        let fault =
            FileSystem.canWrite(paths.database)
            ? try DatabaseFile(path: paths.database, access: .readWrite).whileUnused(judge) ?? nil : try judge()
        guard let fault else { return addHotJournal() }
        diagnosis.add(
            .staleJournal, "the -journal next to the file must not be rolled back: \(fault.detail)",
            "move the -journal elsewhere before opening the file")
    }

    /// Returns the number of pages in a sidecar that belong to the file, and the number of all pages.
    private func count(
        _ versions: PageVersions, in sidecar: SidecarFile, _ sealed: PageProbe.Sealed
    ) throws -> (authentic: Int, all: Int) {
        let seal = sealed.seal
        let authenticator = sealed.salt.flatMap { PageAuthenticator(seal, key: sealed.key, salt: $0) }
        let decryption = sealed.key.withUnsafeBytes { AESCBC(.decrypt, key: $0) }
        var authentic = 0
        for (number, offset) in versions.offsets {
            guard let page = try sidecar.read(at: offset, count: seal.pageSize) else { continue }
            let start = number == 1 ? sealed.firstPageStart ?? CipherKey.saltLength : 0
            let isOwn: Bool
            if let authenticator {
                isOwn = page.withUnsafeBytes { authenticator.isAuthentic($0, number, from: start) }
            } else {
                let content = decryption.flatMap { seal.opened(page, from: start, $0) }
                isOwn =
                    content.map { content in
                        number == 1
                            ? content.count >= 92 && content[72..<92].allSatisfy { $0 == 0 }
                            : PageShape(content + [UInt8](repeating: 0, count: seal.reserved)).isTree
                    } ?? false
            }
            authentic += isOwn ? 1 : 0
        }
        return (authentic, versions.offsets.count)
    }

    // MARK: Causes

    private mutating func addStaleLog(_ reason: String) {
        diagnosis.add(
            .staleLog, "the -wal next to the file does not belong to this file: \(reason)",
            "move the -wal and the -shm elsewhere before opening the file, or restore the file and its -wal from the "
                + "same backup"
        )
    }

    mutating func addStale() {
        if (try? HotJournal.isBesideCommits(paths)) == true {
            let error = inspector.staleSidecar()
            return diagnosis.add(.staleJournal, error.detail, "move the -journal elsewhere before opening the file")
        }
        let log = (try? SidecarFile(paths.wal)) ?? nil
        let ending = log == nil ? "-journal" : "-wal"
        diagnosis.add(
            log == nil ? .staleJournal : .staleLog,
            "the \(ending) next to the file belongs to another copy of the database, and SQLite would overwrite the "
                + "file with pages from that copy",
            "move the \(ending) elsewhere before opening the file, or restore the file and its \(ending) from the "
                + "same backup")
    }

    /// Whether a folder, a link, a FIFO or a device has the name of the log or the journal.
    var hasSidecarWithoutContent: Bool {
        get throws { try [paths.wal, paths.journal].contains(where: isOtherThanRegular) }
    }

    private func isOtherThanRegular(_ path: String) throws -> Bool {
        try FileSystem.status(path, followLinks: false)?.isRegular == false
    }

    mutating func addForeignSidecar() {
        let isLog =
            (try? SidecarScan.isForeign(paths.wal)) == true || (try? isOtherThanRegular(paths.wal)) == true
        let ending = isLog ? "-wal" : "-journal"
        diagnosis.add(
            isLog ? .staleLog : .staleJournal, "the \(ending) next to the file was not written by SQLite",
            "move the \(ending) elsewhere")
    }

    mutating func addHotJournal() {
        if let path = (try? HotJournal(paths)?.confirmedMovedSuperJournal(paths)) ?? nil {
            let error = SidecarClaims.movedSuperJournal(path, paths)
            return diagnosis.add(.damagedPages, error.detail, error.advice)
        }
        diagnosis.add(
            .hotJournal, "a writer crashed and left a -journal, which must be rolled back before the file is read",
            "make the folder writable, then open the file once for writing")
    }
}
