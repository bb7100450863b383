internal import CipherErrors
internal import CipherSQLiteFormat
internal import CipherSystemFiles

/// A journal that SQLite plays back before it reads the database.
///
/// Source: SQLite, "Atomic Commit In SQLite", section 5.5.
struct HotJournal {
    let file: SidecarFile
    let header: JournalHeader

    /// Opens the journal of a database; returns `nil` if SQLite would play back nothing.
    ///
    /// A transaction over several databases is committed by removing its super-journal. From then on, SQLite removes
    /// the journals that name this super-journal and does not play them back.
    init?(_ paths: DatabasePaths) throws {
        guard let file = try SidecarFile(paths.journal), let header = try JournalHeader(file), header.isHot else {
            return nil
        }
        if let name = try JournalHeader.superJournalName(in: file),
            try FileSystem.size(SystemPath.text(name.prefix { $0 != 0 })) ?? 0 == 0
        {
            return nil
        }
        self.file = file
        self.header = header
    }

    /// Returns the pages that SQLite restores; `nil` if the journal has no segment that SQLite can read.
    ///
    /// - Parameter pageSize: The page size of the database, used if the journal does not contain one.
    func originalPages(pageSize: Int = 0) throws -> PageVersions? {
        try header.originalPages(in: file, pageSize: pageSize)
    }

    /// Returns page 1 as SQLite restores it, if the journal contains it.
    func firstPage() throws -> [UInt8]? { try originalPages().flatMap(firstPage) }

    private func firstPage(_ versions: PageVersions) throws -> [UInt8]? {
        try versions.offsets[1].flatMap { try file.read(at: $0, count: versions.pageSize) }
    }
}
