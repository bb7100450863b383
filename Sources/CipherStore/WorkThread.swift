internal import Foundation

/// Threads for work that may take long or block, which Swift's own must not.
package enum WorkThread {
    /// Runs `body` on a new thread.
    ///
    /// - Parameter name: What whoever looks at the process's threads sees.
    package static func start(_ name: String, _ body: @escaping @Sendable () -> Void) {
        let thread = Thread(block: body)
        thread.name = name
        // SQLite's parser wants more than the half megabyte that threads get on Apple platforms.
        thread.stackSize = 4 << 20
        thread.start()
    }
}
