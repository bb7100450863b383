/// The names around one database.
///
/// They are the state machine of the upgrade: which of them exist tells how far it came.
package struct DatabasePaths: Sendable {
    /// The database, without symbolic links.
    package let database: String
    /// The folder in which a search saw the database; `nil` for a path that somebody gave.
    private let seenFolder: FileIdentity?

    package init(_ path: String) throws {
        database = try FileSystem.resolve(path)
        seenFolder = nil
    }

    /// The names around a database that a search has found, which are only what they are in that folder.
    package init(_ found: DatabaseSearch.Found) {
        database = found.path
        seenFolder = found.folder
    }

    /// The names around another database of the same folder.
    ///
    /// A symbolic link of that name is not followed.
    init(_ name: String, beside other: DatabasePaths) {
        database = FileName.sibling(name, of: other.database)
        seenFolder = other.seenFolder
    }

    // SQLite's own.
    var wal: String { database + "-wal" }
    var sharedMemory: String { database + "-shm" }
    var journal: String { database + "-journal" }

    /// Whether SQLite would find a log, a journal or a log's index.
    func hasSidecar() throws -> Bool {
        try FileSystem.exists(wal) || FileSystem.exists(journal) || FileSystem.exists(sharedMemory)
    }

    // Ours.
    /// The copy that is being built.
    ///
    /// Never holds a plaintext byte.
    var copy: String { database + "-upgrade" }
    /// The plaintext file, kept when the caller asks for a backup.
    var backup: String { database + "-plaintext" }
    /// A backup that is being written.
    var unfinishedBackup: String { database + "-plaintext-new" }
    /// How often a conversion was begun without an end, and the journal mode to restore.
    var attempt: String { database + "-attempt" }

    /// The database beside which a name would be one of SQLite's or ours; `nil` for any other name.
    static func database(besideWhich name: String) -> String? {
        let endings = [
            "-wal", "-shm", "-journal", "-upgrade", "-plaintext", "-plaintext-new", "-attempt", "-attempt-new",
        ]
        let ending = endings.first {
            name.utf8.count > $0.utf8.count && name.utf8.reversed().starts(with: $0.utf8.reversed())
        }
        return ending.flatMap { String(name.utf8.dropLast($0.utf8.count)) }
    }

    /// The status of the database, `nil` where there is none.
    ///
    /// - Throws: ``StoreError`` with `busy` where a link has taken the place of what a search saw: it would lead out of the
    ///   folder that was searched. Another file in the same place is that folder's, too.
    func status() throws -> FileSystem.Status? {
        guard let seenFolder else { return try FileSystem.status(database) }
        // A new link may have the number of the folder that was removed.
        guard let folder = try FileSystem.status(folder, followLinks: false), folder.isDirectory,
            FileIdentity(folder) == seenFolder
        else { throw OpenFolder.replaced(database) }
        let status = try FileSystem.status(database, followLinks: false)
        guard status?.isSymbolicLink != true else { throw OpenFolder.replaced(database) }
        return status
    }

    var folder: String { FileSystem.split(database).folder }

    /// What a crash may leave behind: none of these holds anything that is not in the database.
    var leftovers: [String] {
        [copy, copy + "-journal", copy + "-wal", copy + "-shm", unfinishedBackup, attempt + "-new"]
    }
}
