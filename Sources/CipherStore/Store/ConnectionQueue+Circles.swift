internal import CipherErrors
internal import CipherSystemFiles

/// Something that a job's closure can wait for.
protocol Awaitable: AnyObject {
    /// Whether the wait can never end, because closures wait for each other.
    ///
    /// Called under the `circles` lock.
    ///
    /// - Parameter seen: The awaited objects that already depend on this one.
    func isStuck(_ seen: [any Awaitable]) -> Bool
}

/// The end of all jobs that run in some queues.
final class QueuesEnd: Awaitable {
    private let queues: [ConnectionQueue]

    init(_ queues: [ConnectionQueue]) {
        self.queues = queues
    }

    func isStuck(_ seen: [any Awaitable]) -> Bool {
        seen.contains { $0 === self } || queues.contains { $0.holdsStuckJob(seen + [self]) }
    }
}

/// The wait for a turn in the queue.
extension ConnectionQueue: Awaitable {
    /// Whether the closures on all its connections are stuck, or the job for which the queue is held is stuck.
    func isStuck(_ seen: [any Awaitable]) -> Bool {
        if seen.contains(where: { $0 === self }) { return true }
        if let holder { return holder.awaited?.isStuck(seen + [self]) == true }
        return running.count == capacity && running.allSatisfy { $0.awaited?.isStuck(seen + [self]) == true }
    }

    fileprivate func holdsStuckJob(_ seen: [any Awaitable]) -> Bool {
        running.contains { $0.awaited?.isStuck(seen) == true }
    }

    /// Blocks the calling thread until nothing runs in some queues of a store that accept no more jobs.
    static func waitForEnd(
        of queues: [ConnectionQueue], _ begin: (@escaping @Sendable () -> Void) -> Void
    ) throws {
        guard let queue = queues.first else { return }
        try waiting(for: QueuesEnd(queues), queue.identity, queue.path) { _ in
            let done = BlockingAnswer<Void>()
            begin { done.give(.success(())) }
            try done.wait()
        }
    }

    /// Runs `body`, which waits for an ``Awaitable`` of a store, and passes it the job whose closure calls this method.
    ///
    /// - Throws: ``StoreError`` with the code `misuse` if the closure would wait for itself.
    static func waiting<Output>(
        for awaited: any Awaitable, _ identity: StoreIdentity, _ path: String, _ body: (ConnectionJob?) throws -> Output
    ) throws -> Output {
        guard let caller = ConnectionWorker.currentJob else { return try body(nil) }
        guard !caller.holds(identity) else {
            throw StoreError(
                .misuse, path: path,
                "the store was called from a closure that it is running, so the call would never return",
                advice: "use the connection that was passed to the closure")
        }
        try note(caller, waitsFor: awaited, path)
        defer { circles.withLock { caller.awaited = nil } }
        return try body(caller)
    }

    /// Records what a job's closure waits for, unless the closure would wait forever.
    static func note(
        _ job: ConnectionJob, waitsFor awaited: any Awaitable, _ path: String, _ prepare: () -> Void = {}
    ) throws {
        try circles.withLock {
            prepare()
            job.awaited = awaited
            guard awaited.isStuck([]) else { return }
            job.awaited = nil
            throw StoreError(
                .misuse, path: path,
                "closures in different stores would wait for each other forever",
                advice:
                    "avoid using a store in another store's closure; if you must, always nest the stores in "
                    + "the same order"
            )
        }
    }
}
