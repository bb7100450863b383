public import CipherSQLite

/// An app that keeps a version for each table (system D): what each release wrote, and how it upgraded.
///
/// `Config/TableVersions` is its configuration at release 3.
public enum TableVersionsApp {
    /// The app's releases, with the current one last.
    public static let releases = [1, 2, 3]
    /// The name of the app's database.
    public static let database = "im.db"

    /// The tables of a release with their versions, as in the app's code.
    public static func tables(_ release: Int) -> [(name: String, version: Double, columns: String)] {
        let chat: (Double, String) =
            switch release {
            case 1: (1, "id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT, msg TEXT")
            case 2: (1.2, "id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT, msg TEXT, sentAt INTEGER")
            default:
                (
                    1.4,
                    "id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT NOT NULL, body TEXT, sentAt INTEGER, edited INTEGER DEFAULT 0"
                )
            }
        let contact: (Double, String) =
            release < 3
            ? (1.9, "id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT")
            : (2, "id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT UNIQUE, name TEXT")
        var tables = [("chat", chat.0, chat.1), ("contact", contact.0, contact.1)]
        if release >= 2 {
            tables.append(
                (
                    "attachment", 1,
                    "id INTEGER PRIMARY KEY AUTOINCREMENT, chatId INTEGER REFERENCES chat(id), content BLOB"
                ))
        }
        if release >= 3 { tables.append(("draft", 1, "id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT")) }
        return tables
    }

    /// The database as the app left it at a release, with rows, gaps in the keys, and the app's own index and view.
    public static func writeDatabase(_ connection: Connection, release: Int) throws {
        try connection.execute(
            "CREATE TABLE tableVersion(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, version DOUBLE)")
        for table in tables(release) {
            try connection.execute(SQL(text: "CREATE TABLE \(table.name)(\(table.columns))"))
            try connection.execute(
                "INSERT INTO tableVersion(name, version) VALUES (\(table.name), \(table.version))")
        }
        let text = release < 3 ? "msg" : "body"
        try connection.executeScript(
            text: """
                INSERT INTO chat(id, uid, \(text)) VALUES (5, 'ana', 'hello'), (9, 'bo', NULL), (4294967296, 'ana', 'late'), (4294967300, 'x', 'gone');
                DELETE FROM chat WHERE id = 4294967300;
                INSERT INTO contact(id, uid) VALUES (3, 'ana'), (8, 'bo');
                CREATE TABLE setting(name TEXT, value BLOB); INSERT INTO setting VALUES ('theme', x'00ff');
                CREATE INDEX chat_uid ON chat(uid);
                CREATE VIEW people AS SELECT uid FROM contact;
                """)
        if release >= 2 {
            try connection.executeScript(
                "INSERT INTO attachment(id, chatId, content) VALUES (2, 9, x'00'), (4, 4294967296, x'')")
        }
    }

    /// How far the upgrade of a table had progressed when the app was killed.
    public enum Point: String, Sendable, CaseIterable { case renamed, created, copied, dropped, done }

    /// Upgrades a table as the app does: it renames the old table, and copies the columns that both tables have.
    ///
    /// - Parameter keepsKeys: Whether the key is copied too, which the app does not do.
    public static func upgrade(
        _ table: String, to release: Int, until point: Point, keepsKeys: Bool = false, _ connection: Connection
    ) throws {
        guard let wanted = tables(release).first(where: { $0.name == table }) else { return }
        try connection.execute(SQL(text: "ALTER TABLE \(table) RENAME TO tableOld"))
        if point == .renamed { return }
        try connection.execute(SQL(text: "CREATE TABLE \(table)(\(wanted.columns))"))
        if point == .created { return }
        func columns(_ table: String) throws -> [String] {
            var names: [String] = []
            try connection.forEachRow(SQL(text: "PRAGMA table_info(\(table))")) { names.append(try $0.get(at: 1)) }
            return names
        }
        let old = try columns("tableOld")
        let common = try columns(table).filter { old.contains($0) && (keepsKeys || $0 != "id") }.joined(separator: ", ")
        try connection.execute(SQL(text: "INSERT INTO \(table)(\(common)) SELECT \(common) FROM tableOld"))
        if point == .copied { return }
        try connection.execute("DROP TABLE tableOld")
        if point == .dropped { return }
        try connection.execute("UPDATE tableVersion SET version = \(wanted.version) WHERE name = \(table)")
    }
}
