package import CipherErrors
internal import CipherSQLite
internal import CipherSQLiteFormat
internal import CipherSystemFiles

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// Finds the databases in a folder and all folders below it.
///
/// A file is a database by its name, or by its content where the name tells nothing. A name that SQLite or we give what
/// lies beside a database counts by the content alone, and where that database exists it is told of and not entered.
/// Nothing is found twice, and nothing outside the folder: symbolic links are not followed, also where one takes the
/// place of a folder meanwhile, and of several hard links to one file the first counts.
package struct DatabaseSearch: IteratorProtocol, Sequence, Sendable {
    /// Which names are those of databases.
    package enum Names: Sendable {
        /// Files with the usual extensions of databases, and any other whose content is a database.
        case usual
        /// Files that match a shell pattern.
        case matching(String)
        /// One name.
        case equal(String)
    }

    /// What was found under a name.
    package struct Found: Sendable {
        package enum Kind: Sendable {
            case database
            /// A link, which is not followed.
            case symbolicLink
            /// Another name (hard link) of a database that was found before.
            case otherName(of: String)
            /// A database under a name that is SQLite's or ours beside the database of that name.
            case beside(database: String)
            /// It is unknown what this is.
            case failure(StoreError)
        }

        package let path: String
        package let kind: Kind
        /// In bytes.
        package let size: Int64
        /// When it was written last: seconds and nanoseconds.
        package let modified: [Int]?
        /// The folder in which it was seen; `nil` where that was not found.
        let folder: FileIdentity?
        fileprivate let file: FileIdentity?

        init(_ path: String, _ kind: Kind, in folder: FileIdentity?, _ status: FileSystem.Status? = nil) {
            self.path = path
            self.kind = kind
            self.folder = folder
            size = status?.size ?? 0
            modified = status?.modified
            file = status?.identity
        }

        /// Whether the same file still has this name: what an upgrade left there is swept at its next run.
        package func isStillThere() throws -> Bool {
            try FileSystem.status(path, followLinks: false)?.identity == file
        }
    }

    private let names: Names
    private let begins: (part: Int, of: Int)
    private let isWanted: @Sendable (String) -> Bool
    /// The folders that are still to be looked through, the next one last.
    private var folders: [Inner] = []
    /// What was found and not yet returned.
    private var found: [Found] = []
    private var returned = 0
    private var firstNames: [FileIdentity: String] = [:]
    /// How many files are found ahead, as whole folders: a folder's names are judged before any of its databases is worked on.
    private static let mostAhead = 64

    /// Begins a search of a folder, or takes the one database that a path leads to.
    ///
    /// What is found is returned folder by folder, by name. No more than one large folder is held in memory.
    ///
    /// - Parameters:
    ///   - begins: Which part of the folders comes first, so that several searches of one folder begin in different places.
    ///   - isWanted: Whether a path is to be found. What it refuses is not looked into. Of a name that a file beside a
    ///     database would have, it is asked for that database's path, whether it exists or not.
    /// - Throws: ``StoreError`` where there is nothing of that name.
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

    /// The next of what is found; `nil` once all folders were looked through.
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

    /// A folder that is still to be looked through.
    private typealias Inner = (path: String, identity: FileIdentity)

    /// Takes note of the databases in a folder, and returns the folders in it, the last one first.
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

    /// The path of the database that a name would belong to: of one that SQLite or we give a file beside a database, that
    /// one's, whether it exists or not; else its own.
    private static func database(of name: String, in folder: SearchedFolder) -> String {
        FileName.inFolder(folder.path, DatabasePaths.database(besideWhich: name) ?? name)
    }

    /// What a file is to the search; `nil` if it is no database.
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

    /// Takes note of a name of a file with several, and returns the first one.
    @discardableResult
    private mutating func noteName(_ path: String, of file: FileIdentity) -> String {
        if let first = firstNames[file] { return first }
        firstNames[file] = path
        return path
    }

    /// Whether the name is a database's; `nil` if it is none's, whatever the content.
    private func isNamed(_ name: String) -> Bool? {
        switch names {
        case .usual: Self.endings.contains { name.lowercased().hasSuffix($0) }
        case .matching(let pattern):
            pattern.withSystemPath { pattern in name.withSystemPath { fnmatch(pattern, $0, 0) } } == 0 ? true : nil
        case .equal(let wanted): name.isSameName(as: wanted) ? true : nil
        }
    }

    private static let endings = [".db", ".db3", ".sqlite", ".sqlite3", ".sqlitedb"]

    /// A plaintext database is known by its header.
    ///
    /// Pages of an encrypted one look random: of the 256 values of a byte, about 251 are among the first 1024 bytes.
    private static func looksLikeDatabase(_ path: String, _ status: FileSystem.Status) throws -> Bool {
        guard status.size >= 512 else { return false }
        guard FileSystem.canRead(path) else { throw FileSystem.failure("be read", path, EACCES) }
        let beginning = try DatabaseFile(path: path).read(at: 0, count: 1024)
        if FileHeader.startsWithMagic(beginning) { return true }
        guard !LogHeader.begins(beginning), !beginning.starts(with: JournalHeader.magic) else { return false }
        return status.size.isMultiple(of: 1024) && Set(beginning).count > 235
    }
}

extension DatabasePaths {
    /// The names around a database that a search has found, which are only what they are in that folder.
    package init(_ found: DatabaseSearch.Found) {
        self.init(found.path, seenIn: found.folder)
    }
}
