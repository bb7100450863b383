internal import CipherPlatform
internal import CipherSQLite
internal import CipherSystemFiles

/// The threads that seal and write batches of pages for one file, as many as there are processors.
///
/// They are started when there is work and end with the file. If no thread has taken a batch, the caller that waits for
/// the batch seals it itself, because the system may be unable to start a thread. A dispatch queue would wait for a
/// thread forever.
// Unchecked, but thread-safe: mutable state is accessed only while `lock` is held, and the pages of a batch only by the
// thread that took the batch from `submitted`.
final class SealingThreads: @unchecked Sendable {
    /// Starts a thread that runs a closure; returns `false` if the system cannot start one.
    typealias ThreadStart = @Sendable (@escaping @Sendable () -> Void) -> Bool

    private let lock = Lock()
    private let disk: DescriptorFile
    private let keys: SealingKeys
    private let startThread: ThreadStart
    /// The batches that no thread has started to seal, in order of arrival.
    private var submitted: [PageBatch] = []
    private var sealing: [PageBatch] = []
    private var threads = 0
    private var idleThreads = 0
    private var threadsToStart = ProcessInfo.processInfo.activeProcessorCount
    private var hasEnded = false

    init(_ disk: DescriptorFile, _ keys: SealingKeys, _ startThread: @escaping ThreadStart) {
        self.disk = disk
        self.keys = keys
        self.startThread = startThread
    }

    /// Submits a batch to be sealed and written on another thread.
    ///
    /// - Parameter startsThread: Whether a thread may be started for the batch.
    func submit(_ batch: PageBatch, startsThread: Bool = true) {
        let isThreadWanted = lock.withLock {
            submitted.append(batch)
            lock.wakeAll()
            guard startsThread, submitted.count > idleThreads, threadsToStart > 0 else { return false }
            threadsToStart -= 1
            threads += 1
            return true
        }
        guard isThreadWanted, !startThread({ [self] in work() }) else { return }
        lock.withLock {
            threadsToStart = 0
            threads -= 1
        }
    }

    /// Waits until a batch is written, if it was submitted.
    ///
    /// - Parameter sealer: Seals the batch on this thread if no other thread has taken it.
    func settle(_ batch: PageBatch, with sealer: PageSealer) {
        let isMine = lock.withLock {
            if let place = submitted.firstIndex(where: { $0 === batch }) {
                submitted.remove(at: place)
                return true
            }
            while sealing.contains(where: { $0 === batch }) { lock.wait() }
            return false
        }
        if isMine { batch.seal(with: sealer, to: disk) }
    }

    /// Ends the threads and waits until they have ended; all batches must be settled.
    func end() {
        lock.withLock {
            hasEnded = true
            lock.wakeAll()
            while threads > 0 { lock.wait() }
        }
    }

    private func work() {
        // The contexts of the cryptographic library belong to one thread.
        let sealer = try? PageSealer(keys)
        while let batch = next() {
            batch.seal(with: sealer, to: disk)
            lock.withLock {
                sealing.removeAll { $0 === batch }
                lock.wakeAll()
            }
        }
        lock.withLock {
            threads -= 1
            lock.wakeAll()
        }
    }

    /// Waits for the next batch and returns it; `nil` at the end.
    private func next() -> PageBatch? {
        lock.withLock {
            idleThreads += 1
            defer { idleThreads -= 1 }
            while submitted.isEmpty {
                if hasEnded { return nil }
                lock.wait()
            }
            let batch = submitted.removeFirst()
            sealing.append(batch)
            return batch
        }
    }
}
