#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// A lock that one thread at a time holds, and under which threads wait for what others change.
///
/// Foundation's locks would do, but on Linux whoever names one links all of Foundation and its 34 MB of
/// internationalization data.
/// The corresponding C functions are `pthread_mutex_lock`, `pthread_cond_wait` and their kin.
package final class Lock: Sendable {
    // Unchecked, and safe between threads: the pointer never changes, and POSIX guards what it points to.
    private nonisolated(unsafe) let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    // Unchecked, and safe between threads: as `mutex`.
    private nonisolated(unsafe) let change = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    /// A lock that no one holds.
    package init() {
        mutex.initialize(to: pthread_mutex_t())
        change.initialize(to: pthread_cond_t())
        let results = (pthread_mutex_init(mutex, nil), Self.initialize(change))
        precondition(results == (0, 0), "a lock cannot be created")
    }

    deinit {
        pthread_cond_destroy(change)
        pthread_mutex_destroy(mutex)
        change.deallocate()
        mutex.deallocate()
    }

    /// Holds the lock while `body` runs, which must not ask for it again.
    package func withLock<Result>(_ body: () throws -> Result) rethrows -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body()
    }

    /// Lets go of the lock until ``wakeAll()`` is called, and holds it again.
    ///
    /// Only within ``withLock(_:)``. It may return without that call, so look again at what was waited for.
    package func wait() {
        pthread_cond_wait(change, mutex)
    }

    /// Waits as ``wait()`` does, and returns whether it was woken; `false` once the deadline has passed.
    package func wait(until deadline: ContinuousClock.Instant) -> Bool {
        let left = ContinuousClock.now.duration(to: deadline)
        guard left > .zero else { return false }
        // An hour at once, for a deadline may lie beyond what C's type for times can say.
        let (seconds, attoseconds) = min(left, .seconds(3_600)).components
        var time = timespec()
        #if canImport(Darwin)
            time.tv_sec = Int(seconds)
            time.tv_nsec = Int(attoseconds / Self.attosecondsInNanosecond)
            return pthread_cond_timedwait_relative_np(change, mutex, &time) == 0
        #else
            clock_gettime(CLOCK_MONOTONIC, &time)
            // One more, for the wait is not to end before the deadline.
            let nanoseconds = time.tv_nsec + Int(attoseconds / Self.attosecondsInNanosecond) + 1
            time.tv_sec += Int(seconds) + nanoseconds / 1_000_000_000
            time.tv_nsec = nanoseconds % 1_000_000_000
            return pthread_cond_timedwait(change, mutex, &time) == 0
        #endif
    }

    private static let attosecondsInNanosecond: Int64 = 1_000_000_000

    /// Has waits measured by a clock that no one sets.
    private static func initialize(_ change: UnsafeMutablePointer<pthread_cond_t>) -> Int32 {
        #if canImport(Darwin)
            return pthread_cond_init(change, nil)
        #else
            var attributes = pthread_condattr_t()
            pthread_condattr_init(&attributes)
            defer { pthread_condattr_destroy(&attributes) }
            guard pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 else { return EINVAL }
            return pthread_cond_init(change, &attributes)
        #endif
    }

    /// Wakes all threads that wait; they continue one by one, as the lock becomes free.
    package func wakeAll() {
        pthread_cond_broadcast(change)
    }
}
