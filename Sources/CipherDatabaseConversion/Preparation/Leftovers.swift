internal import CipherErrors
internal import CipherSystemFiles

/// The files that an interrupted run left.
///
/// Only files whose names the run had recorded before it created them are included, and of these only files with a
/// known inode. They contain nothing that is missing from the database: a copy that did not become the database is
/// unproven or equal to it, and an original that was replaced was proven equal to its replacement.
package enum Leftovers {
    /// Removes these files.
    ///
    /// - Returns: Warnings about files that were not removed: files that may belong to another program, and copies that
    ///   were kept because of a damaged log. The caller must keep the record then, so that the next launch reports these
    ///   files again.
    /// - Throws: ``StoreError`` with the code `busy` if a store is currently making the copy.
    @discardableResult
    package static func sweep(_ paths: DatabasePaths) throws -> [String] {
        let folder = try paths.openFolder()
        switch try AttemptRecord.find(folder, paths) {
        case .nothing, .stranger: return []
        case .unwritten:
            try folder.removeIfPresent(paths.attemptName)
            return []
        case .record(var record):
            if try isBeingMade(record, folder, paths) { throw beingMade(paths) }
            var told: [String] = []
            if let (path, reason) = try DamagedOriginal.putBack(record, folder, paths) {
                told.append("\(AttemptRecord.setAside(path)), but \(reason)")
            }
            try folder.removeIfPresent(record.unfinishedBackupName(paths))
            return try told + sweepCopy(&record, folder, paths) + remaining(record, folder, paths)
        }
    }

    /// Returns warnings about the files of earlier runs that no run removes.
    package static func remaining(_ paths: DatabasePaths) throws -> [String] {
        guard let (record, folder) = try AttemptRecord.beside(paths) else { return [] }
        return try remaining(record, folder, paths)
    }

    private static func remaining(
        _ record: AttemptRecord, _ folder: Folder, _ paths: DatabasePaths
    ) throws -> [String] {
        try record.keptCopies.compactMap { try LostCommits.warning(ofCopies: $0, paths) }
            + unrecognized(record, folder, paths)
    }

    /// Returns warnings about the files that earlier runs left and that may belong to another program.
    ///
    /// The record lists only the files of the latest run, so the folder is searched for all names of their form, but
    /// only after an unrecognized file was found: searching a folder with many files takes a long time.
    private static func unrecognized(
        _ record: AttemptRecord, _ folder: Folder, _ paths: DatabasePaths
    ) throws -> [String] {
        guard record.hasUnrecognized else { return [] }
        let own = record.isDisclaimed ? nil : record.copyName(paths)
        return try FileSystem.names(in: paths.folder)
            .filter { $0 != own && AttemptRecord.database(besideWhich: $0)?.isSameName(as: paths.name) == true }
            .map {
                "an interrupted run left behind \(folder.path(of: $0)), which may contain another program's data, or "
                    + "the database in plaintext: compare this file with the database, and then move or delete it"
            }
    }

    /// Puts back the log or journal of a damaged database, if an in-place recovery was interrupted after it had set
    /// that file aside.
    ///
    /// This must happen before anything reads the database, because the content of the database is complete only with
    /// these files.
    ///
    /// - Throws: ``StoreError`` with the code `staleSidecar` if that file cannot be put back, or `busy` if another
    ///   connection uses the database without it. A later run must not put it back over newer changes.
    package static func putBackSidecars(_ paths: DatabasePaths) throws {
        guard let (record, folder) = try AttemptRecord.beside(paths),
            let (path, reason) = try DamagedOriginal.putBack(record, folder, paths)
        else { return }
        throw AttemptRecord.notPutBack(path, reason, paths)
    }

    /// Returns whether a store, of this process or another, is encrypting the database while it is open.
    package static func areInUse(_ paths: DatabasePaths) throws -> Bool {
        guard let (record, folder) = try AttemptRecord.beside(paths) else { return false }
        return try isBeingMade(record, folder, paths)
    }

    static func beingMade(_ paths: DatabasePaths) -> StoreError {
        .busy(
            paths.database, "a store in this process or another process has the database open and is encrypting it",
            retry: .afterClosing)
    }

    /// Returns whether a process is making the copy: it keeps the copy locked while other connections write to the
    /// database.
    private static func isBeingMade(
        _ record: AttemptRecord, _ folder: Folder, _ paths: DatabasePaths
    ) throws -> Bool {
        guard let inode = record.copy, let copy = try NewFile(madeBefore: record.copyName(paths), inode, in: folder)
        else { return false }
        return !copy.lock()
    }

    private static func sweepCopy(
        _ record: inout AttemptRecord, _ folder: Folder, _ paths: DatabasePaths
    ) throws -> [String] {
        let name = record.copyName(paths)
        guard let found = try folder.status(name) else { return [] }
        let database = try folder.status(paths.name)?.identity.inode
        // Until the names are exchanged, only the copy can have this name. Afterwards the original has it, and the
        // original is removed once the proven copy has the database's name.
        let isOurs =
            found.identity.inode == record.copy || database == record.original
            || found.identity.inode == record.original && database == record.copy
        guard isOurs else {
            let former = record
            record.disclaim()
            record.hasUnrecognized = true
            if record != former { try? record.write(folder, paths) }
            return []
        }
        if database == record.copy, try !DamagedOriginal.isKept(name, record, folder, paths) {
            return [
                "\(folder.path(of: name)) is the damaged database; it could not be given its final name, because "
                    + "another program has created a file with that name: move the other program's file elsewhere"
            ]
        }
        try folder.removeIfPresent(name)
        return []
    }
}
