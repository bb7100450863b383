internal import CipherSQLite

/// The values of a closure that reads the database: the present one, and another after each commit that may change it.
///
/// ```swift
/// for try await chats in store.observe({ db in try db.rows(Chat.self, "SELECT * FROM chat ORDER BY id") }) {
///     show(chats)
/// }
/// ```
///
/// Each value is of one moment of the database. It is read when it is requested, so a slow consumer receives the latest
/// value and skips those in between. Several tasks may iterate over the same observation independently. It ends with
/// the first error, with the store, or when the task is cancelled. While the store is suspended it waits.
public struct DatabaseObservation<Output: Sendable>: AsyncSequence, Sendable {
    let store: EncryptedStore
    let isSame: @Sendable (Output, Output) -> Bool
    let body: @Sendable (Connection) throws -> Output

    /// Begins to observe.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(observation: self, changes: store.changes.signal(of: .everything, isChanged: true))
    }

    /// The iterator of one task over an observation.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let observation: DatabaseObservation
        /// `nil` once the observation has ended.
        fileprivate var changes: ChangeSignal?
        private var latest: Output?

        fileprivate init(observation: DatabaseObservation, changes: ChangeSignal) {
            self.observation = observation
            self.changes = changes
        }

        /// The next value, as soon as there is one; `nil` after the task was cancelled.
        ///
        /// - Throws: What the closure throws; ``DatabaseError``, with `SQLITE_READONLY` if it tries to write;
        ///   ``StoreError``, with `closed` after the store was closed.
        public mutating func next() async throws -> Output? {
            guard let changes else { return nil }
            do {
                while true {
                    try await changes.wait()
                    // The commits of a store that is suspended are told when it is resumed.
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

    /// Begins to observe commits, from now on.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(
            sequence: self, changes: store.changes.signal(of: TableAccess(tables: tables), isChanged: false))
    }

    /// The iterator of one task over the commits.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let sequence: TableChanges
        /// `nil` once it has ended.
        fileprivate var changes: ChangeSignal?
        private var isChecked = false

        fileprivate init(sequence: TableChanges, changes: ChangeSignal) {
            self.sequence = sequence
            self.changes = changes
        }

        /// Returns after the next commit that touches the tables; `nil` after the task was cancelled.
        ///
        /// - Throws: ``StoreError``, with `misuse` for a table that the database does not have, and with `closed` after the
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
