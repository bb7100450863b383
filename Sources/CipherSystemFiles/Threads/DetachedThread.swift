internal import CCipherSystem
package import CipherErrors
internal import CipherPlatform

/// A thread that runs one closure.
///
/// It is used for work that may block: a dispatch queue has a limited number of threads, and on Apple platforms these
/// have half a megabyte of stack, which may be too little for SQLite's parser.
package enum DetachedThread {
    private static let stackSize = 4 << 20

    /// The closure while it is passed through C.
    private final class Work: Sendable {
        let body: @Sendable () -> Void

        init(_ body: @escaping @Sendable () -> Void) {
            self.body = body
        }
    }

    /// Starts `body` on a new thread.
    ///
    /// `body` runs within the same jobs as the code that starts the thread.
    ///
    /// - Parameters:
    ///   - name: The name of the thread, for debuggers; Linux shows its first 15 bytes.
    ///   - isAwaited: Whether the thread that starts the new thread waits for it.
    /// - Throws: ``StoreError`` with the code `inputOutput` if the system cannot start a thread; `body` does not run
    ///   then.
    package static func start(
        _ name: String, isAwaited: Bool = false, _ body: @escaping @Sendable () -> Void
    ) throws(StoreError) {
        let (jobs, starter) = (EnclosingJobs.current, EnclosingJobs.thisThread)
        let within: @Sendable () -> Void = {
            EnclosingJobs.$current.withValue(isAwaited ? jobs.handedOn(from: starter) : jobs, operation: body)
        }
        let work = Unmanaged.passRetained(Work(within))
        let result = cs_thread_start("CipherStore \(name)", stackSize, work.toOpaque()) { work in
            guard let work else { return }
            Unmanaged<Work>.fromOpaque(work).takeRetainedValue().body()
        }
        guard result == 0 else {
            work.release()
            throw StoreError(
                .inputOutput, "a thread could not be started: \(String(cString: strerror(result)))",
                advice: "check the limits on processes and memory, and try again")
        }
    }
}
