internal import CipherErrors
internal import CipherPlatform
internal import Dispatch

/// Watches files and reports when they are written.
///
/// The report is only a hint: on a network file system, the system may report nothing. The corresponding C functions
/// are `inotify_add_watch` on Linux and `kqueue` on Apple's systems.
package final class FileWatch: Sendable {
    private struct State {
        var sources: [any DispatchSourceProtocol] = []
        var isBegun = false
        var isEnded = false
        /// Whether `changed` is running, and whether a change happened in the meantime.
        var isTelling = false
        var isAgain = false
    }

    // Unchecked, but thread-safe: read and written only under `lock`.
    private nonisolated(unsafe) var state = State()
    private let lock = Lock()
    private let queue = DispatchQueue(label: "CipherStore file watch", qos: .utility)

    package init() {}

    /// Begins to watch; a second call does nothing.
    ///
    /// - Parameters:
    ///   - paths: The paths of existing files; other paths are ignored. On Apple's systems each file is opened and
    ///     closed, which drops this process's locks on it, so do not watch a database.
    ///   - changed: Called on another thread after a change, and again only after it has called the function that is
    ///     passed to it.
    package func begin(_ paths: [String], changed: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void) {
        lock.withLock {
            guard !state.isBegun else { return }
            state.isBegun = true
            guard !state.isEnded else { return }
            state.sources = Self.sources(paths, queue) { [weak self] in self?.tell(changed) }
            for source in state.sources { source.resume() }
        }
    }

    /// Ends the watch for good.
    package func end() {
        let sources = lock.withLock { () -> [any DispatchSourceProtocol] in
            state.isEnded = true
            defer { state.sources = [] }
            return state.sources
        }
        for source in sources { source.cancel() }
    }

    deinit { end() }

    private func tell(_ changed: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void) {
        let isFirst = lock.withLock { () -> Bool in
            state.isAgain = state.isTelling
            defer { state.isTelling = true }
            return !state.isTelling
        }
        guard isFirst else { return }
        changed { [weak self] in
            guard let self else { return }
            let isAgain = lock.withLock { () -> Bool in
                state.isTelling = false
                defer { state.isAgain = false }
                return state.isAgain && !state.isEnded
            }
            if isAgain { queue.async { [weak self] in self?.tell(changed) } }
        }
    }

    #if canImport(Darwin)
        private static func sources(
            _ paths: [String], _ queue: DispatchQueue, _ changed: @escaping @Sendable () -> Void
        ) -> [any DispatchSourceProtocol] {
            paths.compactMap { path in
                let descriptor = path.withSystemPath { open($0, O_EVTONLY | O_NOFOLLOW | O_CLOEXEC) }
                guard descriptor >= 0 else { return nil }
                let source = DispatchSource.makeFileSystemObjectSource(
                    fileDescriptor: descriptor, eventMask: [.write, .extend], queue: queue)
                source.setEventHandler(handler: changed)
                source.setCancelHandler { close(descriptor) }
                return source
            }
        }
    #else
        private static func sources(
            _ paths: [String], _ queue: DispatchQueue, _ changed: @escaping @Sendable () -> Void
        ) -> [any DispatchSourceProtocol] {
            let descriptor = inotify_init1(Int32(IN_CLOEXEC | IN_NONBLOCK))
            guard descriptor >= 0 else { return [] }
            for path in paths {
                _ = path.withSystemPath { inotify_add_watch(descriptor, $0, UInt32(IN_MODIFY | IN_DONT_FOLLOW)) }
            }
            let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
            source.setEventHandler {
                // The kind of change does not matter, only that there was one.
                withUnsafeTemporaryAllocation(byteCount: 4_096, alignment: 8) { buffer in
                    while read(descriptor, buffer.baseAddress, buffer.count) > 0 {}
                }
                changed()
            }
            source.setCancelHandler { close(descriptor) }
            return [source]
        }
    #endif
}
