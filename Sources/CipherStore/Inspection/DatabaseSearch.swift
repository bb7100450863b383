import CipherSQLite

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// Finds the databases in a folder and all folders below it.
///
/// A file is a database by its name, or by its content where the name tells nothing. What lies beside a database under one
/// of SQLite's names or ours is none, and nothing is found twice: symbolic links are not followed, and of several hard
/// links to one file the first counts.
package struct DatabaseSearch: Sendable {
    /// Which names are those of databases.
    package enum Names: Sendable {
        /// Those that end as databases usually do, and any other whose content is a database's.
        case usual
        /// Those that match a pattern of the shell's, and no others.
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
            /// It could not be told what this is.
            case failure(StoreError)
        }

        package let path: String
        package let kind: Kind
        /// In bytes.
        package let size: Int64
    }

    private struct FileIdentity: Hashable {
        let device: UInt64
        let inode: UInt64
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
            throw StoreError(.missingFile, path: path, "there is no such file or folder", advice: "check the path")
        }
        guard status.isDirectory else { return [Found(path: root, kind: .database, size: status.size)] }
        var search = DatabaseSearch(names: names)
        try search.walk(root)
        return search.found
    }

    private init(names: Names) {
        self.names = names
    }

    private mutating func walk(_ root: String) throws {
        var folders = [root]
        while let folder = folders.popLast() {
            var inner: [String] = []
            do {
                for name in try FileSystem.names(in: folder) {
                    let path = folder == "/" ? "/\(name)" : "\(folder)/\(name)"
                    if try look(at: path, named: name) { inner.append(path) }
                }
            } catch let error as StoreError where folder != root {
                found.append(Found(path: folder, kind: .failure(error), size: 0))
            }
            folders += inner.reversed()
        }
    }

    /// Takes note of a database.
    ///
    /// Returns whether it is a folder instead.
    private mutating func look(at path: String, named name: String) throws -> Bool {
        do {
            guard let status = try FileSystem.status(path, followLinks: false) else { return false }
            if status.isDirectory { return true }
            guard !DatabasePaths.isBesideDatabase(name), let isNamed = isNamed(name) else { return false }
            if status.isSymbolicLink {
                let isFile = try FileSystem.status(path)?.isRegular ?? false
                if isFile { found.append(Found(path: path, kind: .symbolicLink, size: 0)) }
                return false
            }
            guard status.isRegular, try isNamed || Self.looksLikeDatabase(path, status) else { return false }
            found.append(Found(path: path, kind: kind(path, status), size: status.size))
        } catch let error as StoreError {
            found.append(Found(path: path, kind: .failure(error), size: 0))
        } catch let error as DatabaseError {
            found.append(Found(path: path, kind: .failure(.reading(error, path: path)), size: 0))
        }
        return false
    }

    private mutating func kind(_ path: String, _ status: FileSystem.Status) -> Found.Kind {
        guard status.links > 1 else { return .database }
        let identity = FileIdentity(device: status.device, inode: status.inode)
        if let first = firstNames[identity] { return .otherName(of: first) }
        firstNames[identity] = path
        return .database
    }

    /// Whether the name is a database's; `nil` where it is none's, whatever the content.
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
        return status.size.isMultiple(of: 1024) && Set(beginning).count > 235
    }
}
