// The same notes app as in Notes, but on GRDB, without encryption. It is not a target of this package, because GRDB is
// not fetched. Only its lines are counted; it was built and run once with GRDB 7.8.

import Foundation
import GRDB

struct Notebook: Codable, Equatable, FetchableRecord, MutablePersistableRecord {
    var id: Int64?
    var name: String

    mutating func didInsert(_ inserted: InsertionSuccess) {
        id = inserted.rowID
    }
}

struct Note: Codable, Equatable, FetchableRecord, MutablePersistableRecord {
    static let notebook = belongsTo(Notebook.self)
    var id: Int64?
    var notebookId: Int64
    var title: String
    var body: String
    var tags: [String] = []
    var changed = Date(timeIntervalSince1970: 1_790_000_000)

    mutating func didInsert(_ inserted: InsertionSuccess) {
        id = inserted.rowID
    }
}

/// A row in the list of notes.
struct Entry: Codable, Equatable, FetchableRecord {
    var title: String
    var notebook: Notebook
}

/// The operations of the app.
struct Notes: Sendable {
    let pool: DatabasePool

    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("notes") { db in
            try db.create(table: "notebook") { t in
                t.autoIncrementedPrimaryKey("id")
                t.column("name", .text).notNull().unique()
            }
            try db.create(table: "note") { t in
                t.autoIncrementedPrimaryKey("id")
                t.belongsTo("notebook", onDelete: .cascade).notNull()
                t.column("title", .text).notNull()
                t.column("body", .text).notNull()
                t.column("tags", .jsonText).notNull()
                t.column("changed", .datetime).notNull()
            }
            try db.create(virtualTable: "search", using: FTS5()) { t in
                t.synchronize(withTable: "note")
                t.column("title")
                t.column("body")
            }
        }
        return migrator
    }

    init(in folder: URL) throws {
        pool = try DatabasePool(path: folder.appending(path: "notes.db").path)
        try Self.migrator.migrate(pool)
    }

    func add(_ notebook: Notebook) async throws -> Notebook {
        try await pool.write { db in try notebook.inserted(db) }
    }

    func add(_ note: Note) async throws -> Note {
        try await pool.write { db in try note.inserted(db) }
    }

    func update(_ note: Note) async throws {
        try await pool.write { db in try note.update(db) }
    }

    /// Merges new and changed notes from another device.
    func merge(_ notes: [Note]) async throws {
        try await pool.write { db in
            for var note in notes { try note.upsert(db) }
        }
    }

    func delete(_ note: Note) async throws {
        _ = try await pool.write { db in try note.delete(db) }
    }

    func all() async throws -> [Note] {
        try await pool.read { db in try Note.order(Column("title")).fetchAll(db) }
    }

    func notes(_ ids: [Int64]) async throws -> [Note] {
        try await pool.read { db in try Note.filter(keys: ids).order(Column("id")).fetchAll(db) }
    }

    func entries() async throws -> [Entry] {
        try await pool.read { db in
            try Note.including(required: Note.notebook).order(Column("title")).asRequest(of: Entry.self).fetchAll(db)
        }
    }

    func search(_ text: String) async throws -> [Note] {
        guard let pattern = FTS5Pattern(matchingAllPrefixesIn: text) else { return [] }
        return try await pool.read { db in
            try SQLRequest<Note>(
                """
                SELECT note.* FROM note JOIN search ON search.rowid = note.id
                WHERE search MATCH \(pattern) ORDER BY rank
                """
            ).fetchAll(db)
        }
    }

    func titles() -> some AsyncSequence<[String], any Error> {
        ValueObservation.tracking { db in try String.fetchAll(db, sql: "SELECT title FROM note ORDER BY title") }
            .removeDuplicates().values(in: pool)
    }

    func backUp(to file: URL) async throws {
        try pool.backup(to: DatabaseQueue(path: file.path))
    }

    func export(to file: URL) async throws {
        try JSONEncoder().encode(try await all()).write(to: file)
    }
}
