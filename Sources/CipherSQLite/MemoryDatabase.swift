internal import CCipherEngine

/// A database in memory that outlives its connections, of which there is one at a time.
package final class MemoryDatabase: @unchecked Sendable {
    // Used by one connection at a time, which whoever opens it sees to.
    private let file: OverlayFile

    /// An empty one.
    package init() throws {
        file = try OverlayFile(over: nil, OverlayBudget(.max))
    }

    /// Opens a connection; the one before must be closed.
    ///
    /// - Parameter profile: How it is set up.
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
