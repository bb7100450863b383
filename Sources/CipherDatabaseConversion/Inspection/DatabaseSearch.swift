package import CipherErrors
internal import CipherPlatform
internal import CipherSQLite
internal import CipherSQLiteFormat
package import CipherSystemFiles

/// A search for the databases in a folder and all folders below it.
///
/// A file is recognized as a database by its name, or by its content if the name is inconclusive. If the name is one
/// that SQLite or CipherStore uses for a file beside a database, only the content is considered; if that database
/// exists, the file is reported and not converted. No file is found twice, and no file outside the folder is found:
/// symbolic links are not followed, even if one replaces a folder meanwhile, and if a file has several hard links, only
/// the first one is used.
package struct DatabaseSearch: IteratorProtocol, Sequence, Sendable {
    /// The names that are recognized as names of databases.
    package enum Names: Sendable {
        /// Files with the usual extensions of databases, and any other file whose content is a database.
        case usual
        /// Files that match a shell pattern.
        case matching(String)
        /// Files with exactly this name.
        case equal(String)
    }

    /// A result of the search for one name.
    package struct Found: Sendable {
        package enum Kind: Sendable {
            case database
            /// A symbolic link, which is not followed.
            case symbolicLink
            /// Another name (hard link) of a database that was found before.
            case otherName(of: String)
            /// A database whose name is one that SQLite or CipherStore uses for a file beside the named database.
            case beside(database: String)
            /// The file could not be examined.
            case failure(StoreError)
        }

        package let path: String
        package let kind: Kind
        /// The size in bytes.
        package let size: Int64
        /// The time of the last modification, in seconds and nanoseconds.
        package let modified: [Int]?
        /// The folder in which the file was found; `nil` if that folder was not found.
        let folder: FileIdentity?
        package let identity: FileIdentity?

        init(_ path: String, _ kind: Kind, in folder: FileIdentity?, _ status: FileSystem.Status? = nil) {
            self.path = path
            self.kind = kind
            self.folder = folder
            size = status?.size ?? 0
            modified = status?.modified
            identity = status?.identity
        }

        /// Returns whether the same file still has this name.
        ///
        /// The next upgrade of the file removes what an earlier upgrade left in the folder.
        package func isStillThere() throws -> Bool {
            try FileSystem.status(path, followLinks: false)?.identity == identity
        }
    }

    private let names: Names
    private let begins: (part: Int, of: Int)
    private let isWanted: @Sendable (String) -> Bool
    /// The folders that have not been searched yet, the next one last.
    private var folders: [Inner] = []
    /// The results that have not been returned yet.
    private var found: [Found] = []
    private var returned = 0
    private var firstNames: [FileIdentity: String] = [:]
    /// The number of files to find ahead, in whole folders: all names of a folder are examined before any of its
    /// databases is converted.
    private static let mostAhead = 64

    /// Begins a search of a folder, or takes the one database at a path.
    ///
    /// Results are returned folder by folder, ordered by name. No more than one large folder is held in memory.
    ///
    /// - Parameters:
    ///   - begins: The part of the folders that comes first, so that several searches of one folder can start in
    ///     different places.
    ///   - isWanted: Returns whether to report the file at a path. A file for which it returns `false` is not read. For
    ///     a name that a file beside a database would have, this closure is called with the path of that database,
    ///     whether or not that database exists.
    /// - Throws: ``StoreError`` if there is no file or folder at the path.
    package init(
        in path: String, _ names: Names, begins: (part: Int, of: Int) = (0, 1),
        isWanted: @escaping @Sendable (String) -> Bool = { _ in true }
    ) throws {
        self.names = names
        self.begins = begins
        self.isWanted = isWanted
        let root = try FileSystem.resolve(path)
        guard let status = try FileSystem.status(root) else {
            throw StoreError.missingFile(path, "there is no such file or folder")
        }
        guard status.isDirectory else {
            guard isWanted(root) else { return }
            found = [Found(root, .database, in: try SearchedFolder(FileSystem.split(root).folder).identity, status)]
            return
        }
        folders = try look(through: SearchedFolder(root))
    }

    /// Returns the next result; `nil` once all folders have been searched.
    package mutating func next() -> Found? {
        while found.count - returned < Self.mostAhead, let next = folders.popLast() {
            found.removeFirst(returned)
            returned = 0
            do {
                folders += try look(through: SearchedFolder(next.path, seen: next.identity))
            } catch {
                addFailure(error, next.path, isWanted: isWanted(next.path), next.identity)
            }
        }
        guard returned < found.count else { return nil }
        defer { returned += 1 }
        return found[returned]
    }

    /// A folder that has not been searched yet.
    private typealias Inner = (path: String, identity: FileIdentity)

    /// Records the databases in a folder, and returns the folders in it, the last one first.
    private mutating func look(through folder: SearchedFolder) throws -> [Inner] {
        var inner: [Inner] = []
        for name in try folder.names() {
            let path = FileName.inFolder(folder.path, name)
            do {
                guard let status = try folder.status(of: name) else { continue }
                if status.isDirectory {
                    inner.append((path, status.identity))
                } else if let kind = try kind(of: name, path, status, folder) {
                    found.append(Found(path, kind, in: folder.identity, status))
                }
            } catch {
                addFailure(error, path, isWanted: isWanted(Self.database(of: name, in: folder)), folder.identity)
            }
        }
        let first = begins.of > 0 ? inner.count * begins.part / begins.of : 0
        return (inner[first...] + inner[..<first]).reversed()
    }

    private mutating func addFailure(_ error: any Error, _ path: String, isWanted: Bool, _ folder: FileIdentity) {
        guard isWanted else { return }
        let failure =
            switch error {
            case let error as StoreError: error
            case let error as DatabaseError: StoreError(error, path: path, during: .use)
            default: StoreError(.inputOutput, path: path, "the file could not be examined: \(type(of: error))")
            }
        found.append(Found(path, .failure(failure), in: folder))
    }

    /// Returns the path of the database that a name belongs to: for a name that SQLite or CipherStore uses for a file
    /// beside a database, that database's path, whether or not it exists; otherwise the name's own path.
    private static func database(of name: String, in folder: SearchedFolder) -> String {
        FileName.inFolder(folder.path, DatabasePaths.database(besideWhich: name) ?? name)
    }

    /// Classifies a file for the search; returns `nil` if it is not a database.
    private mutating func kind(
        of name: String, _ path: String, _ status: FileSystem.Status, _ folder: SearchedFolder
    ) throws -> Found.Kind? {
        guard let isNamed = isNamed(name) else { return nil }
        let other = DatabasePaths.database(besideWhich: name)
        guard isWanted(Self.database(of: name, in: folder)) else {
            if status.isRegular, status.links > 1 { noteName(path, of: status.identity) }
            return nil
        }
        if status.isSymbolicLink {
            return try other == nil && FileSystem.status(path)?.isRegular == true ? .symbolicLink : nil
        }
        guard status.isRegular, try isNamed && other == nil || Self.looksLikeDatabase(path, status) else { return nil }
        if let other, try folder.status(of: other)?.isRegular == true {
            return .beside(database: FileName.inFolder(folder.path, other))
        }
        guard status.links > 1 else { return .database }
        let first = noteName(path, of: status.identity)
        return first.isSameName(as: path) ? .database : .otherName(of: first)
    }

    /// Records a name of a file that has several names, and returns the first one.
    @discardableResult
    private mutating func noteName(_ path: String, of file: FileIdentity) -> String {
        if let first = firstNames[file] { return first }
        firstNames[file] = path
        return path
    }

    /// Returns whether the name is that of a database; `nil` to exclude the file whatever its content.
    private func isNamed(_ name: String) -> Bool? {
        switch names {
        case .usual: Self.endings.contains { name.lowercased().hasSuffix($0) }
        case .matching(let pattern):
            pattern.withSystemPath { pattern in name.withSystemPath { fnmatch(pattern, $0, 0) } } == 0 ? true : nil
        case .equal(let wanted): name.isSameName(as: wanted) ? true : nil
        }
    }

    private static let endings = [".db", ".db3", ".sqlite", ".sqlite3", ".sqlitedb"]

    /// Returns whether the content looks like a database.
    ///
    /// A plaintext one is recognized by its header.
    ///
    /// Encrypted pages look random: the first 1024 bytes contain about 251 of the 256 possible byte values.
    private static func looksLikeDatabase(_ path: String, _ status: FileSystem.Status) throws -> Bool {
        guard status.size >= 512 else { return false }
        guard FileSystem.canRead(path) else { throw FileSystem.failure("be read", path, EACCES, needs: .read) }
        let beginning = try DatabaseFile(path: path).read(at: 0, count: 1024)
        if FileHeader.startsWithMagic(beginning) { return true }
        guard !LogHeader.begins(beginning), !beginning.starts(with: JournalHeader.magic) else { return false }
        return status.size.isMultiple(of: 1024) && Set(beginning).count > 235
    }
}

extension DatabasePaths {
    /// Creates the paths for a database that a search has found; they are valid only while they are in the same folder.
    package init(_ found: DatabaseSearch.Found) {
        self.init(found.path, seenIn: found.folder)
    }
}
