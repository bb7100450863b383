internal import CipherSQLite
import CipherTestSupport
import Foundation

/// The small databases that are damaged, each with a different part of the file format.
enum SeedDatabases {
    static let names = [
        "rollback", "log", "journal", "search", "keyed", "utf16", "vacuumed", "overflow",
    ]

    /// Writes one database as a killed app leaves it: with its `-wal` or its hot journal.
    static func write(_ name: String, to path: String) throws {
        try LegacyFile.write(path, unclosed: true) { try make(name, $0) }
    }

    private static func make(_ name: String, _ connection: Connection) throws {
        switch name {
        case "rollback": try connection.executeScript(text: "PRAGMA page_size = 512; \(tables) \(rows(300))")
        case "log":
            try connection.executeScript(text: "PRAGMA page_size = 1024; \(tables) \(rows(40))")
            _ = try connection.value(String.self, "PRAGMA journal_mode = WAL")
            try connection.executeScript(
                text: "PRAGMA wal_autocheckpoint = 0; \(rows(60)) DELETE FROM bare WHERE a % 3 = 0")
        case "journal":
            try connection.executeScript(
                text: "PRAGMA page_size = 512; \(tables) \(rows(200)) PRAGMA cache_size = 1; BEGIN;")
            // Exceeds the cache, so that the journal is hot and pages of the transaction are in the file.
            try connection.executeScript(
                text: "UPDATE item SET body = 'changed ' || body; \(rows(100)) DELETE FROM bare")
        case "search":
            try connection.executeScript(
                text: """
                    PRAGMA page_size = 1024; CREATE VIRTUAL TABLE search USING fts4(body); \(tables) \(rows(60))
                    INSERT INTO search SELECT body FROM item; CREATE VIRTUAL TABLE place USING rtree(id, x, y);
                    INSERT INTO place SELECT id, id, id + 1 FROM item; ANALYZE;
                    """)
        case "keyed":
            try connection.executeScript(
                text: """
                    PRAGMA page_size = 512; PRAGMA auto_vacuum = FULL;
                    CREATE TABLE pair(a TEXT, b INT, c BLOB, PRIMARY KEY(b DESC, a COLLATE NOCASE)) WITHOUT ROWID;
                    \(tables) \(rows(120)) INSERT INTO pair SELECT body, id, zeroblob(id) FROM item;
                    CREATE INDEX pair_by_c ON pair(c);
                    """)
        case "utf16":
            try connection.executeScript(
                text: "PRAGMA encoding = 'UTF-16le'; PRAGMA page_size = 1024; \(tables) \(rows(80))")
        case "vacuumed":
            try connection.executeScript(
                text:
                    "PRAGMA page_size = 512; PRAGMA auto_vacuum = INCREMENTAL; \(tables) \(rows(300)) DELETE FROM item WHERE id > 9"
            )
        default:
            try connection.executeScript(
                text: """
                    PRAGMA page_size = 512; \(tables) \(rows(20)); CREATE TABLE long(id INTEGER PRIMARY KEY, body, content BLOB);
                    INSERT INTO long SELECT id, hex(zeroblob(id * 400)), zeroblob(id * 300) FROM item;
                    CREATE INDEX long_by_body ON long(body); DELETE FROM long WHERE id % 2 = 0;
                    """)
        }
    }

    private static let tables = """
        PRAGMA user_version = 23; PRAGMA application_id = 99;
        CREATE TABLE item(id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT NOT NULL, at REAL CHECK (at >= 0), content BLOB);
        CREATE INDEX item_by_body ON item(body, at DESC); CREATE INDEX item_some ON item(at) WHERE id % 2 = 0;
        CREATE UNIQUE INDEX item_expression ON item(length(body) * 1000 + id); CREATE TABLE bare(a, b UNIQUE);
        CREATE TABLE plain(a); CREATE VIEW seen AS SELECT body FROM item; CREATE TABLE log(what);
        CREATE TRIGGER noted AFTER DELETE ON item BEGIN INSERT INTO log VALUES (old.id); END;
        """

    private static func rows(_ count: Int) -> String {
        """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(count))
        INSERT INTO item(body, at, content) SELECT 'message ' || i, i / 4.0, zeroblob(i % 40) FROM n;
        INSERT INTO bare SELECT id * 7 % 50, at || body || (SELECT count(*) FROM bare) || id FROM item;
        INSERT INTO plain(rowid, a) SELECT (SELECT count(*) FROM plain) + id * 3, body FROM item;
        """
    }
}
