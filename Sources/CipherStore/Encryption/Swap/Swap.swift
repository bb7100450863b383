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
    /// Before it, the old database is whole; after it, the new one.
    ///
    /// - Parameter old: The original, of which this is the end.
    /// - Returns: How many other names (hard links) the original has.
    @discardableResult
    func commit(_ old: OldFile) throws -> Int {
        guard let current = try FileSystem.status(paths.database, followLinks: false),
            current.device == status.device, current.inode == status.inode, try old.isAsItWas()
        else {
            throw StoreError(
                .busy, path: paths.database, "another program opened, wrote or replaced the file during the upgrade",
                advice: "close that program and try again; nothing was changed")
        }
        try FileSystem.rename(paths.copy, to: paths.database)
        return current.links - 1
    }

    /// What follows the commit: nothing here can undo it, so what fails is told and not thrown.
    ///
    /// The old file is spoilt only when the rename is known to be durable: a power loss may bring its name back before,
    /// and it is then the database.
    func finish(_ old: OldFile, otherNames: Int) -> [String] {
        var warnings: [String] = []
        var isDurable = false
        do {
            isDurable = try FileSystem.syncFolder(of: paths.database)
        } catch {
            warnings.append(
                "the folder could not be synced, so a power loss may bring the old file back: \(error)")
        }
        if otherNames > 0 {
            warnings.append(
                "the old file has \(otherNames) other name(s) (hard links) and is still readable there")
        }
        return warnings + old.end(spoiling: isDurable && otherNames == 0)
    }
}
