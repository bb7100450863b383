import CCipherSystem
import CipherPlatform
import Foundation

/// Root's own files, to which nobody else has access: a database that the user's key opens, and a copy of it.
struct RootFiles: Equatable {
    /// The file to which links point.
    static let secret = "secret"

    /// The application ID of root's plaintext files, at this offset; the user's own files have another one.
    private static let mark = (offset: 68, bytes: Array("Root".utf8))

    private struct File: Equatable {
        let mode: mode_t
        let owner: uid_t
        let group: gid_t
        let links: UInt64
        let bytes: [UInt8]
        let attributes: [String: [UInt8]]
    }

    private let files: [String: File]

    /// Creates the files, and a folder that others can enter but not list.
    static func lay(at folder: String, _ database: FileImage) throws {
        var bytes = database.bytes
        if bytes.starts(with: "SQLite format 3".utf8) {
            bytes.replaceSubrange(mark.offset..<mark.offset + mark.bytes.count, with: mark.bytes)
        }
        let image = FileImage(bytes: bytes, mode: 0o600)
        let state = FolderState(
            files: [FolderState.database: image, secret: image], numbers: [FolderState.database: 0, secret: 1])
        try state.lay(at: folder, Inodes())
        guard chmod(folder, 0o711) == 0 else { throw TrialError(detail: "the mode of \(folder) cannot be set") }
    }

    init(of folder: String) throws {
        var files: [String: File] = [:]
        for (name, image) in try FolderState(of: folder).files {
            let path = folder + "/" + name
            var status = stat()
            guard lstat(path, &status) == 0 else { throw TrialError(detail: "\(path) has no status") }
            files[name] = File(
                mode: status.st_mode, owner: status.st_uid, group: status.st_gid, links: UInt64(status.st_nlink),
                bytes: image.bytes, attributes: try Self.attributes(path))
        }
        self.files = files
    }

    /// Returns whether a file in a folder is a plaintext copy of one of root's files.
    ///
    /// Links are not followed.
    static func wereCopied(to folder: String) throws -> Bool {
        try FileManager.default.contentsOfDirectory(atPath: folder).contains { name in
            let path = folder + "/" + name
            var status = stat()
            guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return false }
            return try Data(contentsOf: URL(filePath: path)).dropFirst(mark.offset).starts(with: mark.bytes)
        }
    }

    private static func attributes(_ path: String) throws -> [String: [UInt8]] {
        let names = try bytes(path) { cs_listxattr(path, $0?.assumingMemoryBound(to: CChar.self), $1) }
        return try Dictionary(
            names.split(separator: 0).map { name in
                let text = String(decoding: name, as: UTF8.self)
                return (text, try bytes(path) { cs_getxattr(path, text, $0, $1) })
            }, uniquingKeysWith: { $1 })
    }

    /// Calls a function that returns the needed size if it gets no buffer.
    private static func bytes(_ path: String, _ call: (UnsafeMutableRawPointer?, Int) -> Int) throws -> [UInt8] {
        let size = call(nil, 0)
        guard size > 0 else { return [] }
        return try [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
            count = call(buffer.baseAddress, size)
            guard count >= 0 else { throw TrialError(detail: "the attributes of \(path) cannot be read: \(errno)") }
        }
    }
}
