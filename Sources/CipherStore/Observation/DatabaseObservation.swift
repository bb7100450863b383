internal import CipherSQLite

/// The values of a closure that reads the database: the present value, and a new value after each commit that may
/// change it.
///
/// ```swift
/// for try await chats in store.observe({ db in try db.rows(Chat.self, "SELECT * FROM chat ORDER BY id") }) {
///     show(chats)
/// }
/// ```
///
/// Each value is read from a consistent snapshot of the database. It is read when it is requested, so a slow consumer
/// receives the latest value and skips the values in between. Several tasks may iterate over the same observation
/// independently. The observation ends with the first error, when the store is closed, or when the task is canceled.
/// While the store is suspended, the observation waits.
public struct DatabaseObservation<Output: Sendable>: AsyncSequence, Sendable {
    let store: EncryptedStore
    let isSame: @Sendable (Output, Output) -> Bool
    let body: @Sendable (Connection) throws -> Output

    /// Starts to observe.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(observation: self, changes: store.changes.signal(of: .everything, isChanged: true))
    }

    /// An iterator over an observation, for one task.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let observation: DatabaseObservation
        /// `nil` once the observation has ended.
        fileprivate var changes: ChangeSignal?
        private var latest: Output?

        fileprivate init(observation: DatabaseObservation, changes: ChangeSignal) {
            self.observation = observation
            self.changes = changes
        }

        /// Returns the next value as soon as there is one; `nil` after the task was canceled.
        ///
        /// - Throws: Any error thrown by the closure; ``DatabaseError``, with `SQLITE_READONLY` if it tries to write;
        ///   ``StoreError``, with the code `closed` after the store was closed.
        public mutating func next() async throws -> Output? {
            guard let changes else { return nil }
            do {
                while true {
                    try await changes.wait()
                    // If the store is suspended, the signal comes when it is resumed.
                    guard let value = try await observation.store.read(telling: changes, observation.body) else {
                        continue
                    }
                    if let latest, observation.isSame(latest, value) { continue }
                    latest = value
                    return value
                }
            } catch {
                self.changes = nil
                if error is CancellationError, Task.isCancelled { return nil }
                throw error
            }
        }
    }
}

/// The commits that touch some tables; see ``EncryptedStore/changes(in:)``.
public struct TableChanges: AsyncSequence, Sendable {
    let store: EncryptedStore
    let tables: [String]

    /// Starts to observe commits.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(
            sequence: self, changes: store.changes.signal(of: TableAccess(tables: tables), isChanged: false))
    }

    /// An iterator over the commits, for one task.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let sequence: TableChanges
        /// `nil` once the sequence has ended.
        fileprivate var changes: ChangeSignal?
        private var isChecked = false

        fileprivate init(sequence: TableChanges, changes: ChangeSignal) {
            self.sequence = sequence
            self.changes = changes
        }

        /// Returns after the next commit that touches the tables; `nil` after the task was canceled.
        ///
        /// - Throws: ``StoreError``, with the code `misuse` if the database has no such table, and `closed` after the
        ///   store was closed.
        public mutating func next() async throws -> Void? {
            guard let changes else { return nil }
            do {
                while true {
                    if !isChecked { isChecked = try await sequence.store.checkTables(sequence.tables) }
                    try await changes.wait()
                    if isChecked { return () }
                }
            } catch {
                self.changes = nil
                if error is CancellationError, Task.isCancelled { return nil }
                throw error
            }
        }
    }
}
