internal import CipherErrors
internal import CipherSystemFiles

/// Databases below a folder, found by the names in a list that the caller does not control.
///
/// A name refers to a file below the folder or is refused: symbolic links are not followed.
package struct DatabaseList: Sendable {
    /// The folder, without symbolic links.
    package let root: String
    /// The folder of the last name, cached because lists are usually ordered by folder.
    private var last: (path: String, identity: FileIdentity)?

    /// Creates a list whose names are those of files below a folder.
    ///
    /// - Throws: ``StoreError`` if the folder does not exist.
    package init(in folder: String) throws {
        root = try FileSystem.resolve(folder)
        guard let status = try FileSystem.status(root), status.isDirectory else {
            throw StoreError.missingFile(folder, "there is no such folder")
        }
    }

    /// Returns the path of a name, which is relative to the folder, or absolute and below the folder.
    ///
    /// Returns `nil` if the name refers to something outside the folder.
    package func path(of name: String) -> String? {
        let slash = UInt8(ascii: "/")
        var bytes = Array(name.utf8)
        if bytes.first == slash {
            let prefix = Array((root == "/" ? root : root + "/").utf8)
            guard bytes.starts(with: prefix) else { return nil }
            bytes.removeFirst(prefix.count)
        }
        let parts = bytes.split(separator: slash).filter { !$0.elementsEqual(".".utf8) }
        guard !parts.isEmpty, bytes.last != slash, !parts.contains(where: { $0.elementsEqual("..".utf8) }) else {
            return nil
        }
        return FileName.inFolder(root, String(decoding: Array(parts.joined(separator: [slash])), as: UTF8.self))
    }

    /// Returns the result for a path that ``path(of:)`` returned.
    package mutating func found(at path: String) -> DatabaseSearch.Found {
        var folder: FileIdentity?
        do {
            let identity = try self.folder(of: path)
            folder = identity
            guard let status = try FileSystem.status(path, followLinks: false) else {
                throw StoreError.missingFile(path)
            }
            guard !status.isSymbolicLink else { return DatabaseSearch.Found(path, .symbolicLink, in: identity) }
            try FileSystem.checkRegular(status, path)
            return DatabaseSearch.Found(path, .database, in: identity, status)
        } catch {
            let failure = error as? StoreError ?? StoreError(.inputOutput, path: path, "the file could not be examined")
            return DatabaseSearch.Found(path, .failure(failure), in: folder)
        }
    }

    private mutating func folder(of path: String) throws -> FileIdentity {
        let folder = FileSystem.split(path).folder
        if let last, last.path.isSameName(as: folder) { return last.identity }
        guard let status = try FileSystem.status(folder, followLinks: false), status.isDirectory else {
            throw StoreError.missingFile(path)
        }
        guard try FileSystem.resolve(folder).isSameName(as: folder) else {
            throw StoreError(
                .notAFile, path: path, "a folder in this path is a symbolic link, which CipherStore does not follow",
                advice: "use the path without symbolic links")
        }
        last = (folder, status.identity)
        return status.identity
    }
}

extension DatabaseSearch.Found {
    /// The result for a name that refers to something outside the folder.
    package init(refused name: String) {
        let failure = StoreError(
            .notAFile, path: name, "this name in the list does not refer to a file inside the folder",
            advice: "use names that are relative to the folder and do not contain `..`")
        self.init(name, .failure(failure), in: nil)
    }
}
