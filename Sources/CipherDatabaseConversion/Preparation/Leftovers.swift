internal import CipherErrors
internal import CipherSystemFiles

/// What an earlier run that died left behind.
///
/// Only files whose names the run had recorded before it made them, and of these only those that are known by their
/// inode. Nothing in them is missing from the database: a copy that did not become the database is unproven or is equal
/// to it, and the original of a database that took its place was proven equal.
package enum Leftovers {
    /// Removes them.
    ///
    /// - Returns: What was left because it is another program's.
    /// - Throws: ``StoreError`` with `busy` if a store is making the copy at this moment.
    @discardableResult
    package static func sweep(_ paths: DatabasePaths) throws -> [String] {
        let folder = try paths.openFolder()
        switch try AttemptRecord.find(folder, paths) {
        case .nothing, .stranger: return []
        case .unwritten:
            try folder.removeIfPresent(paths.attemptName)
            return []
        case .record(let record):
            if try isBeingMade(record, folder, paths) { throw beingMade(paths) }
            let told = try DamagedOriginal.putBack(record, folder, paths)
            try folder.removeIfPresent(record.unfinishedBackupName(paths))
            return try told + sweepCopy(record, folder, paths)
        }
    }

    /// Gives a damaged database the log or journal back that a recovery in its place had put aside when it died.
    ///
    /// Before anything looks at the database: what it holds is only whole with them.
    ///
    /// - Returns: What could not be given back.
    @discardableResult
    package static func putBackSidecars(_ paths: DatabasePaths) throws -> [String] {
        guard try FileSystem.exists(paths.attempt) else { return [] }
        let folder = try paths.openFolder()
        guard case .record(let record) = try AttemptRecord.find(folder, paths) else { return [] }
        return try DamagedOriginal.putBack(record, folder, paths)
    }

    /// Whether a store, of this process or another, is encrypting the database while it is open.
    package static func areInUse(_ paths: DatabasePaths) throws -> Bool {
        guard try FileSystem.exists(paths.attempt) else { return false }
        let folder = try paths.openFolder()
        guard case .record(let record) = try AttemptRecord.find(folder, paths) else { return false }
        return try isBeingMade(record, folder, paths)
    }

    static func beingMade(_ paths: DatabasePaths) -> StoreError {
        .busy(
            paths.database, "a store, of this process or another, is encrypting the database while it is open",
            retry: .afterClosing)
    }

    /// Who makes a copy while others write the database has it locked.
    private static func isBeingMade(
        _ record: AttemptRecord, _ folder: Folder, _ paths: DatabasePaths
    ) throws -> Bool {
        guard let inode = record.copy, let copy = try NewFile(madeBefore: record.copyName(paths), inode, in: folder)
        else { return false }
        return !copy.lock()
    }

    private static func sweepCopy(
        _ record: AttemptRecord, _ folder: Folder, _ paths: DatabasePaths
    ) throws -> [String] {
        let name = record.copyName(paths)
        guard let found = try folder.status(name) else { return [] }
        let database = try folder.status(paths.name)?.identity.inode
        // Until the names are exchanged, only the copy can have this one. Afterwards it is the original's, which is
        // removed once it is the proven copy that has the database's name.
        let isOurs =
            found.identity.inode == record.copy || database == record.original
            || found.identity.inode == record.original && database == record.copy
        guard isOurs else {
            return [
                "\(folder.path(of: name)) is a file that another program put in the database's place while it was "
                    + "replaced: compare it with the database, and move it away"
            ]
        }
        if database == record.copy, try !DamagedOriginal.isKept(name, record, folder, paths) {
            return [
                "\(folder.path(of: name)) is the damaged database; another program has taken its name: move it away"
            ]
        }
        try folder.removeIfPresent(name)
        return []
    }
}
