internal import CCipherEngine

/// Ends the running statement of a connection from any thread.
// Unchecked, and safe between threads: `sqlite3_interrupt` may be called from any while the connection is open, which the
// holder ensures.
package struct Interrupter: @unchecked Sendable {
    fileprivate let handle: OpaquePointer

    package func interrupt() {
        sqlite3_interrupt(handle)
    }
}

extension Connection {
    /// Makes the statement that runs in another thread fail with `SQLITE_INTERRUPT`.
    package var interrupter: Interrupter { Interrupter(handle: handle) }
}
