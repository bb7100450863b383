internal import CipherErrors
internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// The file layer that gives access to the copy.
struct FileLayerTests {
    @Test("If the size of the file cannot be read, SQLCipher's check of all pages ends with an error")
    func size() throws {
        let fixture = try LegacyFile { connection in
            try connection.setKey(TestKeys.raw(), settings: CipherSettings())
            try connection.executeScript("CREATE TABLE t(a); INSERT INTO t VALUES(zeroblob(9000))")
        }
        let file = try FileWithoutSize(fixture.path)
        let connection = try Connection(
            path: fixture.path, mode: .readOnly, through: FileLayer({ file }, makeJournal: { nil }))
        defer { connection.close() }
        try connection.setKey(TestKeys.raw(), settings: CipherSettings())
        try connection.proveReadable()
        #expect(throws: Never.self) { try connection.checkLayers() }

        // SQLCipher asks for the size, ignores the failure, and reads as many pages as the uninitialized result says.
        file.failure = DatabaseError.inputOutput
        _ = try? connection.values(String.self, "PRAGMA cipher_integrity_check")
        _ = try? connection.proveReadable()
        #expect(throws: DatabaseError.self) { try connection.checkLayers() }
    }
}

/// A database file whose size query fails from some point on.
private final class FileWithoutSize: LayeredFile {
    private let handle: FileHandle
    private let file: DescriptorFile
    var failure: Int32?

    init(_ path: String) throws {
        handle = try FileHandle(forUpdating: URL(filePath: path))
        file = DescriptorFile(descriptor: handle.fileDescriptor, path: path)
    }

    func getSize(_ size: inout Int64) -> Int32 { failure ?? file.getSize(&size) }
    func read(into buffer: UnsafeMutableRawPointer, count: Int, offset: Int64) -> Int32 {
        file.read(into: buffer, count: count, offset: offset)
    }
    func write(_ content: UnsafeRawPointer, count: Int, offset: Int64) -> Int32 {
        file.write(content, count: count, offset: offset)
    }
    func truncate(to size: Int64) -> Int32 { file.truncate(to: size) }
    func sync() -> Int32 { file.sync() }
    func close() -> Int32 { 0 }
}
