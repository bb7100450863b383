internal import CipherErrors
internal import CipherSQLite
internal import CipherSystemFiles

/// A check of a store's database, one piece after the other: ``EncryptedStore/integrityCheck()``.
///
/// Each piece is read when it is asked for, on its own connection that takes the place of one reader and is closed
/// again. Between the pieces nothing is held: an app asks for the next one when it is idle, and each is of its own
/// moment.
public struct IntegrityCheck: AsyncSequence, Sendable {
    let store: EncryptedStore

    /// What was found in one piece.
    public struct Slice: Sendable, Equatable {
        /// What a piece is.
        public enum Part: Sendable, Equatable {
            /// Whether every page of the file, used or not, is authentic; where the file is encrypted and the engine can tell.
            case pages
            /// The schema, and the list of free pages.
            case schema
            /// A table with its indexes.
            case table(String)
            /// Everything at once: engines before SQLite 3.33 check no table alone.
            case structure
        }

        /// What was checked.
        public let part: Part
        /// What is wrong, as the engine says it: names of tables and indexes, no values; at most 100 messages.
        public let complaints: [String]
        /// Why the piece could not be checked, such as a function of the app that an index computes with.
        public let unchecked: String?
        /// The number of the piece, from 1.
        public let number: Int
        /// How many pieces there were when the check began.
        public let count: Int

        /// Whether nothing is wrong.
        public var isSound: Bool { complaints.isEmpty }
    }

    /// The iterator of one task over the check.
    public struct Iterator: AsyncIteratorProtocol {
        private let store: EncryptedStore
        private var parts: [Piece]?
        private var done = 0

        init(_ store: EncryptedStore) {
            self.store = store
        }

        /// Checks the next piece; `nil` after the last.
        ///
        /// - Throws: ``StoreError`` with `closed` or `suspended`; ``DatabaseError`` where the database is busy or memory is
        ///   short; `CancellationError`. The same piece is next then.
        public mutating func next() async throws -> Slice? {
            let parts: [Piece]
            if let known = self.parts { parts = known } else { parts = try await store.checking(Piece.all) }
            self.parts = parts
            guard done < parts.count else { return nil }
            let piece = parts[done]
            var found = try await store.checking(piece.findings)
            if piece.part == .pages, !found.complaints.isEmpty {
                // A checkpoint may have been writing the page; none begins while nobody else can commit.
                found = try await store.checking(holdingWriters: true, piece.findings)
            }
            done += 1
            return Slice(
                part: piece.part, complaints: found.complaints, unchecked: found.unchecked, number: done,
                count: parts.count)
        }
    }

    /// A new iterator over the check.
    public func makeAsyncIterator() -> Iterator { Iterator(store) }
}

extension EncryptedStore {
    /// Checks the database in pieces, for moments in which the app is idle.
    ///
    /// ```swift
    /// for try await slice in store.integrityCheck() {
    ///     if !slice.isSound { report(slice.complaints) }
    /// }
    /// ```
    ///
    /// First every page is authenticated, in one piece; then come the schema, and each table with its indexes. What is wrong
    /// ends nothing: it is in the slice. A table that is dropped meanwhile has nothing wrong. A store in memory, or one that
    /// only reads, is not checked: the first slice throws ``StoreError`` with `misuse`.
    public func integrityCheck() -> IntegrityCheck { IntegrityCheck(store: self) }

    /// Runs `body` on its own connection in the place of a reader, or of the writer: one that met a damaged page runs
    /// nothing more.
    fileprivate func checking<Output: Sendable>(
        holdingWriters: Bool = false, _ body: @escaping @Sendable (Connection) throws -> Output
    ) async throws -> Output {
        let connections = try ownConnections()
        return try await (holdingWriters ? writer : readers).run(.outside) { idle in
            if holdingWriters { try idle.execute("BEGIN IMMEDIATE") }
            defer { if holdingWriters { try? idle.execute("ROLLBACK") } }
            let connection = try connections.reader()
            defer { connection.close() }
            connection.setProgressHandler(every: 1_000) { !idle.isCancelled() }
            do {
                try connection.pinSnapshot()
                return try body(connection)
            } catch  where idle.isCancelled() {
                throw CancellationError()
            }
        }
    }
}

/// A piece of the check.
private struct Piece: Sendable {
    let part: IntegrityCheck.Slice.Part
    /// What checks it.
    let check: SQL

    /// The pieces that the database has now.
    static func all(_ connection: Connection) throws -> [Piece] {
        var pieces: [Piece] = []
        if connection.hasKey, Engine.current.hasCipherIntegrityCheck {
            pieces.append(Piece(part: .pages, check: "PRAGMA cipher_integrity_check"))
        }
        guard Engine.current.checksTables else {
            return pieces + [Piece(part: .structure, check: "PRAGMA main.integrity_check(100)")]
        }
        // The free pages are checked with the schema table.
        pieces.append(Piece(part: .schema, check: "PRAGMA main.integrity_check(sqlite_master)"))
        try connection.forEachRow(
            "SELECT name FROM main.sqlite_master WHERE type = 'table' AND rootpage > 0 ORDER BY rowid"
        ) { row in
            let name = try row.get(SchemaName.self, at: 0)
            pieces.append(
                Piece(part: .table("\(name)"), check: "PRAGMA main.integrity_check(\(name))"))
        }
        return pieces
    }

    /// Runs the check.
    func findings(_ connection: Connection) throws -> (complaints: [String], unchecked: String?) {
        var complaints: [String] = []
        do {
            try connection.forEachRow(check) { row in
                let message = try row.get(String.self, at: 0)
                if message != "ok", complaints.count < Self.limit { complaints.append(message) }
            }
            return (complaints, nil)
        } catch let error as DatabaseError where error.isBusy || error.isOutOfMemory || error.isInterrupted {
            throw error
        } catch let error as DatabaseError where error.code == DatabaseError.generic {
            // A table that was dropped meanwhile has nothing wrong.
            return (complaints, error.message.hasPrefix("no such table") ? nil : error.message)
        } catch let error as DatabaseError {
            return (complaints + ["the check ended early: \(error.message)"], nil)
        }
    }

    private static let limit = 100
}
