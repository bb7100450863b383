internal import CCipherEngine
internal import CipherSystemFiles

extension Connection {
    /// Has statements wait for other connections' locks up to the busy timeout, or until ``isCancelled``.
    ///
    /// Waits as `sqlite3_busy_timeout` does, which asks no one meanwhile. The corresponding C function is
    /// `sqlite3_busy_handler`.
    func waitForLocks() {
        sqlite3_busy_handler(
            handle,
            { context, tries in
                guard let context else { return 0 }
                let connection = Unmanaged<Connection>.fromOpaque(context).takeUnretainedValue()
                if connection.waitingSince == nil { connection.waitingSince = .now }
                let pause = Connection.pause(after: Int(tries), within: Int(connection.busyTimeout.inMilliseconds))
                guard pause > 0, !connection.isCancelled() else { return 0 }
                sqlite3_sleep(Int32(pause))
                return 1
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    /// Runs `body`, and tells how long it waited for locks, from the first one that another connection had.
    package func measuringWaits<Result>(_ tell: (Duration) -> Void, _ body: () throws -> Result) rethrows -> Result {
        waitingSince = nil
        defer { if let waitingSince { tell(waitingSince.duration(to: .now)) } }
        return try body()
    }

    /// Runs `body` while no statement waits for a lock.
    func withoutWaiting<Result>(_ body: () throws -> Result) rethrows -> Result {
        let before = isCancelled
        isCancelled = { true }
        defer { isCancelled = before }
        return try body()
    }

    /// How long to wait before the next try, in milliseconds; none where the time is over.
    private static func pause(after tries: Int, within timeout: Int) -> Int {
        let pauses = [1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50]
        let spent = pauses.prefix(tries).reduce(0, +) + max(0, tries - pauses.count) * 100
        return min(tries < pauses.count ? pauses[tries] : 100, timeout - spent)
    }
}
