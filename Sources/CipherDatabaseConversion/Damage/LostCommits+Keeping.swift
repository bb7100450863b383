internal import CipherErrors
internal import CipherSQLiteFormat

extension LostCommits {
    /// Keeps the database and its log before SQLite merges them, if the log holds such commits.
    ///
    /// The caller holds the upgrade lock. The kept copies are recorded, so ``Leftovers`` reports them in this run and in
    /// each later one. A recovery would find the same rows as SQLite, so none is started.
    ///
    /// - Parameters:
    ///   - future: The database whose name the file is about to get, if it has another name.
    ///   - timeout: How long to wait for connections that use the log. If another process is only inspecting the log, the
    ///     wait ensures that the log is kept before SQLite merges it.
    /// - Throws: ``StoreError`` with the code `corrupt` if damage is to be refused; `noSpace` if the files cannot be
    ///   kept.
    package static func keep(
        _ paths: DatabasePaths, as future: DatabasePaths? = nil, _ onDamage: OnDamage, timeout: Duration
    ) throws {
        _ = try whileUnused(paths, timeout: timeout) { log, start in
            guard onDamage != .refuse else { throw StoreError.damaged(paths.database, finding) }
            try DamagedOriginal.keepCopy(of: paths, log, unreadFrom: start, beside: future ?? paths)
        }
    }
}
