import AppSQLite
import CipherDatabaseConversion
import Foundation

/// What the examples share: a folder, a key, databases of older versions, and a search in the bytes of files.
public struct Example: Sendable {
    /// Why an example failed.
    public struct Failure: Error, CustomStringConvertible {
        /// What went wrong.
        public let description: String

        /// Creates a failure with its reason.
        public init(_ description: String) {
            self.description = description
        }
    }

    /// The folder of the app's data, empty at first.
    public let folder: URL
    /// The key, in a file that is created when it is first used.
    public let keys: any KeyProvider

    /// Begins an example in a new folder.
    public init(_ title: String) throws {
        print("== \(title)")
        let place = FileManager.default.temporaryDirectory.appending(path: "cipherstore-example-\(UUID())")
        folder = place.appending(path: "data")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        keys = .file(place.appending(path: "key").path(percentEncoded: false), createIfMissing: true)
    }

    /// Removes the folder.
    public func end() throws {
        try FileManager.default.removeItem(at: folder.deletingLastPathComponent())
    }

    /// Returns a file of the example configurations.
    public func config(_ path: String) -> URL {
        URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Config/\(path)")
    }

    /// Writes a plaintext database as the app did before it used this library, and returns its URL.
    ///
    /// - Parameter prepare: Registers what the schema needs, before the script runs.
    @discardableResult
    public func legacy(
        _ name: String, _ script: String, prepare: (OpaquePointer?) -> Void = { _ in }
    ) throws -> URL {
        let file = folder.appending(path: name)
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        var database: OpaquePointer?
        defer { sqlite3_close(database) }
        guard sqlite3_open(file.path(percentEncoded: false), &database) == SQLITE_OK else {
            throw Failure("the legacy database: \(String(cString: sqlite3_errmsg(database)))")
        }
        prepare(database)
        guard sqlite3_exec(database, script, nil, nil, nil) == SQLITE_OK else {
            throw Failure("the legacy database: \(String(cString: sqlite3_errmsg(database)))")
        }
        return file
    }

    /// Ends the example with a failure if the condition is false.
    public func expect(_ condition: Bool, _ what: String) throws {
        guard condition else { throw Failure("not as expected: \(what)") }
    }

    /// Checks whether a text occurs in the bytes of a file or of the files beside it.
    public func expect(_ text: String, readable: Bool, in name: String) throws {
        let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
        let found = try files.contains { file in
            guard file.lastPathComponent.hasPrefix(name) else { return false }
            return try Data(contentsOf: file).range(of: Data(text.utf8)) != nil
        }
        try expect(found == readable, "\"\(text)\" is \(found ? "" : "not ")in the bytes of \(name)")
        print("   \"\(text)\" is \(found ? "readable by anyone in" : "nowhere in the bytes of") \(name)")
    }
}
