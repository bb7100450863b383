internal import CipherPlatform
internal import CipherPrimitives
internal import CipherErrors
package import CipherSQLite
internal import CipherSystemFiles

/// Creates key files.
package enum KeyFile {
    /// Stores a key in a new file that only this user can read.
    ///
    /// The file appears under its name with its complete content, and is on the disk when this returns. Until then the
    /// file has no name, so nothing is left behind if the process is killed. On a file system without nameless files,
    /// it has a temporary name that begins with `.cipherstore-key-`. If the process is killed, such a file may be left
    /// behind; it is never read and never removed, because its owner is unknown.
    ///
    /// - Returns: `false` if a file of that name already exists; it is left unchanged.
    /// - Throws: ``StoreError`` with the code `missingFile` for a missing folder, `permission`, `noSpace` or
    ///   `inputOutput`. Nothing is left behind, unless the folder could not be synced: by then another process may use
    ///   the new key, so the file stays.
    package static func create(_ path: String, key: CipherKey) throws -> Bool {
        let (directory, name) = FileSystem.split(path)
        guard try FileSystem.status(directory)?.isDirectory == true else {
            throw StoreError.missingFolder(path)
        }
        let folder = try Folder(directory)
        if let isNew = try createNameless(name, in: folder, key, path) {
            if isNew { try folder.sync() }
            return isNew
        }
        let temporary = ".cipherstore-key-\(try Folder.randomName())"
        let file: NewFile
        do {
            file = try NewFile(temporary, in: folder)
        } catch let error as StoreError {
            // The user knows only the name that was requested.
            throw error.at(path)
        }
        do {
            try write(key, to: file)
            guard try file.hasName(temporary) else { throw FileSystem.failure("be created", path, EBUSY) }
            guard try folder.renameIfFree(temporary, to: name) else {
                try folder.removeIfPresent(temporary)
                return false
            }
        } catch {
            try folder.removeIfPresent(temporary)
            throw error
        }
        try folder.sync()
        return true
    }

    /// Creates the file without a name first; returns `nil` if the system cannot do this.
    private static func createNameless(
        _ name: String, in folder: Folder, _ key: CipherKey, _ path: String
    ) throws -> Bool? {
        guard let file = try NewFile(toBeNamedIn: folder, path: path) else { return nil }
        try write(key, to: file)
        return file.appear(as: name)
    }

    private static func write(_ key: CipherKey, to file: NewFile) throws {
        let text = key.text
        let line = SecretBytes(count: text.count + 1) { buffer in
            text.withUnsafeBytes { buffer.copyMemory(from: $0) }
            buffer[text.count] = UInt8(ascii: "\n")
        }
        try line.withUnsafeBytes { try file.append($0) }
        try file.sync()
    }
}
