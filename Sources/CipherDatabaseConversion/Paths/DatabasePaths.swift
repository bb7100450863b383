internal import CipherErrors
package import CipherSystemFiles

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

    /// The names around a database that was seen in a folder, which are only what they are in that folder.
    init(_ database: String, seenIn folder: FileIdentity?) {
        self.database = database
        seenFolder = folder
    }

    /// The names around another database of the same folder.
    ///
    /// A symbolic link of that name is not followed.
    package init(_ name: String, beside other: DatabasePaths) {
        database = FileName.sibling(name, of: other.database)
        seenFolder = other.seenFolder
    }

    // SQLite's.
    package var wal: String { database + "-wal" }
    package var sharedMemory: String { database + "-shm" }
    package var journal: String { database + "-journal" }

    /// Whether SQLite would find a log, a journal or a log's index.
    func hasSidecar() throws -> Bool {
        try FileSystem.exists(wal) || FileSystem.exists(journal) || FileSystem.exists(sharedMemory)
    }

    // Ours. The copy has a name with a random part, which ``AttemptRecord`` holds.
    /// How often a conversion was begun without an end, what it made, and the journal mode to restore.
    var attempt: String { database + "-attempt" }

    /// The database beside which a name would be one of SQLite's or ours; `nil` for any other name.
    static func database(besideWhich name: String) -> String? {
        if let database = AttemptRecord.database(besideWhich: name) { return database }
        let unnumbered = withoutNumber(name)
        let ending = (["-wal", "-shm", "-journal", "-attempt"] + numberedEndings).first {
            unnumbered.utf8.count > $0.utf8.count && unnumbered.utf8.reversed().starts(with: $0.utf8.reversed())
        }
        return ending.flatMap { String(unnumbered.utf8.dropLast($0.utf8.count)) }
    }

    /// How the names of kept files end, which are numbered from the second on.
    private static let numberedEndings = ["-plaintext", "-damaged"]

    /// The first of the names of a backup or a damaged original for one that is numbered; any other name as it is.
    private static func withoutNumber(_ name: String) -> String {
        let digits = name.utf8.reversed().prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }.count
        let stem = name.utf8.dropLast(digits + 1)
        guard (1...9).contains(digits),
            numberedEndings.contains(where: { stem.reversed().starts(with: $0.utf8.reversed()) }),
            let number = Int(String(name.utf8.suffix(digits)) ?? ""), number > 1, let first = String(stem),
            name == "\(first)-\(number)"
        else { return name }
        return first
    }

    /// The files beside the database that have a backup's name.
    package func backups() throws -> [String] { try kept(backupName(1)) }

    /// The damaged originals that are kept beside the database, each with the log and journal that it had.
    package func damagedOriginals() throws -> [String] {
        try kept(damagedName(1)).flatMap { original in
            try [original] + ["-wal", "-shm", "-journal"].map { original + $0 }.filter { try FileSystem.exists($0) }
        }
    }

    /// The files beside the database that have one of the numbered names.
    private func kept(_ first: String) throws -> [String] {
        try FileSystem.names(in: folder)
            .filter { $0.isSameName(as: first) || Self.withoutNumber($0).isSameName(as: first) }
            .map { FileName.sibling($0, of: database) }
    }

    /// The status of the database, `nil` where there is none.
    ///
    /// - Throws: ``StoreError`` with `busy` if a link has taken the place of what a search saw: it would lead out of
    ///   the folder that was searched. Another file in the same place is that folder's, too.
    func status() throws -> FileSystem.Status? {
        guard let seenFolder else { return try FileSystem.status(database) }
        // A new link may have the number of the folder that was removed.
        guard let folder = try FileSystem.status(folder, followLinks: false), folder.isDirectory,
            folder.identity == seenFolder
        else { throw SearchedFolder.replaced(database) }
        let status = try FileSystem.status(database, followLinks: false)
        guard status?.isSymbolicLink != true else { throw SearchedFolder.replaced(database) }
        return status
    }

    /// The names in the folder.
    package var name: String { FileSystem.split(database).name }
    /// The plaintext file, kept when the caller asks for a backup: `-plaintext`, then `-plaintext-2` and so on.
    func backupName(_ number: Int) -> String { Self.numbered(name + "-plaintext", number) }
    /// The damaged database in whose place a recovered one is: `-damaged`, then `-damaged-2` and so on.
    func damagedName(_ number: Int) -> String { Self.numbered(name + "-damaged", number) }
    private static func numbered(_ name: String, _ number: Int) -> String {
        name + (number == 1 ? "" : "-\(number)")
    }
    var attemptName: String { name + "-attempt" }

    /// The copy that is being built, but for the random part of its name.
    ///
    /// Never holds a plaintext byte, unless the database is decrypted.
    var copyPrefix: String { name + "-upgrade-" }
    /// A backup that is being written, likewise.
    var unfinishedBackupPrefix: String { name + "-plaintext-" }

    /// How many bytes the longest name of ours has more than the database's.
    package static let longestAddition = "-plaintext-".utf8.count + AttemptRecord.tokenLength

    package var folder: String { FileSystem.split(database).folder }

    /// Opens the folder.
    ///
    /// - Throws: ``StoreError`` with `busy` if it is another one than that which was searched.
    package func openFolder() throws -> Folder {
        let opened = try Folder(folder)
        guard let seenFolder else { return opened }
        guard try FileSystem.status(ofDescriptor: opened.descriptor, folder).identity == seenFolder else {
            throw SearchedFolder.replaced(database)
        }
        return opened
    }
}
