internal import CipherPlatform

/// A lock that one thread holds at a time, and under which threads can wait for changes by other threads.
///
/// Foundation's locks would suffice, but on Linux any use of one links all of Foundation and its 34 MB of
/// internationalization data. The corresponding C functions are `pthread_mutex_lock`, `pthread_cond_wait` and related
/// ones.
package final class Lock: Sendable {
    // Unchecked, but thread-safe: the pointer never changes, and POSIX protects the object that it points to.
    private nonisolated(unsafe) let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    // Unchecked, but thread-safe for the same reason as `mutex`.
    private nonisolated(unsafe) let change = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    /// Creates an unlocked lock.
    package init() {
        mutex.initialize(to: pthread_mutex_t())
        change.initialize(to: pthread_cond_t())
        let results = (pthread_mutex_init(mutex, nil), Self.initialize(change))
        precondition(results == (0, 0), "a lock could not be created")
    }

    deinit {
        pthread_cond_destroy(change)
        pthread_mutex_destroy(mutex)
        change.deallocate()
        mutex.deallocate()
    }

    /// Holds the lock while `body` runs; `body` must not acquire it again.
    package func withLock<Result>(_ body: () throws -> Result) rethrows -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body()
    }

    /// Releases the lock until ``wakeAll()`` is called, and then acquires it again.
    ///
    /// Call this only within ``withLock(_:)``. It may return without a call to ``wakeAll()``, so check the condition
    /// again.
    package func wait() {
        pthread_cond_wait(change, mutex)
    }

    /// Waits as ``wait()`` does, and returns `false` if the deadline has passed.
    ///
    /// It returns at least once an hour.
    package func wait(until deadline: ContinuousClock.Instant) -> Bool {
        let left = ContinuousClock.now.duration(to: deadline)
        guard left > .zero else { return false }
        // The wait is at most an hour at a time, because C's time type may not be able to represent the deadline.
        let longest = Duration.seconds(3_600)
        let (seconds, attoseconds) = min(left, longest).components
        var time = timespec()
        #if canImport(Darwin)
            time.tv_sec = Int(seconds)
            time.tv_nsec = Int(attoseconds / Self.attosecondsInNanosecond)
            return pthread_cond_timedwait_relative_np(change, mutex, &time) == 0 || left > longest
        #else
            clock_gettime(CLOCK_MONOTONIC, &time)
            // One is added, because the wait must not end before the deadline.
            let nanoseconds = time.tv_nsec + Int(attoseconds / Self.attosecondsInNanosecond) + 1
            time.tv_sec += Int(seconds) + nanoseconds / 1_000_000_000
            time.tv_nsec = nanoseconds % 1_000_000_000
            return pthread_cond_timedwait(change, mutex, &time) == 0 || left > longest
        #endif
    }

    private static let attosecondsInNanosecond: Int64 = 1_000_000_000

    /// Makes waits use a clock that cannot be set.
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

    /// Wakes all waiting threads; they continue one by one, as the lock becomes free.
    package func wakeAll() {
        pthread_cond_broadcast(change)
    }
}
