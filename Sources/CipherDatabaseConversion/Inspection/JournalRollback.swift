internal import CipherErrors
internal import CipherSQLite
internal import CipherSystemFiles

/// Rolls back the journal that a crashed writer left beside an encrypted file.
///
/// Only a read-write connection can do that, and none is opened before the key has fitted. The file itself cannot be read
/// before, so the key is tried on a copy of its first page.
package struct JournalRollback {
    let paths: DatabasePaths

    /// Rolls back.
    ///
    /// The upgrade lock is held.
    ///
    /// - Throws: ``StoreError`` with `keyDoesNotFit`, or `permission` in a folder that cannot be written.
    func run(_ unlocked: FileKey, inspector: Inspector) throws {
        try Self.checkAccess(paths)
        guard try fits(unlocked) else { throw inspector.keyDoesNotFit() }
        do {
            let connection = try ConnectionProfile.plain(.readWrite).with(unlocked)
                .open(paths.database, busyTimeout: inspector.busyTimeout)
            defer { connection.close() }
            try connection.proveReadable()
        } catch let error as DatabaseError {
            throw inspector.readFailure(error)
        }
    }

    /// - Throws: ``StoreError`` with `permission` where no journal can be rolled back.
    package static func checkAccess(_ paths: DatabasePaths) throws {
        guard FileSystem.canWriteInFolder(paths.folder), FileSystem.canWrite(paths.database) else {
            throw StoreError.permission(
                paths.database,
                "a journal of a crashed writer must be rolled back first, and the file or its folder cannot be written",
                .writeWithFolder)
        }
    }

    /// Tries the key on page 1, and on page 1 as the journal will put it back: a power loss can tear the page while it is
    /// written over, and no key opens it then.
    private func fits(_ unlocked: FileKey) throws -> Bool {
        let page = try DatabaseFile(path: paths.database).read(at: 0, count: unlocked.settings.pageSize)
        if try opens(page, unlocked) { return true }
        guard let original = try SidecarScan.firstPageInJournal(paths), original.count == unlocked.settings.pageSize,
            original.prefix(CipherKey.saltLength) == page.prefix(CipherKey.saltLength)
        else { return false }
        return try opens(original, unlocked)
    }

    private func opens(_ page: [UInt8], _ unlocked: FileKey) throws -> Bool {
        let copy = try NewFile(withoutNameIn: paths.openFolder(), path: paths.database)
        try page.withUnsafeBytes { try copy.append($0) }
        let connection = try ConnectionProfile.plain(.readOnly).with(unlocked).open(copy.path, through: copy.layer())
        defer { connection.close() }
        do {
            _ = try connection.value(Int.self, "PRAGMA user_version")
            return true
        } catch let error as DatabaseError where error.isNotADatabase {
            return false
        } catch let error as DatabaseError where error.isCorrupt || error.isCannotOpen {
            // The page was read, and the others are missing, or it asks for a log.
            return true
        }
    }
}
