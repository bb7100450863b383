public import CipherSQLite
import Foundation

/// A plaintext database as an app left it, in a folder of its own, with a copy of it put aside for comparison.
public struct LegacyFile: Sendable {
    /// The folder, in which nothing but the database and its sidecars is.
    public let folder: TemporaryFolder
    /// The database.
    public let path: String
    private let aside: TemporaryFolder

    /// Lets `make` write a database.
    ///
    /// - Parameter unclosed: Whether the files are taken while the connection is open, as a killed app leaves them.
    public init(
        named name: String = "app.db", unclosed: Bool = false, _ make: (Connection) throws -> Void
    ) throws {
        folder = try TemporaryFolder()
        aside = try TemporaryFolder()
        path = folder.path(name)
        let scratch = try TemporaryFolder()
        let connection = try Connection(path: scratch.path(name), mode: .create)
        defer { connection.close() }
        try make(connection)
        if !unclosed { connection.close() }
        for file in try scratch.names where !file.hasSuffix("-shm") {
            try FileManager.default.copyItem(atPath: scratch.path(file), toPath: folder.path(file))
        }
        try keepAside()
    }

    /// Takes over files that are there.
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

    /// The original's content, read from the copy that was put aside, so that nothing here is touched.
    public func originalDump(collations: [Collation] = [], computed: Bool = true) throws -> DatabaseDump {
        try readOriginal(collations: collations) { try DatabaseDump($0, computed: computed) }
    }

    /// Reads the copy that was put aside.
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

    /// The bytes of the folder.
    public func digest() throws -> FolderDigest { try FolderDigest(folder.url, ignoring: ["-shm"]) }

    /// Whether the file begins as a plaintext database does.
    public var startsAsPlaintext: Bool {
        get throws { try Self.startsAsPlaintext(path) }
    }

    /// Whether a file begins as a plaintext database does; no connection of this process has it open.
    public static func startsAsPlaintext(_ path: String) throws -> Bool {
        let file = try FileHandle(forReadingFrom: URL(filePath: path))
        defer { try? file.close() }
        return try file.read(upToCount: 16) == Data("SQLite format 3\0".utf8)
    }
}
