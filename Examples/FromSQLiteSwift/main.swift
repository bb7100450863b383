// An app on SQLite.swift moves to a store. Its version is PRAGMA user_version, or is recorded by
// SQLiteMigrationManager.swift. Its rows, dates and UUIDs stay the same. The file is as SQLite.swift writes it.

import CipherStore
import Foundation
import StoreSupport
import Support

let example = try Example("from SQLite.swift")
// The columns are Expression<UUID>, Expression<Date>, Expression<Bool>, Expression<Blob?> and Expression<URL?>.
let users = """
    CREATE TABLE "users" ("id" TEXT PRIMARY KEY NOT NULL, "email" TEXT NOT NULL UNIQUE, "seen" TEXT NOT NULL,
        "admin" INTEGER NOT NULL DEFAULT (0), "avatar" BLOB, "page" TEXT);
    INSERT INTO "users" VALUES ('7D6A1C1E-0F3B-4E9E-9E42-0C6B9A1D2F30', 'ana@example.org', '2023-11-14T22:13:20.125', 1,
        x'00ff', 'https://example.org/ana');
    """
try example.legacy("db.sqlite3", users + "PRAGMA user_version = 2;")
try example.legacy(
    "managed.sqlite3",
    users
        + """
        CREATE TABLE schema_migrations(version INTEGER UNIQUE NOT NULL);
        INSERT INTO schema_migrations VALUES (20240119131206019), (20240201090000000);
        """)

struct User: Codable, Equatable, Sendable {
    var id: UUID
    var email: String
    var seen: Date
    var admin: Bool
    var avatar: Data?
    var page: URL?
}

guard let id = UUID(uuidString: "7D6A1C1E-0F3B-4E9E-9E42-0C6B9A1D2F30") else { throw Example.Failure("not a UUID") }
let ana = User(
    id: id, email: "ana@example.org", seen: Date(timeIntervalSince1970: 1_700_000_000.125), admin: true,
    avatar: Data([0, 255]), page: URL(string: "https://example.org/ana"))

/// The configuration of the app's third version; the older versions read `db.userVersion`.
func configuration(_ name: String, _ recordedVersion: RecordedVersion) -> Configuration {
    var configuration = Configuration(
        databaseName: name, version: 3, recordedVersion: recordedVersion,
        schema: .steps(
            MigrationSteps(
                baseline: .sql([
                    "CREATE TABLE users (id TEXT PRIMARY KEY NOT NULL, email TEXT NOT NULL UNIQUE, seen TEXT NOT NULL)"
                ]),
                updates: [
                    .init(
                        2,
                        .sql([
                            "ALTER TABLE users ADD COLUMN admin INTEGER NOT NULL DEFAULT (0)",
                            "ALTER TABLE users ADD COLUMN avatar BLOB", "ALTER TABLE users ADD COLUMN page TEXT",
                        ])),
                    .init(3, .sql(["CREATE INDEX users_seen ON users(seen)"])),
                ])))
    configuration.columnForms = ColumnForms(dates: .textWithT, uuids: .text)
    return configuration
}

for configuration in [
    configuration("db.sqlite3", .userVersion),
    configuration(
        "managed.sqlite3",
        .migrations(
            .init(
                ["20240119131206019", "20240201090000000", "20240301000000000"], table: "schema_migrations",
                column: "version"))),
] {
    let store = try await EncryptedStore.open(configuration, directory: example.folder, keyProvider: example.keys)
    example.tell(store.report)
    try example.expect(store.report.migration.from == 2, "the version")
    let found = try await store.read { db in try db.rows(User.self, "SELECT * FROM users WHERE email LIKE \("%ana%")") }
    try example.expect(found == [ana], "the user: \(found)")

    // The store writes the same values as SQLite.swift.
    var bo = ana
    (bo.id, bo.email) = (UUID(), "bo@example.org")
    let written = try await store.write { [bo] db in
        try db.insert(bo, into: "users")
        return try db.values(String.self, "SELECT seen FROM users ORDER BY email")
    }
    try example.expect(Set(written) == ["2023-11-14T22:13:20.125"], "the dates: \(written)")
    await store.close()
    try example.expect("ana@example.org", readable: false, in: configuration.databaseName)
}
try example.end()
