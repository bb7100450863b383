internal import CipherErrors
internal import CipherSQLiteFormat
internal import CipherSystemFiles

/// The actions that a `-wal` or `-journal` can make SQLite perform besides restoring pages.
///
/// SQLite trusts the content of these files. It extends the database to the length that a hot journal or the last
/// commit of a log states, even if that means terabytes of empty space. It also removes the file that a hot journal
/// names as its super-journal, whatever that file is, and treats the transaction as committed if there is no such file.
///
/// Source: SQLite, "Database File Format", section 3, and "Atomic Commit In SQLite", section 5.
enum SidecarClaims {
    /// Refuses claims that no writer makes, before the database is opened.
    ///
    /// - Parameters:
    ///   - header: The header of the database.
    ///   - isPlaintext: Whether the database is plaintext, so that its pages can be compared with a journal.
    /// - Throws: ``StoreError`` with the code `corrupt`.
    static func check(_ paths: DatabasePaths, _ header: FileHeader, isPlaintext: Bool) throws {
        if let journal = try SidecarFile(paths.journal) { try checkSuperJournal(of: journal, paths) }
        if let journal = try HotJournal(paths) {
            if let path = try journal.confirmedMovedSuperJournal(paths) { throw movedSuperJournal(path, paths) }
            let pageSize = journal.header.pageSize == 0 ? header.pageSize : journal.header.pageSize
            try check(journal.header.initialPages, of: pageSize, journal.file, header, paths)
            if try isPlaintext && journal.isDamaged(paths) {
                throw StoreError.damaged(paths.database, HotJournal.damage)
            }
        }
        if let log = try SidecarFile(paths.wal), let claims = try LogHeader(log) {
            var pages = try claims.pagesAtCommit(in: log)
            // Only the last commit determines the size, but finding that commit requires reading all pages.
            if !isPlausible(pages, of: claims.pageSize, log, header) {
                pages = try claims.committedPages(in: log)?.pageCount ?? 0
            }
            try check(pages, of: claims.pageSize, log, header, paths)
        }
    }

    /// The largest plausible ratio of the database size that a sidecar declares to the combined size of the sidecar and
    /// the database.
    ///
    /// A transaction can shrink a file considerably, because the free pages that it cuts off are in no journal; but no
    /// writer exceeds this ratio.
    private static let mostGrowth: Int64 = 64

    private static func check(
        _ pages: UInt32, of pageSize: Int, _ sidecar: SidecarFile, _ header: FileHeader, _ paths: DatabasePaths
    ) throws {
        guard !isPlausible(pages, of: pageSize, sidecar, header) else { return }
        throw StoreError.damaged(
            paths.database,
            "\(FileSystem.split(sidecar.path).name) declares a database size of \(Int64(pages) * Int64(pageSize)) bytes, "
                + "but this file and the database together contain only \(header.fileSize + sidecar.size) bytes")
    }

    private static func isPlausible(
        _ pages: UInt32, of pageSize: Int, _ sidecar: SidecarFile, _ header: FileHeader
    ) -> Bool {
        Int64(pages) * Int64(pageSize) / mostGrowth <= header.fileSize + sidecar.size
    }

    /// Checks the super-journal name at the end of a journal of a multi-database transaction.
    private static func checkSuperJournal(of journal: SidecarFile, _ paths: DatabasePaths) throws {
        guard let name = try JournalHeader.superJournalName(in: journal), !isSuperJournal(name) else { return }
        throw StoreError.damaged(
            paths.database, "the hot journal refers to a file that is not a journal, and SQLite would delete that file")
    }

    /// Creates the error for a journal of a transaction across several databases that have since been moved or copied.
    ///
    /// SQLite would treat the transaction as committed, although the database may contain only part of its changes.
    static func movedSuperJournal(_ path: String, _ paths: DatabasePaths) -> StoreError {
        let recovery =
            "recover each database with cipherstore recover, DatabaseConverter.recover or EncryptedStore.recover; this "
            + "rolls the transaction back"
        // The files in the old folder may be in use.
        let isCopy =
            (try? FileSystem.exists(FileName.sibling(FileSystem.split(paths.database).name, of: path))) == true
        return StoreError(
            .corrupt, path: paths.database,
            "a writer crashed during a transaction across several databases, and the database was moved or copied "
                + "afterwards: the journal names the super-journal \(SystemPath.printable(path)), which was not found, so "
                + "it is unknown whether the transaction was committed",
            advice: isCopy
                ? recovery
                : "move the databases, their journals and the super-journal back to "
                    + "\(SystemPath.printable(FileSystem.split(path).folder)), and open each database there once for "
                    + "writing; if this is not possible, \(recovery)",
            changed: .nothing)
    }

    /// Returns whether SQLite would generate such a name: that of a database, `-mj`, and eight or nine hexadecimal
    /// digits.
    ///
    /// SQLite reads the name up to a NUL, so a valid ending after a NUL must be ignored.
    private static func isSuperJournal(_ name: [UInt8]) -> Bool {
        !name.contains(0)
            && [8, 9].contains { count in
                let suffix = name.suffix(count + 3)
                return suffix.count == count + 3 && suffix.starts(with: "-mj".utf8)
                    && suffix.dropFirst(3).allSatisfy { Character(UnicodeScalar($0)).isHexDigit }
            }
    }
}
