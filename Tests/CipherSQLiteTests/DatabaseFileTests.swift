internal import CipherErrors
internal import CipherSQLite
import Foundation
import Testing

struct DatabaseFileTests {
    private let fixture: EngineFixture

    init() throws {
        fixture = try EngineFixture()
    }

    @Test("A database file can be read at any offset, and a read beyond its end returns fewer bytes")
    func reading() throws {
        let db = try fixture.open()
        try db.execute("CREATE TABLE t(v)")
        let file = try DatabaseFile(path: fixture.path)
        let size = try file.size()
        #expect(try file.read(at: 0, count: 15) == Array("SQLite format 3".utf8))
        #expect(try file.read(at: size - 2, count: 10).count == 2)
        #expect(try file.read(at: size, count: 10).isEmpty)
        #expect(try file.read(at: size + 5, count: 10).isEmpty)
        #expect(throws: DatabaseError.self) { try DatabaseFile(path: fixture.path + "-missing") }
        #expect(throws: DatabaseError.self) { try file.write([0], at: 0) }
    }

    #if !os(iOS) && !os(tvOS) && !os(watchOS)
        /// Where the parent and the child process of one test meet, because a child process inherits no values.
        private static func meetingPlace(_ process: Int32) -> String {
            FileManager.default.temporaryDirectory.appending(path: "cipherstore-lock-\(process).db")
                .path(percentEncoded: false)
        }

        @Test("Reading a database file does not release the locks that this process holds on it")
        func locks() async throws {
            let path = Self.meetingPlace(ProcessInfo.processInfo.processIdentifier)
            defer {
                for suffix in ["", "-journal"] { try? FileManager.default.removeItem(atPath: path + suffix) }
            }
            let db = try Connection(path: path, mode: .create)
            defer { db.close() }
            try db.execute("CREATE TABLE t(v)")
            try db.execute("BEGIN IMMEDIATE")
            for access in [DatabaseFile.Access.readOnly, .readWrite] {
                _ = try DatabaseFile(path: path, access: access).read(at: 0, count: 100)
            }
            await #expect(processExitsWith: .exitCode(5)) { exit(try Self.codeOfWrite()) }
            // The same question must get the opposite answer here; otherwise the test would show nothing.
            try db.execute("COMMIT")
            await #expect(processExitsWith: .success) { exit(try Self.codeOfWrite()) }
        }

        /// Returns SQLite's code for a write by a child process.
        private static func codeOfWrite() throws -> Int32 {
            let db = try Connection(path: meetingPlace(getppid()), mode: .readWrite, busyTimeout: .zero)
            defer { db.close() }
            do {
                try db.execute("INSERT INTO t VALUES (1)")
                return 0
            } catch let error as DatabaseError {
                return error.code
            }
        }
    #endif
}
