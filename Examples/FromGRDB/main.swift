// An app on GRDB moves to a store. Its migrations continue where they left off, and its rows, dates, UUIDs, JSON and
// sort order of names stay the same. The file is as GRDB 7.8 writes it.

import AppSQLite
import CipherStore
import CipherStoreGRDB
import Foundation
import StoreSupport
import Support

let example = try Example("from GRDB")
// Two of the app's three migrations were applied. The file's index needs one of GRDB's collations.
try example.legacy(
    "app.sqlite",
    """
    CREATE TABLE grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY);
    INSERT INTO grdb_migrations VALUES('createPlayer');
    INSERT INTO grdb_migrations VALUES('addPhoto');
    CREATE TABLE "player" ("id" BLOB PRIMARY KEY NOT NULL, "name" TEXT NOT NULL COLLATE swiftLocalizedStandardCompare,
        "joined" DATETIME NOT NULL, "isActive" BOOLEAN NOT NULL, "scores" TEXT NOT NULL, "photo" BLOB, "page" TEXT);
    CREATE INDEX "player_name" ON "player"("name");
    INSERT INTO player VALUES(x'7d6a1c1e0f3b4e9e9e420c6b9a1d2f30', 'player10', '2023-11-14 22:13:20.125', 1, '[3,5]',
        x'00ff', 'https://example.org/ana');
    INSERT INTO player VALUES(x'11111111222233334444555555555555', 'player9', '1970-01-01 00:00:00.000', 0, '[]', NULL,
        NULL);
    """
) { database in
    // The same collation as GRDB registers.
    sqlite3_create_collation_v2(
        database, "swiftLocalizedStandardCompare", SQLITE_UTF8, nil,
        { _, leftCount, left, rightCount, right in
            let left = String(decoding: UnsafeRawBufferPointer(start: left, count: Int(leftCount)), as: UTF8.self)
            let right = String(decoding: UnsafeRawBufferPointer(start: right, count: Int(rightCount)), as: UTF8.self)
            return Int32(left.localizedStandardCompare(right).rawValue)
        }, nil)
}

// This was Codable, FetchableRecord, PersistableRecord.
struct Player: Codable, Equatable, Sendable {
    var id: UUID
    var name: String
    var joined: Date
    var isActive: Bool
    var scores: [Int]
    var photo: Data?
    var page: URL?
}

// This was a DatabaseMigrator. Each of its migrations is now a version, and the next one is written as another step.
var configuration = Configuration(
    databaseName: "app.sqlite", version: 4,
    recordedVersion: .migrations(.init(["createPlayer", "addPhoto", "addTeam"])),
    schema: .steps(
        MigrationSteps(
            baseline: .sql([
                """
                CREATE TABLE player (id BLOB PRIMARY KEY NOT NULL, name TEXT NOT NULL COLLATE swiftLocalizedStandardCompare,
                    joined DATETIME NOT NULL, isActive BOOLEAN NOT NULL, scores TEXT NOT NULL)
                """
            ]),
            updates: [
                .init(
                    2,
                    .sql([
                        "ALTER TABLE player ADD COLUMN photo BLOB", "ALTER TABLE player ADD COLUMN page TEXT",
                        "CREATE INDEX player_name ON player(name)",
                    ])),
                .init(3, .sql(["CREATE TABLE team (id INTEGER PRIMARY KEY, name TEXT NOT NULL)"])),
                .init(
                    4,
                    .swift { db in
                        let active = try db.value(Int.self, "SELECT count(*) FROM player WHERE isActive") ?? 0
                        if active > 0 { try db.execute("INSERT INTO team(name) VALUES (\("first"))") }
                    }),
            ])))
configuration.collations = Collation.grdb
configuration.columnForms = ColumnForms(dates: .text, uuids: .blob)

let store = try await EncryptedStore.open(configuration, directory: example.folder, keyProvider: example.keys)
example.tell(store.report)
try example.expect(store.report.migration.from == 2, "two migrations were applied")

func id(_ text: String) throws -> UUID {
    guard let id = UUID(uuidString: text) else { throw Example.Failure("\(text) is not a UUID") }
    return id
}

let ana = Player(
    id: try id("7D6A1C1E-0F3B-4E9E-9E42-0C6B9A1D2F30"), name: "player10",
    joined: Date(timeIntervalSince1970: 1_700_000_000.125), isActive: true, scores: [3, 5], photo: Data([0, 255]),
    page: URL(string: "https://example.org/ana"))
let bo = Player(
    id: try id("11111111-2222-3333-4444-555555555555"), name: "player9", joined: Date(timeIntervalSince1970: 0),
    isActive: false, scores: [])
let players = try await store.read { db in try db.rows(Player.self, "SELECT * FROM player ORDER BY name") }
try example.expect(players == [bo, ana], "the players, in GRDB's order: \(players)")
let found = try await store.read { db in try db.row(Player.self, "SELECT * FROM player WHERE id = \(ana.id)") }
try example.expect(found == ana, "a player by its UUID")

// The store writes the same bytes as GRDB.
let forms = try await store.write { db in
    var copy = ana
    copy.id = UUID()
    try db.insert(copy, into: "player")
    let columns: SQL = "joined || hex(isActive) || scores || hex(photo) || page"
    return try db.values(String.self, "SELECT \(columns) FROM player WHERE name = \(ana.name)")
}
try example.expect(forms.count == 2 && forms[0] == forms[1], "the forms: \(forms)")
let names = try await store.read { db in try db.values(String.self, "SELECT identifier FROM grdb_migrations") }
try example.expect(Set(names) == ["createPlayer", "addPhoto", "addTeam"], "the app's own record: \(names)")
await store.close()
try example.expect("player10", readable: false, in: "app.sqlite")
try example.end()
