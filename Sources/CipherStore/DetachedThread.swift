internal import CSystemShims
internal import CipherSQLite

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// A thread that runs one closure.
///
/// For what may block: a dispatch queue has only so many threads, and those have half a megabyte of stack on Apple
/// platforms, which SQLite's parser may not fit into.
package enum DetachedThread {
    private static let stackSize = 4 << 20

    /// Tells others that the work is done: the last thing that happens on the thread, which by then uses libcrypto no
    /// more.
    package typealias Announcement = () -> Void

    /// The closure on its way through C.
    private final class Work: Sendable {
        private let body: @Sendable () -> Announcement

        init(_ body: @escaping @Sendable () -> Announcement) {
            self.body = body
        }

        func run() {
            let announce = body()
            LibcryptoThread.end()
            announce()
        }
    }

    /// Starts `body` on a new thread.
    ///
    /// - Parameters:
    ///   - name: For debuggers; Linux shows 15 bytes of it.
    ///   - body: The work; the process may end as soon as what it returns has run.
    /// - Throws: ``StoreError`` with `inputOutput` where the system has no thread to give; `body` does not run then.
    package static func start(_ name: String, _ body: @escaping @Sendable () -> Announcement) throws(StoreError) {
        let work = Unmanaged.passRetained(Work(body))
        let result = cs_thread_start("CipherStore \(name)", stackSize, work.toOpaque()) { work in
            guard let work else { return }
            Unmanaged<Work>.fromOpaque(work).takeRetainedValue().run()
        }
        guard result == 0 else {
            work.release()
            throw StoreError(
                .inputOutput, "no thread can be started: \(String(cString: strerror(result)))",
                advice: "see to the limits of processes and memory, and try again")
        }
    }
}
