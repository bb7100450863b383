// swift-format-ignore-file
// A stand-in for SQLite.swift, for compiling the documents' blocks. It declares the calls that the blocks make, as the
// SQLCipher variant of SQLite.swift does.
import AppSQLite

public struct KeyRefused: Error { public let message: String }

public struct Blob {
    public let bytes: [UInt8]

    public init(bytes: [UInt8]) { self.bytes = bytes }
}

public final class Connection {
    private var handle: OpaquePointer?

    public init(_ filename: String = "", readonly: Bool = false) throws {
        guard sqlite3_open(filename, &handle) == SQLITE_OK else { throw KeyRefused(message: "cannot open \(filename)") }
    }

    deinit { sqlite3_close(handle) }

    public func key(_ key: Blob, db: String = "main") throws {
        guard sqlite3_key_v2(handle, db, key.bytes, Int32(key.bytes.count)) == SQLITE_OK,
            sqlite3_exec(handle, "SELECT count(*) FROM chat", nil, nil, nil) == SQLITE_OK
        else { throw KeyRefused(message: String(cString: sqlite3_errmsg(handle))) }
    }
}
