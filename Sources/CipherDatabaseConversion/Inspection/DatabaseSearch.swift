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
package struct DatabaseSearch: Sendable {
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
        /// The folder in which it was seen.
        let folder: FileIdentity
        fileprivate let file: FileIdentity?

        fileprivate init(_ path: String, _ kind: Kind, in folder: FileIdentity, _ status: FileSystem.Status? = nil) {
            self.path = path
            self.kind = kind
            self.folder = folder
            size = status?.size ?? 0
            file = status?.identity
        }

        /// Whether the same file still has this name: what an upgrade left there is swept at its next run.
        package func isStillThere() throws -> Bool {
            try FileSystem.status(path, followLinks: false)?.identity == file
        }
    }

    private let names: Names
    private var found: [Found] = []
    private var firstNames: [FileIdentity: String] = [:]

    /// Searches a folder, or takes the one database that a path leads to.
    ///
    /// - Returns: What was found, folder by folder, by name.
    /// - Throws: ``StoreError`` where there is nothing of that name.
    package static func run(in path: String, _ names: Names) throws -> [Found] {
        let root = try FileSystem.resolve(path)
        guard let status = try FileSystem.status(root) else {
            throw StoreError.missingFile(path, "there is no such file or folder")
        }
        guard status.isDirectory else {
            return [Found(root, .database, in: try SearchedFolder(FileSystem.split(root).folder).identity, status)]
        }
        var search = DatabaseSearch(names: names)
        try search.walk(SearchedFolder(root))
        return search.found
    }

    private init(names: Names) {
        self.names = names
    }

    private mutating func walk(_ root: SearchedFolder) throws {
        var folders = try look(through: root)
        while let next = folders.popLast() {
            do {
                folders += try look(through: SearchedFolder(next.path, seen: next.identity))
            } catch let error as StoreError {
                found.append(Found(next.path, .failure(error), in: next.identity))
            }
        }
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
            } catch let error as StoreError {
                found.append(Found(path, .failure(error), in: folder.identity))
            } catch let error as DatabaseError {
                found.append(Found(path, .failure(StoreError(error, path: path, during: .use)), in: folder.identity))
            }
        }
        return inner.reversed()
    }

    /// What a file is to the search; `nil` if it is no database.
    private mutating func kind(
        of name: String, _ path: String, _ status: FileSystem.Status, _ folder: SearchedFolder
    ) throws -> Found.Kind? {
        guard let isNamed = isNamed(name) else { return nil }
        let other = DatabasePaths.database(besideWhich: name)
        if status.isSymbolicLink {
            return try other == nil && FileSystem.status(path)?.isRegular == true ? .symbolicLink : nil
        }
        guard status.isRegular, try isNamed && other == nil || Self.looksLikeDatabase(path, status) else { return nil }
        if let other, try folder.status(of: other)?.isRegular == true {
            return .beside(database: FileName.inFolder(folder.path, other))
        }
        guard status.links > 1 else { return .database }
        if let first = firstNames[status.identity] { return .otherName(of: first) }
        firstNames[status.identity] = path
        return .database
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
