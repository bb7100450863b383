internal import CipherErrors
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

    /// Refuses a database whose log or journal an interrupted in-place recovery has set aside.
    ///
    /// - Throws: ``StoreError`` with the code `needsRecovery`.
    static func checkSidecars(_ paths: DatabasePaths) throws {
        guard let (record, folder) = try beside(paths), let kept = try record.keptName(folder, paths),
            let ending = try sidecarEndings.first(where: { try folder.status(kept + $0) != nil })
        else { return }
        throw StoreError(
            .needsRecovery, path: paths.database,
            setAside(FileName.sibling(kept + ending, of: paths.database))
                + ", and must be restored before the file is read",
            advice: "open the file for writing, or run cipherstore recover --in-place", changed: .nothing)
    }

    static func setAside(_ path: String) -> String {
        "\(path) contains changes to this database that an interrupted recovery has set aside"
    }
}
