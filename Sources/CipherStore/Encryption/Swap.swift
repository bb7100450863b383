/// Puts the proven copy in the original's place.
struct Swap {
    let paths: DatabasePaths
    let status: FileSystem.Status

    /// Gives the copy what belonged to the original file.
    ///
    /// Returns what the system refused.
    func dress() throws -> [String] {
        try FileSystem.setOwner(paths.copy, status.owner, status.group)
        let refused = try FileSystem.copyExtendedAttributes(from: paths.database, to: paths.copy)
        // Mode last: a change of owner clears bits of it.
        try FileSystem.setMode(paths.copy, status.mode)
        try FileSystem.sync(paths.copy)
        try FileSystem.syncFolder(of: paths.database)
        return refused.map { "the extended attribute \($0) could not be kept" }
    }

    /// The commit: one rename.
    ///
    /// Before it, the plaintext database is whole; after it, the encrypted one.
    ///
    /// - Parameter isAtRest: Whether the original has no sidecar.
    func commit(isAtRest: () throws -> Bool) throws {
        guard let current = try FileSystem.status(paths.database, followLinks: false),
            current.device == status.device, current.inode == status.inode, try isAtRest()
        else {
            throw StoreError(
                .busy, path: paths.database, "another program replaced the file during the upgrade",
                advice: "close that program and try again; nothing was changed")
        }
        try FileSystem.rename(paths.copy, to: paths.database)
    }

    /// What follows the commit: nothing here can undo it, so what fails is told and not thrown.
    func finish(_ hold: SourceHold) -> [String] {
        var warnings: [String] = []
        func attempt(_ what: String, _ body: () throws -> Void) {
            do { try body() } catch { warnings.append("\(what): \(error)") }
        }
        attempt("the folder could not be synced, so a power loss may bring the plaintext file back") {
            try FileSystem.syncFolder(of: paths.database)
        }
        if status.links > 1 {
            warnings.append(
                "the plaintext file has \(status.links - 1) other name(s) (hard links) and is still readable there")
            attempt("the old file could not be released") { try hold.release() }
        } else {
            attempt("the old file could not be spoilt for connections that still have it open") { try hold.spoil() }
        }
        return warnings
    }
}
