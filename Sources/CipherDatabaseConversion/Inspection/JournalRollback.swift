internal import CipherErrors
internal import CipherSQLite
internal import CipherSQLiteFormat
internal import CipherSystemFiles

/// Rolls back the journal that a crashed writer left beside an encrypted file.
///
/// Only a read-write connection can do that, and none is opened before the key has been verified. The file itself
/// cannot be read before the rollback, so the key is tried on its first page alone.
package struct JournalRollback {
    let paths: DatabasePaths

    /// Rolls back the journal.
    ///
    /// The caller holds the upgrade lock.
    ///
    /// - Throws: ``StoreError`` with the code `keyDoesNotFit`, `staleSidecar` if the journal belongs to another
    ///   database, `corrupt` if it is damaged, `permission` in a folder that cannot be written, or `needsRecovery` if
    ///   the rollback left an empty file, which no key opens.
    func run(_ unlocked: FileKey, inspector: Inspector) throws {
        try Self.checkAccess(paths)
        guard try fits(unlocked) else { throw inspector.keyDoesNotFit() }
        if try HotJournal.isBesideCommits(paths) || inspector.isJournalOfOther(unlocked) {
            throw inspector.staleSidecar()
        }
        try checkPages(unlocked, inspector)
        try HotJournal.checkRollback(paths, unlocked, timeout: inspector.busyTimeout)
        do {
            let connection = try ConnectionProfile.plain(.readWrite).with(unlocked)
                .open(paths.database, busyTimeout: inspector.busyTimeout)
            defer { connection.close() }
            try connection.proveReadable()
        } catch let error as DatabaseError {
            throw inspector.readFailure(error)
        }
        guard try FileSystem.size(paths.database) != 0 else {
            throw StoreError(
                .needsRecovery, path: paths.database,
                "the first transaction of the database was not committed; it was rolled back, and the file is now empty",
                advice: "open the file again to create the database")
        }
    }

    /// Rolls back the unfinished first transaction of a database, which leaves a file of 0 bytes.
    ///
    /// The caller holds the upgrade lock. Without such a transaction, this does nothing.
    ///
    /// - Throws: ``StoreError`` with the code `busy` if the writer is still running and has committed the transaction;
    ///   `permission` if the file cannot be written.
    static func runFirstTransaction(_ paths: DatabasePaths, busyTimeout: Duration) throws {
        let inspector = Inspector(paths, busyTimeout: busyTimeout)
        guard try inspector.surface() == .empty, try FileSystem.size(paths.database) != 0 else { return }
        try checkAccess(paths)
        let connection = try ConnectionProfile.plain(.readWrite).open(paths.database, busyTimeout: busyTimeout)
        defer { connection.close() }
        try connection.proveReadable()
        guard try FileSystem.size(paths.database) ?? 0 == 0 else { throw StoreError.madeMeanwhile(paths.database) }
    }

    /// Checks that a journal can be rolled back.
    ///
    /// - Throws: ``StoreError`` with the code `permission` if the file or its folder cannot be written.
    package static func checkAccess(_ paths: DatabasePaths) throws {
        guard FileSystem.canWriteInFolder(paths.folder), FileSystem.canWrite(paths.database) else {
            throw StoreError.permission(
                paths.database,
                "a writer crashed and left a journal, which cannot be rolled back because the file or its folder is "
                    + "not writable",
                .writeWithFolder)
        }
    }

    /// Tries the key on page 1, and on page 1 as the journal will restore it: a power loss can tear the page while it
    /// is overwritten, and then no key opens it.
    private func fits(_ unlocked: FileKey) throws -> Bool {
        let page = try DatabaseFile(path: paths.database).read(at: 0, count: unlocked.settings.pageSize)
        if try opens(page, unlocked) { return true }
        guard let original = try HotJournal(paths)?.firstPage(pageSize: unlocked.settings.pageSize),
            hasSalt(of: page, original, unlocked)
        else {
            return false
        }
        return try opens(original, unlocked)
    }

    private func hasSalt(of page: [UInt8], _ original: [UInt8], _ unlocked: FileKey) -> Bool {
        original.count == unlocked.settings.pageSize
            && original.prefix(CipherKey.saltLength) == page.prefix(CipherKey.saltLength)
    }

    /// Refuses a journal if the key does not open each of its pages, or if it changes a readable header.
    ///
    /// Format 1 authenticates nothing, so only the salt on page 1 is compared.
    ///
    /// - Throws: ``StoreError`` with the code `staleSidecar`, `corrupt` or `keyDoesNotFit`.
    func checkPages(_ unlocked: FileKey, _ inspector: Inspector) throws {
        let settings = unlocked.settings
        guard let journal = try HotJournal(paths),
            let versions = try journal.originalPages(pageSize: settings.pageSize)
        else { return }
        guard versions.pageSize == settings.pageSize else { throw inspector.staleSidecar() }
        let file = try DatabaseFile(path: paths.database)
        let page = try file.read(at: 0, count: settings.pageSize)
        func refuse(_ fault: String) -> StoreError {
            StoreError.damaged(paths.database, "a writer crashed and left a journal, and \(fault)")
        }
        let opening = try PageOpening(unlocked)
        switch try SidecarAuthenticity(versions, in: journal.file, opening) {
        case .all where !settings.isAuthenticated: return
        case .all where versions.pageCount == 0:
            // Only the first commit leaves this number in the authenticated part of the header.
            guard try opening.open(1, page).map({ $0.big32(92) <= 1 }) ?? true else { throw inspector.staleSidecar() }
        case .all:
            // SQLite would set the size of the file to the journal's number of pages.
            let effect = try SidecarEffect(versions, in: journal.file, on: file, unlocked)
            if try effect?.cutsUsedPages() == true {
                throw refuse("the number of pages in this journal is less than the database uses")
            }
            if try effect?.damagesFile() == true { throw inspector.staleSidecar() }
            guard settings.hasReadableHeader, let original = try journal.firstPage(pageSize: settings.pageSize),
                !ReadableHeader.agree(page, original, modes: 1...2) || original.big32(28) > versions.pageCount
            else { return }
            throw refuse("the page 1 in this journal has another header than the file")
        case .some: throw refuse("a page in this journal is not authentic")
        case .none:
            if let original = try journal.firstPage(pageSize: settings.pageSize), hasSalt(of: page, original, unlocked)
            {
                throw inspector.keyDoesNotFit()
            }
            throw inspector.staleSidecar()
        }
    }

    private func opens(_ page: [UInt8], _ unlocked: FileKey) throws -> Bool {
        // If the key contains a salt, SQLCipher ignores the salt in the file.
        guard let content = try PageOpening(unlocked, checksSalt: false).open(1, page) else { return false }
        // Without an HMAC, only the header shows whether the key is right.
        return unlocked.settings.isAuthenticated || FixedHeaderFields.areValid(content)
    }
}
