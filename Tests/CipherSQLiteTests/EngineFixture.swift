internal import CipherErrors
internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// One database in a separate folder.
struct EngineFixture {
    private let folder: TemporaryFolder
    let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path("app.db")
    }

    /// A writable plaintext connection.
    func open() throws -> Connection { try Connection(path: path, mode: .create, busyTimeout: .zero) }

    func open(_ key: CipherKey, _ settings: CipherSettings = CipherSettings()) throws -> Connection {
        try Connection(path: path, mode: .create, key: key, settings: settings, busyTimeout: .zero)
    }

    func bytes() throws -> Data { try Data(contentsOf: URL(fileURLWithPath: path)) }
}

/// Returns the `DatabaseError` that `body` throws; if it throws none, the test fails.
func databaseError(
    _ body: () throws -> some Any, sourceLocation: SourceLocation = #_sourceLocation
) throws -> DatabaseError {
    try #require(#expect(throws: DatabaseError.self, sourceLocation: sourceLocation) { _ = try body() })
}
