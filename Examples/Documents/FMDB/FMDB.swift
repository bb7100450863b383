// swift-format-ignore-file
// A stand-in for FMDB, for compiling the documents' blocks. It declares the calls that the blocks make, as Swift imports
// them from FMDB/SQLCipher.
import AppSQLite
public import Foundation

public final class FMDatabase {
    private var handle: OpaquePointer?

    init?(url: URL) {
        guard sqlite3_open(url.path, &handle) == SQLITE_OK else { return nil }
    }

    deinit { sqlite3_close(handle) }

    public func setKeyWithData(_ keyData: Data) -> Bool {
        keyData.withUnsafeBytes { sqlite3_key(handle, $0.baseAddress, Int32($0.count)) } == SQLITE_OK
            && sqlite3_exec(handle, "SELECT count(*) FROM chat", nil, nil, nil) == SQLITE_OK
    }
}

public final class FMDatabaseQueue {
    private let database: FMDatabase

    public init?(url: URL?) {
        guard let url, let database = FMDatabase(url: url) else { return nil }
        self.database = database
    }

    public func inDatabase(_ block: (FMDatabase) -> Void) {
        block(database)
    }
}
