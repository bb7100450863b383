internal import CipherErrors
internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// One database in a folder of its own.
struct EngineFixture {
    private let folder: TemporaryFolder
    let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path("app.db")
    }

    /// A plaintext connection that can be written.
    func open() throws -> Connection { try Connection(path: path, mode: .create, busyTimeout: .zero) }

    func open(_ key: CipherKey, _ settings: CipherSettings = CipherSettings()) throws -> Connection {
        try Connection(path: path, mode: .create, key: key, settings: settings, busyTimeout: .zero)
    }

    func bytes() throws -> Data { try Data(contentsOf: URL(fileURLWithPath: path)) }
}

/// The `DatabaseError` that `body` throws; none is a failure of the test.
func databaseError(
    _ body: () throws -> some Any, sourceLocation: SourceLocation = #_sourceLocation
) throws -> DatabaseError {
    try #require(#expect(throws: DatabaseError.self, sourceLocation: sourceLocation) { _ = try body() })
}
