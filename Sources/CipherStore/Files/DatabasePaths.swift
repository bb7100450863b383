/// The names around one database.
///
/// They are the state machine of the upgrade: which of them exist tells how far it came.
struct DatabasePaths: Sendable, Hashable {
    /// The database, without symbolic links.
    let database: String

    init(_ path: String) throws {
        database = try FileSystem.resolve(path)
    }

    /// The names around another database of the same folder.
    ///
    /// A symbolic link of that name is not followed.
    init(_ name: String, beside other: DatabasePaths) {
        database = FileName.sibling(name, of: other.database)
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

    /// Whether a name is one of those around a database, and not a database's own.
    static func isBesideDatabase(_ name: String) -> Bool {
        [
            "-wal", "-shm", "-journal", "-upgrade", "-plaintext", "-plaintext-new", "-attempt", "-attempt-new",
        ].contains(where: name.hasSuffix)
    }

    var folder: String { FileSystem.split(database).folder }

    /// What a crash may leave behind: none of these holds anything that is not in the database.
    var leftovers: [String] {
        [copy, copy + "-journal", copy + "-wal", copy + "-shm", unfinishedBackup, attempt + "-new"]
    }
}
