internal import CipherErrors
internal import CipherSQLite
internal import CipherSQLiteFormat
package import CipherSystemFiles

/// The names of one database and of the files beside it.
///
/// The file names are the complete upgrade state: which of them exist shows how far the upgrade got.
package struct DatabasePaths: Codable, Sendable {
    /// The path of the database, without symbolic links.
    package let database: String
    /// The folder in which a search found the database; `nil` for a path specified by the caller.
    private let seenFolder: FileIdentity?

    package init(_ path: String) throws {
        database = try FileSystem.resolve(path)
        seenFolder = nil
    }

    /// Creates the names for a database that was found in a folder; they are valid only while they are in that
    /// folder.
    init(_ database: String, seenIn folder: FileIdentity?) {
        self.database = database
        seenFolder = folder
    }

    /// Creates the names for another database in the same folder.
    ///
    /// If that name is a symbolic link, it is not followed.
    package init(_ name: String, beside other: DatabasePaths) {
        database = FileName.sibling(name, of: other.database)
        seenFolder = other.seenFolder
    }

    // SQLite's names.
    package var wal: String { database + "-wal" }
    package var sharedMemory: String { database + "-shm" }
    package var journal: String { database + "-journal" }

    /// Returns whether SQLite would find a log, a journal or a log's index.
    func hasSidecar() throws -> Bool {
        try FileSystem.exists(wal) || FileSystem.exists(journal) || FileSystem.exists(sharedMemory)
    }

    /// Removes the sidecars of a database that is missing.
    ///
    /// They are listed before the database is looked for: another program may create the database and its log at any
    /// time.
    package func removeSidecarsOfMissing() throws {
        let stray = try [wal, sharedMemory, journal].filter { try FileSystem.exists($0) }
        guard try !stray.isEmpty && FileSystem.status(database, followLinks: false) == nil else { return }
        for path in stray { try FileSystem.removeIfPresent(path) }
    }

    // CipherStore's names. The name of the copy has a random part, which ``AttemptRecord`` contains.
    /// The path of the record, which has the number of unfinished conversions, their files, and the journal mode to
    /// restore.
    var attempt: String { database + "-attempt" }

    /// Returns the database beside which a name would be one of SQLite's or CipherStore's; `nil` for any other name.
    package static func database(besideWhich name: String) -> String? {
        if let database = AttemptRecord.database(besideWhich: name) { return database }
        let unnumbered = withoutNumber(name)
        let ending = (["-wal", "-shm", "-journal", "-attempt"] + numberedEndings).first {
            unnumbered.utf8.count > $0.utf8.count && unnumbered.utf8.reversed().starts(with: $0.utf8.reversed())
        }
        return ending.flatMap { String(unnumbered.utf8.dropLast($0.utf8.count)) }
    }

    /// The endings of the names of kept files, which are numbered from the second file on.
    private static let numberedEndings = ["-plaintext", "-damaged"]

    /// Returns the first name of a backup or a damaged original for a numbered name, and any other name unchanged.
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

    /// Returns the files beside the database whose names are those of backups.
    package func backups() throws -> [String] { try kept(backupName(1)) }

    /// Returns the damaged originals that are kept beside the database, each with the log and journal that it had.
    package func damagedOriginals() throws -> [String] {
        try damagedDatabases().flatMap { original in
            try [original] + ["-wal", "-shm", "-journal"].map { original + $0 }.filter { try FileSystem.exists($0) }
        }
    }

    private func damagedDatabases() throws -> [String] { try kept(damagedName(1)) }

    /// Returns a damaged original that is not known to be plaintext; `nil` if none is kept.
    func encryptedDamagedOriginal() throws -> String? {
        try damagedDatabases().first {
            // Nothing but a regular file is a database, and opening a FIFO would block.
            try FileSystem.status($0)?.isRegular == true
                && (try? FileHeader(DatabaseFile(path: $0)).isPlaintext) != true
        }
    }

    /// Returns the files beside the database whose names are those of a conversion's files, with any token.
    package func unfinishedFiles() throws -> [String] {
        try FileSystem.names(in: folder)
            .filter { AttemptRecord.database(besideWhich: $0)?.isSameName(as: name) == true }
            .map { FileName.sibling($0, of: database) }
    }

    /// Returns the files beside the database that have one of the numbered names.
    private func kept(_ first: String) throws -> [String] {
        try FileSystem.names(in: folder)
            .filter { $0.isSameName(as: first) || Self.withoutNumber($0).isSameName(as: first) }
            .map { FileName.sibling($0, of: database) }
    }

    /// Returns the status of the database; `nil` if it does not exist.
    ///
    /// - Throws: ``StoreError`` with the code `busy` if a link has replaced the file that a search found, because the
    ///   link would lead out of the searched folder. Another regular file in its place still belongs to that folder.
    func status() throws -> FileSystem.Status? {
        guard let seenFolder else { return try FileSystem.status(database) }
        // A new link may have the inode number of the removed folder.
        guard let folder = try FileSystem.status(folder, followLinks: false), folder.isDirectory,
            folder.identity == seenFolder
        else { throw SearchedFolder.replaced(database) }
        let status = try FileSystem.status(database, followLinks: false)
        guard status?.isSymbolicLink != true else { throw SearchedFolder.replaced(database) }
        return status
    }

    /// The name of the database in the folder.
    package var name: String { FileSystem.split(database).name }
    /// Returns the name of the plaintext file that is kept as a backup: `-plaintext`, then `-plaintext-2` and so on.
    func backupName(_ number: Int) -> String { Self.numbered(name + "-plaintext", number) }
    /// Returns the name of a damaged database that was replaced by a recovered one: `-damaged`, then `-damaged-2` and
    /// so on.
    func damagedName(_ number: Int) -> String { Self.numbered(name + "-damaged", number) }
    private static func numbered(_ name: String, _ number: Int) -> String {
        name + (number == 1 ? "" : "-\(number)")
    }
    var attemptName: String { name + "-attempt" }

    /// The name of the copy that is being built, without its random part.
    ///
    /// The copy never contains a plaintext byte, unless the database is decrypted.
    var copyPrefix: String { name + "-upgrade-" }
    /// The name of a backup that is being written, without its random part.
    var unfinishedBackupPrefix: String { name + "-plaintext-" }

    /// The number of bytes by which the longest of CipherStore's names exceeds the database's name.
    package static let longestAddition = "-plaintext-".utf8.count + AttemptRecord.tokenLength

    package var folder: String { FileSystem.split(database).folder }

    /// Opens the folder.
    ///
    /// - Throws: ``StoreError`` with the code `busy` if the folder is not the one that was searched.
    package func openFolder() throws -> Folder {
        let opened = try Folder(folder)
        guard let seenFolder else { return opened }
        guard try FileSystem.status(ofDescriptor: opened.descriptor, folder).identity == seenFolder else {
            throw SearchedFolder.replaced(database)
        }
        return opened
    }
}
