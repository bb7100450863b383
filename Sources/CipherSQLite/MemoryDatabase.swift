internal import CCipherEngine

/// An in-memory database that outlives its connections; it has one connection at a time.
package final class MemoryDatabase: @unchecked Sendable {
    // The database is used by one connection at a time, which the code that opens the connections must ensure.
    private let file: OverlayFile

    /// Creates an empty database.
    package init() throws {
        file = try OverlayFile(over: nil, OverlayBudget(.max))
    }

    /// Opens a connection; the previous one must be closed.
    ///
    /// - Parameter profile: The settings of the connection.
    package func connect(_ profile: ConnectionProfile) throws -> Connection {
        let layer = try FileLayer { [file] flags in
            flags & SQLITE_OPEN_MAIN_DB != 0 ? file : try OverlayFile(over: nil, OverlayBudget(.max))
        }
        let connection = try Connection(path: ":memory:", mode: .create, through: layer)
        _ = try connection.value(String.self, "PRAGMA journal_mode = MEMORY")
        try profile.apply(to: connection)
        return connection
    }
}
