internal import CipherErrors
internal import CipherSystemFiles

/// Puts the proven copy in the original's place.
struct Swap {
    let paths: DatabasePaths
    let copy: NewFile
    /// The name of the copy.
    let copyName: String
    /// The file that is replaced, which somebody holds open, so that no other file gets its inode.
    let original: FileIdentity
    private var folder: Folder { copy.folder }

    /// Gives the copy what belonged to the original file.
    ///
    /// Returns what the system refused.
    func applyMetadata() throws -> [String] {
        let status = try current()
        try copy.setOwner(status.owner, status.group)
        // Let go at once: a lease of the file is for whoever has the only descriptor.
        let pinned = try PinnedFile(paths.name, in: folder)
        guard pinned.status.identity == original else { throw replacedMeanwhile() }
        let refused = try copy.copyAttributes(of: pinned)
        // Mode last: a change of owner clears bits of it.
        try copy.setMode(status.mode)
        try copy.sync()
        try folder.sync()
        return refused.map { "the extended attribute \($0) could not be kept" }
    }

    /// The commit: one rename.
    ///
    /// Before it, the old database is whole; after it, the new one. If the file system can, the two files exchange
    /// their names, so that nothing is ever lost that another program puts in the database's place at that moment.
    ///
    /// - Parameter old: The original, of which this is the end.
    /// - Returns: How many other names (hard links) the original has.
    @discardableResult
    func commit(_ old: ReplacedFile) throws -> Int {
        guard try copy.hasName(copyName) else { throw copyReplaced(.nothing) }
        let status = try current()
        try keepAccess(status)
        guard try old.isAsItWas() else { throw replacedMeanwhile() }
        guard try folder.exchange(copyName, paths.name) else {
            guard try current().identity == original else { throw replacedMeanwhile() }
            try folder.rename(copyName, to: paths.name)
            guard (try? copy.hasName(paths.name)) != false else {
                throw copyReplaced(.lostDatabase)
            }
            return status.links - 1
        }
        let replaced: FileSystem.Status
        do {
            guard let status = try folder.status(copyName), status.identity == original else {
                throw replacedMeanwhile()
            }
            guard try copy.hasName(paths.name) else { throw copyReplaced(.nothing) }
            replaced = status
        } catch {
            // Another program's file had one of the names, or it cannot be told whose: each has its own again.
            let isOriginalAside = try? folder.status(copyName)?.identity == original
            let isCopyThere = try? copy.hasName(paths.name)
            if isOriginalAside != false || isCopyThere != false { _ = try folder.exchange(copyName, paths.name) }
            throw error
        }
        // Changed between the last look and the exchange.
        try? keepAccess(replaced)
        return replaced.links - 1
    }

    /// The original as it is now.
    private func current() throws -> FileSystem.Status {
        guard let status = try folder.status(paths.name), status.identity == original else {
            throw replacedMeanwhile()
        }
        return status
    }

    /// A `chmod` or `chown` of the original during the upgrade stands.
    private func keepAccess(_ status: FileSystem.Status) throws {
        let given = try copy.status()
        guard given.mode != status.mode || given.owner != status.owner || given.group != status.group else { return }
        // Nobody who has access to neither gains any in between.
        try copy.setMode(given.mode & status.mode)
        try copy.setOwner(status.owner, status.group)
        try copy.setMode(status.mode)
        try copy.sync()
    }

    private func copyReplaced(_ change: StoreError.Change) -> StoreError {
        .busy(
            paths.database, "another program replaced the copy that was to become the database",
            retry: .afterSearching, changed: change)
    }

    private func replacedMeanwhile() -> StoreError {
        .busy(
            paths.database, "another program opened, wrote or replaced the file during the upgrade",
            retry: .afterEndingProgram)
    }

    /// What follows the commit: nothing here can undo it, so what fails is told and not thrown.
    ///
    /// The old file is overwritten only when the rename is known to be durable: a power loss may bring its name back before,
    /// and it is then the database.
    ///
    /// - Parameters:
    ///   - otherNames: How many other names (hard links) the old file has.
    ///   - isKept: Whether one of them is the name that it is kept under.
    func finish(_ old: ReplacedFile, otherNames: Int, isKept: Bool = false) -> [String] {
        let linked = otherNames - (isKept ? 1 : 0)
        var warnings: [String] = []
        var isDurable = false
        do {
            isDurable = try folder.sync()
        } catch {
            warnings.append(
                "the folder could not be synced, so a power loss may bring the old file back: \(error)")
        }
        if linked > 0 {
            warnings.append(
                "the old file has \(linked) other name(s) (hard links) and is still readable there")
        }
        do {
            try removeOriginal()
        } catch {
            warnings.append("the old file is still there as \(copyName); the next launch removes it: \(error)")
        }
        // Last: by now nobody comes to the old file by a name.
        return warnings + old.end(overwriting: isDurable && otherNames == 0 && !isKept)
    }

    /// Takes the original's last name of ours away, where the names were exchanged.
    private func removeOriginal() throws {
        guard try folder.status(copyName)?.identity == original else { return }
        try folder.removeIfPresent(copyName)
        // The record of that name is removed next, and must not be gone before.
        try folder.sync()
    }
}
