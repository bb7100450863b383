public import Foundation

/// A new folder that is removed together with its owner: keep it in a property of the suite.
public final class TemporaryFolder: Sendable {
    /// The folder.
    public let url: URL

    /// Makes a folder with a unique name.
    ///
    /// - Parameter inMemory: Whether the folder is in memory, if the system allows it. A sync costs nothing there, so
    ///   this is for tests with very many files.
    public init(inMemory: Bool = false) throws {
        let memory = URL(filePath: "/dev/shm")
        let hasMemory = inMemory && FileManager.default.isWritableFile(atPath: memory.path(percentEncoded: false))
        url = (hasMemory ? memory : FileManager.default.temporaryDirectory)
            .appending(path: "cipherstore-test-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }

    deinit {
        // It is not a failure if the test removed the folder, and a deinit cannot report an error.
        try? FileManager.default.removeItem(at: url)
    }

    /// The path of a file in the folder.
    public func path(_ name: String) -> String {
        url.path(percentEncoded: false) + "/" + name
    }

    /// Writes a file with its permissions and returns its path.
    @discardableResult
    public func write(_ text: String, to name: String, mode: Int = 0o600) throws -> String {
        try Data(text.utf8).write(to: url.appending(path: name))
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path(name))
        return path(name)
    }

    /// The names in the folder, sorted.
    public var names: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: path("")).sorted() }
    }
}
