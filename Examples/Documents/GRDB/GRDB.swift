// swift-format-ignore-file
// A stand-in for GRDB, for compiling the documents' blocks. It declares the calls that the blocks make, as GRDB 7 does.
import AppSQLite
public import Foundation

public struct DatabaseError: Error { public let message: String }

public final class Database {
    let handle: OpaquePointer?

    init(path: String) throws {
        var opened: OpaquePointer?
        guard sqlite3_open(path, &opened) == SQLITE_OK else { throw DatabaseError(message: "cannot open \(path)") }
        handle = opened
    }

    deinit { sqlite3_close(handle) }

    public func usePassphrase(_ passphrase: Data) throws {
        let code = passphrase.withUnsafeBytes { sqlite3_key(handle, $0.baseAddress, Int32($0.count)) }
        guard code == SQLITE_OK else { throw DatabaseError(message: "the key was refused") }
    }
}

public struct Configuration {
    var setup: (@Sendable (Database) throws -> Void)?

    public init() {}

    public mutating func prepareDatabase(_ setup: @escaping @Sendable (Database) throws -> Void) {
        self.setup = setup
    }
}

public final class DatabasePool {
    public init(path: String, configuration: Configuration = Configuration()) throws {
        let database = try Database(path: path)
        try configuration.setup?(database)
        guard sqlite3_exec(database.handle, "SELECT count(*) FROM chat", nil, nil, nil) == SQLITE_OK else {
            throw DatabaseError(message: String(cString: sqlite3_errmsg(database.handle)))
        }
    }
}
