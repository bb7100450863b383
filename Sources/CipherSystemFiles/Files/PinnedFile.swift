internal import CCipherSystem
internal import CipherErrors
internal import CipherPlatform

/// A file whose identity is pinned: while this object exists, its inode number is not assigned to another file,
/// whatever happens to its name.
///
/// The file is opened for neither reading nor writing, so closing the descriptor does not drop SQLite's locks. On
/// systems without such descriptors, only the name is used.
package final class PinnedFile: Sendable {
    package let status: FileSystem.Status
    private let path: String
    private let descriptor: Int32

    /// - Throws: ``StoreError`` with the code `missingFile`, `permission` or `inputOutput`.
    package init(_ name: String, in folder: Folder) throws {
        path = folder.path(of: name)
        descriptor = name.withSystemPath { cs_open_pin(folder.descriptor, $0) }
        if descriptor >= 0 {
            do {
                status = try FileSystem.status(ofDescriptor: descriptor, path)
            } catch {
                close(descriptor)
                throw error
            }
        } else {
            guard errno == ENOTSUP else { throw FileSystem.failure("be examined", path) }
            guard let found = try folder.status(name) else {
                throw FileSystem.failure("be examined", path, ENOENT)
            }
            status = found
        }
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// A path that leads to this very file, if the system supports such a path.
    private var lastingPath: String {
        let magic = "/proc/self/fd/\(descriptor)"
        return descriptor >= 0 && access(magic, F_OK) == 0 ? magic : path
    }

    struct Attribute {
        /// The name: any bytes, with a terminating NUL.
        let name: [CChar]
        let value: [UInt8]

        var displayName: String { SystemPath.printable(SystemPath.text(name.dropLast().map { UInt8(bitPattern: $0) })) }
    }

    /// The extended attributes.
    func attributes() throws -> [Attribute] {
        let source = lastingPath
        let size = source.withSystemPath { cs_listxattr($0, nil, 0) }
        if size < 0, errno == ENOTSUP { return [] }
        guard size >= 0 else { throw failure() }
        guard size > 0 else { return [] }
        var names = [CChar](repeating: 0, count: size)
        let count = source.withSystemPath { cs_listxattr($0, &names, size) }
        guard count >= 0 else { throw failure() }
        return try names[..<count].split(separator: 0).map { name in
            let name = Array(name) + [0]
            let length = source.withSystemPath { cs_getxattr($0, name, nil, 0) }
            guard length >= 0 else { throw failure() }
            var value = [UInt8](repeating: 0, count: max(length, 1))
            let got = source.withSystemPath { cs_getxattr($0, name, &value, length) }
            guard got >= 0 else { throw failure() }
            return Attribute(name: name, value: Array(value[..<got]))
        }
    }

    private func failure() -> StoreError { FileSystem.failure("be checked for extended attributes", path) }
}
