internal import CipherErrors
internal import CipherSystemFiles

/// Puts the proven copy in the original's place.
struct Swap: ~Copyable {
    private let paths: DatabasePaths
    private let copy: NewFile
    /// The name of the copy.
    private let copyName: String
    /// The file that is replaced.
    ///
    /// It must be kept open, so that no other file can reuse its inode number.
    private let original: FileIdentity
    /// Whether nothing shows that the copy contains what the original does, which must therefore be empty.
    private let replacesOnlyEmpty: Bool
    private var folder: Folder { copy.folder }

    /// - Parameters:
    ///   - name: The name of the copy.
    ///   - original: The file that is replaced.
    init(_ paths: DatabasePaths, _ proven: consuming ProvenFile, named name: String, original: FileIdentity) {
        self.paths = paths
        copy = proven.file
        copyName = name
        self.original = original
        replacesOnlyEmpty = false
    }

    /// Creates a swap of a new database for a file of 0 bytes.
    init(_ paths: DatabasePaths, new copy: NewFile, named name: String, empty original: FileIdentity) {
        self.paths = paths
        self.copy = copy
        copyName = name
        self.original = original
        replacesOnlyEmpty = true
    }

    /// Copies the metadata of the original file to the copy.
    ///
    /// Returns warnings about metadata that could not be copied.
    func applyMetadata() throws -> [String] {
        let status = try current()
        try copy.setOwner(status.owner, status.group)
        // The pinned file is released at once: a lease of the file requires that its holder has the only descriptor.
        let pinned = try PinnedFile(paths.name, in: folder)
        guard pinned.status.identity == original else { throw replacedMeanwhile() }
        let refused = try copy.copyAttributes(of: pinned)
        // The mode is last, because a change of the owner clears some of its bits.
        try copy.setMode(status.mode)
        try copy.sync()
        try folder.sync()
        return refused.map { "the extended attribute \($0) could not be copied" }
    }

    /// Commits the swap with one rename.
    ///
    /// Before the rename, the old database is complete; after it, the new one is. If the file system supports it, the
    /// two files exchange their names, so that a file that another program puts in the database's place at that moment
    /// is not lost.
    ///
    /// - Parameter old: The original, which this replaces.
    consuming func commit(_ old: ReplacedFile) throws -> Committed {
        let otherNames = try exchange(old)
        return Committed(
            folder: folder, copyName: copyName, original: original, old: old, otherNames: otherNames)
    }

    /// Returns the number of other names (hard links) of the original.
    private func exchange(_ old: ReplacedFile) throws -> Int {
        guard try copy.hasName(copyName) else { throw copyReplaced(.nothing) }
        let status = try current()
        try keepAccess(status)
        guard try old.isAsItWas(), !replacesOnlyEmpty || old.isEmpty else { throw replacedMeanwhile() }
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
            // Another program's file had one of the names, or it is unknown which file has a name: exchange the names
            // back.
            let isOriginalAside = try? folder.status(copyName)?.identity == original
            let isCopyThere = try? copy.hasName(paths.name)
            if isOriginalAside != false || isCopyThere != false { _ = try folder.exchange(copyName, paths.name) }
            throw error
        }
        // The permissions may have changed between the last check and the exchange.
        try? keepAccess(replaced)
        return replaced.links - 1
    }

    /// Returns the current status of the original.
    private func current() throws -> FileSystem.Status {
        guard let status = try folder.status(paths.name), status.identity == original else {
            throw replacedMeanwhile()
        }
        return status
    }

    /// Applies a `chmod` or `chown` of the original during the upgrade to the copy.
    private func keepAccess(_ status: FileSystem.Status) throws {
        let given = try copy.status()
        guard given.mode != status.mode || given.owner != status.owner || given.group != status.group else { return }
        // In between, only users who have access under both settings have access.
        try copy.setMode(given.mode & status.mode)
        try copy.setOwner(status.owner, status.group)
        try copy.setMode(status.mode)
        try copy.sync()
    }

    private func copyReplaced(_ change: StoreError.Change) -> StoreError {
        .busy(
            paths.database, "another program replaced the copy just before the swap",
            retry: .afterSearching, changed: change)
    }

    private func replacedMeanwhile() -> StoreError {
        .busy(
            paths.database, "another program opened, changed or replaced the file during the conversion",
            retry: .afterEndingProgram)
    }

}

extension Swap {
    /// A swap whose rename was done, which nothing here can undo.
    struct Committed: ~Copyable {
        fileprivate let folder: Folder
        fileprivate let copyName: String
        fileprivate let original: FileIdentity
        fileprivate let old: ReplacedFile
        /// The number of other names (hard links) of the old file.
        fileprivate let otherNames: Int
    }
}

extension Swap.Committed {
    /// Completes the swap.
    ///
    /// The old file is overwritten only if the rename is known to be durable. Until then, a power loss may restore the
    /// old name, and the old file is then the database.
    ///
    /// - Parameter isKept: Whether one of the other names is the one under which the old file is kept.
    /// - Returns: Warnings for the report: the database has been replaced, so nothing is an error any more.
    consuming func finish(isKept: Bool = false) -> [String] {
        let linked = otherNames - (isKept ? 1 : 0)
        var warnings: [String] = []
        var isDurable = false
        do {
            isDurable = try folder.sync()
        } catch {
            warnings.append(
                "the old file may reappear after a power loss, because the folder could not be synced: \(error)")
        }
        if linked > 0 {
            let links = linked == 1 ? "1 other hard link" : "\(linked) other hard links"
            warnings.append("the old file is still readable through \(links)")
        }
        do {
            try removeOriginal()
        } catch {
            warnings.append(
                "the old file \(copyName) could not be removed (CipherStore will try again at the next launch): "
                    + "\(error)")
        }
        // The old file is handled last: by now no process can reach it by a name.
        return warnings + old.end(overwriting: isDurable && otherNames == 0 && !isKept)
    }

    /// Removes the temporary name of the original, if the names were exchanged.
    private func removeOriginal() throws {
        guard try folder.status(copyName)?.identity == original else { return }
        try folder.removeIfPresent(copyName)
        // The record of that name is removed next, and must not disappear before the name does.
        try folder.sync()
    }
}
