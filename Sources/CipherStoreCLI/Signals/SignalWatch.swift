internal import CCipherSystem
internal import CipherPlatform
internal import CipherSystemFiles

/// How the process handles signals.
enum SignalWatch {
    /// Makes a write to a closed pipe, or beyond the file size limit, fail with an error instead of ending the
    /// process.
    static func ignoreBrokenOutputs() {
        _ = signal(SIGPIPE, SIG_IGN)
        _ = signal(SIGXFSZ, SIG_IGN)
    }

    /// The first signal since ``cancel(_:)`` that asked the process to end.
    static var received: Int32? { state.withLock { state.received } }

    /// A descriptor that becomes readable at the first such signal, for a thread that waits for something else too; -1
    /// before ``cancel(_:)``.
    static var alarm: Int32 { state.withLock { state.alarm[0] } }

    /// Makes the first SIGINT, SIGTERM or SIGHUP cancel the upgrade, which then leaves the file as it was; a second
    /// signal ends the process at once, and the next run cleans up.
    ///
    /// Must be called before any other thread is started, so that the signals are blocked in all of them. A signal that
    /// the caller ignores, as `nohup` does, stays ignored.
    ///
    /// - Throws: ``StoreError`` if the system cannot start the thread that waits for signals.
    static func cancel(_ cancellation: UpgradeCancellation) throws {
        var signals = sigset_t()
        sigemptyset(&signals)
        for number in [SIGINT, SIGTERM, SIGHUP] where !isIgnored(number) { sigaddset(&signals, number) }
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        state.withLock { _ = cs_pipe(&state.alarm) }
        let watched = signals
        try DetachedThread.start("signals") {
            var watched = watched
            while true {
                var number: Int32 = 0
                guard sigwait(&watched, &number) == 0 else { return }
                guard state.note(number) else { end(by: number) }
                cancellation.cancel()
                // The end of a pipe wakes everyone who waits for it.
                state.withLock { _ = close(state.alarm[1]) }
            }
        }
    }

    private static func isIgnored(_ number: Int32) -> Bool {
        guard let before = signal(number, SIG_DFL) else { return false }
        // Handlers are addresses, and SIG_IGN is the number 1.
        guard unsafeBitCast(before, to: Int.self) == 1 else { return false }
        _ = signal(number, SIG_IGN)
        return true
    }

    private static func end(by number: Int32) -> Never {
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, number)
        _ = signal(number, SIG_DFL)
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
        raise(number)
        _exit(128 + number)
    }

    private static let state = State()

    private final class State: @unchecked Sendable {
        // Everything that changes is read and written only under `lock`.
        var received: Int32?
        /// The two ends of a pipe.
        var alarm: [Int32] = [-1, -1]
        private let lock = Lock()

        func withLock<Result>(_ body: () -> Result) -> Result { lock.withLock(body) }

        /// Records a signal, and returns whether it is the first one.
        func note(_ number: Int32) -> Bool {
            lock.withLock {
                guard received == nil else { return false }
                received = number
                return true
            }
        }
    }
}
