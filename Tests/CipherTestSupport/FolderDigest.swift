internal import CipherPrimitives
internal import CipherSQLite
public import Foundation

/// The content and mode of every file in a folder, by name, for a comparison before and after.
///
/// The digest may be taken only while this process has no database in the folder open: if a database file is read other
/// than through SQLite, SQLite loses its locks on the file.
public struct FolderDigest: Equatable, Sendable, CustomStringConvertible {
    private let files: [String: String]

    /// Takes the digest.
    ///
    /// - Parameter ignoring: Endings of names that do not count, such as `-shm`, which SQLite may rewrite at any time.
    public init(_ folder: URL, ignoring endings: [String] = []) throws {
        var files: [String: String] = [:]
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path(percentEncoded: false))
        where !endings.contains(where: name.hasSuffix) {
            let path = folder.path(percentEncoded: false) + "/" + name
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            let mode = (attributes[.posixPermissions] as? NSNumber)?.intValue ?? 0
            guard attributes[.type] as? FileAttributeType == .typeRegular else {
                files[name] = "no regular file"
                continue
            }
            let data = try Data(contentsOf: URL(filePath: path))
            files[name] = try "\(data.count) bytes, \(Self.hash(data)), mode \(String(mode, radix: 8))"
        }
        self.files = files
    }

    /// The names, sorted.
    public var names: [String] { files.keys.sorted() }

    /// One line per file.
    public var description: String {
        files.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }.joined(separator: "\n")
    }

    private static func hash(_ data: Data) throws -> String {
        guard let digest = data.withUnsafeBytes(Cryptography.sha256) else { throw CocoaError(.featureUnsupported) }
        return Data(digest).base64EncodedString()
    }
}
