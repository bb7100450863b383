internal import Foundation

/// A fresh folder for one test, removed with everything in it when the test lets go of it.
public final class TemporaryFolder {
    private let folder: URL

    /// Makes the folder.
    public init() throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("cipherstore-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit {
        // A test that fails to tidy up has not failed.
        try? FileManager.default.removeItem(at: folder)
    }

    /// The path of a file in the folder, whether it exists or not.
    public func path(_ name: String) -> String {
        folder.appendingPathComponent(name).path
    }
}
