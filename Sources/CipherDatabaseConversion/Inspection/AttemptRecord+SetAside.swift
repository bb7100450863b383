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

    /// Returns whether a log or journal could not be put back, or the damaged original has not been given its kept name.
    func hasFileToPutBack(_ folder: Folder, _ paths: DatabasePaths) throws -> Bool {
        try keptName(folder, paths) != nil || copiedSidecar(folder, paths) != nil
            || folder.status(copyName(paths)) != nil
    }

    /// Returns the path of a log or journal that was set aside, if the files were copied afterwards.
    ///
    /// Copies have other inodes, so they do not show whether the swap came first. The recovered database is encrypted
    /// anew, so a database that has a page in common with the damaged one is the damaged one, perhaps changed since.
    func copiedSidecar(_ folder: Folder, _ paths: DatabasePaths) throws -> String? {
        guard let keptAs, let status = try folder.status(paths.name), status.isRegular,
            status.identity.inode != original, status.identity.inode != copy
        else { return nil }
        let kept = paths.damagedName(keptAs)
        // The recovered database is encrypted, so a plaintext sidecar cannot be its own.
        if try folder.status(kept) == nil, try ContentKind(DatabaseFile(path: paths.database)).isRandom,
            try SidecarScan.isStale(DatabasePaths(kept, beside: paths), databaseIsPlaintext: false)
        {
            return nil
        }
        guard let ending = try Self.sidecarEndings.first(where: { try folder.status(kept + $0) != nil }) else {
            return nil
        }
        if try folder.status(kept)?.isRegular == true,
            try !Self.sharePage(paths.database, FileName.sibling(kept, of: paths.database))
        {
            return nil
        }
        return FileName.sibling(kept + ending, of: paths.database)
    }

    /// Returns whether two databases have a page in common, or at least a part that has the size of the smallest page.
    ///
    /// Parts that contain only zeros are ignored: SQLite never writes the page that contains the lock bytes.
    private static func sharePage(_ path: String, _ other: String) throws -> Bool {
        let files = try (DatabaseFile(path: path), DatabaseFile(path: other))
        let (chunk, page) = (1 << 20, 512)
        var offset: Int64 = 0
        while true {
            let bytes = try (files.0.read(at: offset, count: chunk), files.1.read(at: offset, count: chunk))
            for start in stride(from: 0, through: min(bytes.0.count, bytes.1.count) - page, by: page)
            where bytes.0[start..<start + page] == bytes.1[start..<start + page]
                && bytes.0[start..<start + page].contains(where: { $0 != 0 })
            {
                return true
            }
            guard bytes.0.count == chunk, bytes.1.count == chunk else { return false }
            offset += Int64(chunk)
        }
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
                    : ", and run cipherstore recover --in-place, because without this file the database contains part "
                        + "of an unfinished transaction"),
            changed: .nothing)
    }

    static func setAside(_ path: String) -> String {
        "\(path) contains changes to this database that an interrupted recovery has set aside"
    }
}
