public import CipherSQLite
import Foundation

/// A database as an app left it, with a copy for comparison.
///
/// It is in a separate folder, or at a place that the test chooses.
public struct LegacyFile: Sendable {
    /// The folder, which contains only the database and its sidecars.
    public let folder: TemporaryFolder
    /// The database.
    public let path: String
    private let aside: TemporaryFolder

    /// Lets `make` write a database in a separate folder.
    ///
    /// - Parameter unclosed: Whether the files are copied while the connection is open, as a killed app leaves them.
    public init(
        named name: String = "app.db", unclosed: Bool = false, _ make: (Connection) throws -> Void
    ) throws {
        folder = try TemporaryFolder()
        aside = try TemporaryFolder()
        path = folder.path(name)
        try Self.write(path, unclosed: unclosed, make)
        try keepAside()
    }

    /// Lets `make` write a database at a place that the test chooses.
    ///
    /// - Parameters:
    ///   - key: The key, if the database is encrypted.
    ///   - unclosed: Whether the files are copied while the connection is open, as a killed app leaves them.
    public static func write(
        _ path: String, key: CipherKey? = nil, settings: CipherSettings = CipherSettings(), unclosed: Bool = false,
        _ make: (Connection) throws -> Void
    ) throws {
        let scratch = unclosed ? try TemporaryFolder() : nil
        let connection = try Connection(path: scratch?.path("app.db") ?? path, mode: .create)
        defer { connection.close() }
        if let key { try connection.setKey(key, settings: settings) }
        try make(connection)
        guard let scratch else { return }
        for file in try scratch.names where !file.hasSuffix("-shm") {
            try FileManager.default.copyItem(
                atPath: scratch.path(file), toPath: path + file.dropFirst("app.db".count))
        }
    }

    /// Writes a database with a script, at a place that the test chooses.
    public static func write(
        _ path: String, key: CipherKey? = nil, settings: CipherSettings = CipherSettings(), unclosed: Bool = false,
        script: String
    ) throws {
        try write(path, key: key, settings: settings, unclosed: unclosed) { try $0.executeScript(text: script) }
    }

    /// Uses existing files.
    public init(copying source: String) throws {
        folder = try TemporaryFolder()
        aside = try TemporaryFolder()
        path = folder.path("app.db")
        for ending in ["", "-wal", "-journal"] where FileManager.default.fileExists(atPath: source + ending) {
            try FileManager.default.copyItem(atPath: source + ending, toPath: path + ending)
        }
        try keepAside()
    }

    private func keepAside() throws {
        for file in try folder.names {
            try FileManager.default.copyItem(atPath: folder.path(file), toPath: aside.path(file))
        }
    }

    /// The content of the original, read from the copy, so that the file itself is not touched.
    public func originalDump(collations: [Collation] = [], computed: Bool = true) throws -> DatabaseDump {
        try readOriginal(collations: collations) { try DatabaseDump($0, computed: computed) }
    }

    /// Reads the copy.
    public func readOriginal<Result>(
        collations: [Collation] = [], _ body: (Connection) throws -> Result
    ) throws -> Result {
        try Self.read(
            aside.path(URL(filePath: path).lastPathComponent), nil, CipherSettings(), collations, body)
    }

    /// The content of the file as it is now, with its key or as plaintext.
    public func dump(
        key: CipherKey?, settings: CipherSettings = CipherSettings(), collations: [Collation] = [],
        computed: Bool = true
    ) throws -> DatabaseDump {
        try Self.read(path, key, settings, collations) { try DatabaseDump($0, computed: computed) }
    }

    /// Reads the file as it is now.
    public func read<Result>(
        key: CipherKey?, settings: CipherSettings = CipherSettings(), collations: [Collation] = [],
        _ body: (Connection) throws -> Result
    ) throws -> Result {
        try Self.read(path, key, settings, collations, body)
    }

    private static func read<Result>(
        _ path: String, _ key: CipherKey?, _ settings: CipherSettings, _ collations: [Collation],
        _ body: (Connection) throws -> Result
    ) throws -> Result {
        let connection = try Connection(path: path, mode: .readWrite)
        defer { connection.close() }
        if let key { try connection.setKey(key, settings: settings) }
        connection.allowDoubleQuotedStrings()
        for collation in collations { try connection.register(collation) }
        try connection.proveReadable()
        return try body(connection)
    }

    /// The digest of the folder.
    public func digest() throws -> FolderDigest { try FolderDigest(folder.url, ignoring: ["-shm"]) }

    /// Whether the file begins like a plaintext database.
    public var startsAsPlaintext: Bool {
        get throws { try Self.startsAsPlaintext(path) }
    }

    /// Returns whether a file begins like a plaintext database.
    ///
    /// No connection of this process may have it open.
    public static func startsAsPlaintext(_ path: String) throws -> Bool {
        let file = try FileHandle(forReadingFrom: URL(filePath: path))
        defer { try? file.close() }
        return try file.read(upToCount: 16) == Data("SQLite format 3\0".utf8)
    }
}
