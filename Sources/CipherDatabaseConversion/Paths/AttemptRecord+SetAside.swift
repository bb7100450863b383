internal import CipherErrors
internal import CipherSQLite
internal import CipherSystemFiles

/// The log or journal that an in-place recovery sets aside just before the swap.
extension AttemptRecord {
    static let sidecarEndings = ["-wal", "-journal"]

    /// Returns the record beside a database and the database's folder; `nil` if there is none.
    static func beside(_ paths: DatabasePaths) throws -> (AttemptRecord, Folder)? {
        guard try FileSystem.exists(paths.attempt) else { return nil }
        let folder = try paths.openFolder()
        guard case .record(let record) = try find(folder, paths) else { return nil }
        return (record, folder)
    }

    /// Returns the kept name of a damaged original that also has the database's name.
    ///
    /// Without both names, either nothing was set aside, or the recovered database has replaced the original.
    func keptName(_ folder: Folder, _ paths: DatabasePaths) throws -> String? {
        guard let keptAs, let original else { return nil }
        let kept = paths.damagedName(keptAs)
        return try [paths.name, kept].allSatisfy { try folder.status($0)?.identity.inode == original } ? kept : nil
    }

    /// Returns the path of a log or journal that was set aside, if the files were copied afterwards.
    ///
    /// Copies have other inodes, so they do not show whether the swap came first. The recovered database is encrypted
    /// with a new salt, so a database that still begins like the damaged one may be the damaged one.
    func copiedSidecar(_ folder: Folder, _ paths: DatabasePaths) throws -> String? {
        guard let keptAs, let status = try folder.status(paths.name), status.isRegular,
            status.identity.inode != original, status.identity.inode != copy
        else { return nil }
        let kept = paths.damagedName(keptAs)
        guard let ending = try Self.sidecarEndings.first(where: { try folder.status(kept + $0) != nil }) else {
            return nil
        }
        func start(_ name: String) throws -> [UInt8] {
            try DatabaseFile(path: FileName.sibling(name, of: paths.database)).read(at: 0, count: 16)
        }
        if try folder.status(kept)?.isRegular == true, try start(kept) != start(paths.name) { return nil }
        return FileName.sibling(kept + ending, of: paths.database)
    }

    /// Refuses a database whose log or journal an interrupted in-place recovery has set aside.
    ///
    /// - Throws: ``StoreError`` with the code `needsRecovery`, or `staleSidecar` if that file cannot be put back because
    ///   the files were copied.
    static func checkSidecars(_ paths: DatabasePaths) throws {
        guard let (record, folder) = try beside(paths) else { return }
        if let path = try record.copiedSidecar(folder, paths) { throw notPutBack(path, copied, paths) }
        guard let kept = try record.keptName(folder, paths),
            let ending = try sidecarEndings.first(where: { try folder.status(kept + $0) != nil })
        else { return }
        throw StoreError(
            .needsRecovery, path: paths.database,
            setAside(FileName.sibling(kept + ending, of: paths.database))
                + ", and must be restored before the file is read",
            advice: "open the file for writing, or run cipherstore recover --in-place", changed: .nothing)
    }

    static let copied = "the files have been copied since then"

    /// - Parameters:
    ///   - path: The path of a log or journal that was set aside.
    ///   - reason: The reason why it cannot be put back.
    static func notPutBack(_ path: String, _ reason: String, _ paths: DatabasePaths) -> StoreError {
        let isLog = path.hasSuffix("-wal")
        return StoreError(
            .staleSidecar, path: paths.database, "\(setAside(path)), but \(reason)",
            advice: "copy the database and the files next to it to another folder. Then, if no program has written to "
                + "the database since the recovery, rename \(path) to \(isLog ? paths.wal : paths.journal). Otherwise, "
                + "move \(path) elsewhere"
                + (isLog
                    ? " to use the database without the rows that only this file contains"
                    : ", and run cipherstore recover --in-place: without this file, the database contains part of an "
                        + "unfinished transaction"),
            changed: .nothing)
    }

    static func setAside(_ path: String) -> String {
        "\(path) contains changes to this database that an interrupted recovery has set aside"
    }
}
