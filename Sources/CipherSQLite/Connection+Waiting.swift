internal import CCipherEngine
internal import CipherSystemFiles

extension Connection {
    /// Makes statements wait for other connections' locks until the busy timeout has passed or ``isCancelled`` returns
    /// `true`.
    ///
    /// The pauses are those of `sqlite3_busy_timeout`, which does not check for a cancellation between them. The
    /// corresponding C function is `sqlite3_busy_handler`.
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

    /// Runs `body`, and reports how long it waited for locks, from the first lock that another connection held.
    package func measuringWaits<Result>(_ tell: (Duration) -> Void, _ body: () throws -> Result) rethrows -> Result {
        waitingSince = nil
        defer { if let waitingSince { tell(waitingSince.duration(to: .now)) } }
        return try body()
    }

    /// Runs `body` without letting any statement wait for a lock.
    func withoutWaiting<Result>(_ body: () throws -> Result) rethrows -> Result {
        let before = isCancelled
        isCancelled = { true }
        defer { isCancelled = before }
        return try body()
    }

    /// Returns how long to wait before the next attempt, in milliseconds; 0 or less if the timeout has passed.
    private static func pause(after tries: Int, within timeout: Int) -> Int {
        let pauses = [1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50]
        let spent = pauses.prefix(tries).reduce(0, +) + max(0, tries - pauses.count) * 100
        return min(tries < pauses.count ? pauses[tries] : 100, timeout - spent)
    }
}
