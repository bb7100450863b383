// A notes app on a store: a schema, writing and reading values, a search, an observation, a backup and an export. The
// same app on GRDB is in NotesWithGRDB. Scripts/examples counts the lines of both.

import CipherStore
import Foundation

struct Notebook: Codable, Equatable, Sendable {
    var id: Int64?
    var name: String
}

struct Note: Codable, Equatable, Sendable {
    var id: Int64?
    var notebookId: Int64
    var title: String
    var body: String
    var tags: [String] = []
    var changed = Date(timeIntervalSince1970: 1_790_000_000)
}

/// A row in the list of notes.
struct Entry: Codable, Equatable, Sendable {
    var title: String
    var notebook: Notebook
}

/// The operations of the app.
struct Notes: Sendable {
    let store: EncryptedStore

    static let schema = MigrationSteps(
        baseline: .sql([
            "CREATE TABLE notebook(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
            """
            CREATE TABLE note(
                id INTEGER PRIMARY KEY, notebookId INTEGER NOT NULL REFERENCES notebook(id) ON DELETE CASCADE,
                title TEXT NOT NULL, body TEXT NOT NULL, tags TEXT NOT NULL, changed REAL NOT NULL)
            """,
            "CREATE INDEX note_notebookId ON note(notebookId)",
            "CREATE VIRTUAL TABLE search USING fts5(title, body, content = note, content_rowid = id)",
            """
            CREATE TRIGGER note_inserted AFTER INSERT ON note BEGIN
                INSERT INTO search(rowid, title, body) VALUES (new.id, new.title, new.body);
            END
            """,
            """
            CREATE TRIGGER note_deleted AFTER DELETE ON note BEGIN
                INSERT INTO search(search, rowid, title, body) VALUES ('delete', old.id, old.title, old.body);
            END
            """,
            """
            CREATE TRIGGER note_updated AFTER UPDATE ON note BEGIN
                INSERT INTO search(search, rowid, title, body) VALUES ('delete', old.id, old.title, old.body);
                INSERT INTO search(rowid, title, body) VALUES (new.id, new.title, new.body);
            END
            """,
        ]))

    init(in folder: URL) async throws {
        let configuration = Configuration(databaseName: "notes.db", version: 1, schema: .steps(Self.schema))
        let key = folder.appending(path: "key").path
        store = try await .open(configuration, directory: folder, keyProvider: .file(key, createIfMissing: true))
    }

    func add(_ notebook: Notebook) async throws -> Notebook {
        try await store.write { db in try db.insert(notebook, into: "notebook", returning: Notebook.self) }
    }

    func add(_ note: Note) async throws -> Note {
        try await store.write { db in try db.insert(note, into: "note", returning: Note.self) }
    }

    func update(_ note: Note) async throws {
        try await store.write { db in try db.update(note, in: "note") }
    }

    /// Merges new and changed notes from another device.
    func merge(_ notes: [Note]) async throws {
        try await store.write { db in
            for note in notes { try db.upsert(note, into: "note") }
        }
    }

    func delete(_ note: Note) async throws {
        try await store.write { db in try db.delete(note, from: "note") }
    }

    func all() async throws -> [Note] {
        try await store.read { db in try db.rows("SELECT * FROM note ORDER BY title") }
    }

    func notes(_ ids: [Int64]) async throws -> [Note] {
        try await store.read { db in try db.rows("SELECT * FROM note WHERE id IN (\(list: ids)) ORDER BY id") }
    }

    func entries() async throws -> [Entry] {
        try await store.read { db in
            try db.rows(
                """
                SELECT note.title, notebook.id AS "notebook.id", notebook.name AS "notebook.name"
                FROM note JOIN notebook ON notebook.id = note.notebookId ORDER BY note.title
                """)
        }
    }

    func search(_ text: String) async throws -> [Note] {
        guard let pattern = FullTextPattern(allOf: text, completesLast: true) else { return [] }
        return try await store.read { db in
            try db.rows(
                """
                SELECT note.* FROM note JOIN search ON search.rowid = note.id
                WHERE search MATCH \(pattern) ORDER BY rank
                """)
        }
    }

    func titles() -> some AsyncSequence<[String], any Error> {
        store.observe { db in try db.values(String.self, "SELECT title FROM note ORDER BY title") }
    }

    func backUp(to file: URL) async throws {
        try await store.backup(to: file)
    }

    func export(to file: URL) async throws {
        try JSONEncoder().encode(try await all()).write(to: file)
    }
}
