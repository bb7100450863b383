internal import CipherErrors
internal import CipherPlatform

extension FileSystem {
    /// Returns the names in a folder except `.` and `..`, in byte order.
    ///
    /// `FileManager` would change names that are not UTF-8, or fail for the whole folder.
    package static func names(in folder: String) throws -> [String] {
        guard let stream = folder.withSystemPath({ opendir($0) }) else {
            throw failure("be read", folder, of: "folder", needs: .read)
        }
        defer { closedir(stream) }
        return try names(folder) { readdir(stream) }
    }

    /// Returns the names in a folder's stream.
    static func names(_ folder: String, _ next: () -> UnsafeMutablePointer<dirent>?) throws -> [String] {
        var names: [[UInt8]] = []
        while true {
            errno = 0
            guard let entry = next() else { break }
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
            if name != Array(".".utf8), name != Array("..".utf8) { names.append(name) }
        }
        guard errno == 0 else { throw failure("be read", folder, of: "folder") }
        return names.sorted { $0.lexicographicallyPrecedes($1) }.map { SystemPath.text($0) }
    }
}
