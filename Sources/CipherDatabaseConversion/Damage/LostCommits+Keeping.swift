internal import CipherErrors
internal import CipherSQLiteFormat
internal import CipherSystemFiles

extension LostCommits {
    /// Keeps the database and its log before SQLite merges them, if the log holds such commits.
    ///
    /// The caller holds the upgrade lock. A recovery would find the same rows as SQLite, so none is started.
    ///
    /// - Returns: A warning that names the kept files; `nil` if there are no such commits.
    /// - Throws: ``StoreError`` with the code `corrupt` if damage is to be refused; `noSpace` if the files cannot be
    ///   kept.
    package static func keep(_ paths: DatabasePaths, _ onDamage: OnDamage) throws -> String? {
        try whileUnused(paths) { log in
            guard onDamage != .refuse else { throw StoreError.damaged(paths.database, finding) }
            let file = try DatabaseFile(path: paths.database)
            let kept = try DamagedOriginal.keepCopy(paths, file, log)
            let readable =
                try FileHeader(file).isPlaintext
                ? "; they are in plaintext, so delete them once you know that nothing is missing" : ""
            return "\(finding): rows may be missing. Copies of the database and its -wal are kept as "
                + "\(SystemPath.printable(kept)) and \(SystemPath.printable(kept))-wal\(readable)"
        }
    }
}
