internal import CCipherEngine

/// Interrupts the running statement of a connection from any thread.
// Unchecked, but thread-safe: `sqlite3_interrupt` may be called from any thread while the connection is open,
// which the owner ensures.
package struct Interrupter: @unchecked Sendable {
    fileprivate let handle: OpaquePointer

    package func interrupt() {
        sqlite3_interrupt(handle)
    }
}

extension Connection {
    /// A handle that makes the running statement fail with `SQLITE_INTERRUPT` from another thread.
    package var interrupter: Interrupter { Interrupter(handle: handle) }
}
