internal import CipherErrors
internal import CipherSQLite
internal import CipherSystemFiles

/// A check of a store's database in pieces, one after the other; see ``EncryptedStore/integrityCheck()``.
///
/// Each piece is checked when it is requested, on its own connection, which takes the place of one reader and is then
/// closed. Between pieces, no connection or lock is held, so an app can request the next one whenever it is idle. Each
/// piece is checked in the state that it has when it is requested.
public struct IntegrityCheck: AsyncSequence, Sendable {
    let store: EncryptedStore

    /// The result of checking one piece.
    public struct Slice: Sendable, Equatable {
        /// The part of the database that a piece covers.
        public enum Part: Sendable, Equatable {
            /// The authentication of every page of the file, used or unused; only if the file is encrypted and the
            /// engine can check it.
            case pages
            /// The schema, and the list of free pages.
            case schema
            /// A table with its indexes.
            case table(String)
            /// The whole database at once: SQLite before 3.33 cannot check a single table.
            case structure
        }

        /// The part that was checked.
        public let part: Part
        /// The problems that the engine reported, at most 100 messages; they name tables and indexes but contain no
        /// values.
        public let complaints: [String]
        /// The reason that the piece could not be checked, such as an unregistered function of the app that an index
        /// uses.
        public let unchecked: String?
        /// The number of the piece, starting with 1.
        public let number: Int
        /// The number of pieces when the check began.
        public let count: Int

        /// Whether no problem was found.
        public var isSound: Bool { complaints.isEmpty }
    }

    /// An iterator over the pieces, for one task.
    public struct Iterator: AsyncIteratorProtocol {
        private let store: EncryptedStore
        private var parts: [Piece]?
        private var done = 0

        init(_ store: EncryptedStore) {
            self.store = store
        }

        /// Checks the next piece and returns the result; `nil` after the last piece.
        ///
        /// - Throws: ``StoreError`` with the code `closed` or `suspended`; ``DatabaseError`` if the database is busy or
        ///   memory is short; `CancellationError`. After an error, the next call checks the same piece again.
        public mutating func next() async throws -> Slice? {
            let parts: [Piece]
            if let known = self.parts { parts = known } else { parts = try await store.checking(Piece.all) }
            self.parts = parts
            guard done < parts.count else { return nil }
            let piece = parts[done]
            var found = try await store.checking(piece.findings)
            if piece.part == .pages, !found.complaints.isEmpty {
                // A checkpoint may have been writing the page. No checkpoint begins while no other connection can
                // commit.
                found = try await store.checking(holdingWriters: true, piece.findings)
            }
            done += 1
            return Slice(
                part: piece.part, complaints: found.complaints, unchecked: found.unchecked, number: done,
                count: parts.count)
        }
    }

    /// Returns a new iterator over the check.
    public func makeAsyncIterator() -> Iterator { Iterator(store) }
}

extension EncryptedStore {
    /// Returns a check of the database in pieces, for times when the app is idle.
    ///
    /// ```swift
    /// for try await slice in store.integrityCheck() {
    ///     if !slice.isSound { report(slice.complaints) }
    /// }
    /// ```
    ///
    /// First every page is authenticated, in one piece; then the schema is checked, and then each table with its
    /// indexes. A problem does not end the check; it is reported in the slice. For a table that is dropped meanwhile,
    /// no problem is reported. An in-memory or read-only store cannot be checked: requesting the first slice throws
    /// ``StoreError`` with `misuse`.
    public func integrityCheck() -> IntegrityCheck { IntegrityCheck(store: self) }

    /// Runs `body` on a separate connection in place of a reader or the writer, because a connection that has met a
    /// damaged page must not be used again.
    fileprivate func checking<Output: Sendable>(
        holdingWriters: Bool = false, _ body: @escaping @Sendable (Connection) throws -> Output
    ) async throws -> Output {
        let connections = try ownConnections()
        return try await (holdingWriters ? writer : readers).run(.outside) { idle in
            if holdingWriters { try idle.execute("BEGIN IMMEDIATE") }
            defer { if holdingWriters { try? idle.execute("ROLLBACK") } }
            let connection = try connections.reader(.checking)
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
    /// The statement that checks the piece; `nil` for SQLCipher's check of all pages.
    let check: SQL?

    /// Returns the pieces of the database as it is now.
    static func all(_ connection: Connection) throws -> [Piece] {
        var pieces: [Piece] = []
        if connection.hasKey, Engine.current.hasCipherIntegrityCheck {
            pieces.append(Piece(part: .pages, check: nil))
        }
        guard Engine.current.checksTables else {
            return pieces + [Piece(part: .structure, check: "PRAGMA main.integrity_check(100)")]
        }
        // The free pages are checked together with the schema table.
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
        func collect(_ message: String) {
            if message != "ok", complaints.count < Self.limit { complaints.append(message) }
        }
        do {
            if let check {
                try connection.forEachRow(check) { collect(try $0.get(at: 0)) }
            } else {
                try connection.forEachUnauthenticPage(collect)
            }
            return (complaints, nil)
        } catch let error as DatabaseError where error.isBusy || error.isOutOfMemory || error.isInterrupted {
            throw error
        } catch let error as DatabaseError where error.code == DatabaseError.generic {
            // For a table that was dropped meanwhile, no problem is reported.
            return (complaints, error.message.hasPrefix("no such table") ? nil : error.message)
        } catch let error as DatabaseError {
            return (complaints + ["the check ended early: \(error.message)"], nil)
        }
    }

    private static let limit = 100
}
