public import CipherSQLite

/// An app that ships a template database (system C): what each version wrote.
///
/// `Config/Template` is its configuration at version 3.
public enum TemplateApp {
    /// The versions that the app released before its third, which uses CipherStore.
    public static let versions = [1, 2]
    /// The name of the user's database.
    public static let database = "dbLocal.db"
    /// The name of the copy that the app's own upgrade fills.
    public static let temporary = "dbLocalTemp.db"

    /// The statements of the template that the app shipped at a version.
    public static func template(_ version: Int) -> String {
        let body = version >= 2 ? ", body TEXT" : ""
        let category = version >= 3 ? ", category TEXT DEFAULT 'misc' REFERENCES category(code)" : ""
        let position = version >= 2 ? ", position INTEGER NOT NULL DEFAULT 0" : ""
        var script = """
            CREATE TABLE Records (name TEXT, value TEXT);
            INSERT INTO Records VALUES ('DBVersion', '\(version)');
            CREATE TABLE note (id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT\(body)\(category));
            CREATE TABLE category (code TEXT PRIMARY KEY, name TEXT\(position));
            INSERT INTO category (code, name) VALUES ('misc', 'Miscellaneous'), ('work', 'Work');
            CREATE TABLE tip (text TEXT);
            INSERT INTO tip VALUES ('Swipe to delete');
            """
        if version >= 2 {
            script += """

                INSERT INTO category (code, name, position) VALUES ('home', 'At home', 2);
                CREATE INDEX note_by_title ON note (title);
                """
        }
        if version >= 3 {
            script += """

                INSERT INTO category (code, name, position) VALUES ('trip', 'Trips', 3);
                INSERT INTO tip VALUES ('Long press to move');
                CREATE TABLE unit (id INTEGER PRIMARY KEY, name TEXT UNIQUE, factor REAL, icon BLOB);
                INSERT INTO unit VALUES (1, 'kg', 1.0, x'00ff'), (2, 'lb', 0.45359237, NULL), (7, 'oz', 0.1, x'');
                CREATE TABLE change (at INTEGER, code TEXT);
                CREATE TRIGGER category_added AFTER INSERT ON category
                BEGIN INSERT INTO change VALUES (0, new.code); END;
                CREATE VIEW titles AS SELECT note.title, category.name FROM note JOIN category ON category.code = note.category;
                """
        }
        return script
    }

    /// Writes the user's rows into a copy of the template.
    ///
    /// The user has renamed a category, deleted another, and created a third, which a later template also contains.
    public static func writeUserRows(_ connection: Connection, version: Int) throws {
        try connection.executeScript(
            """
            INSERT INTO note (id, title) VALUES (5, 'first'), (9, NULL), (4294967296, 'Äpfel & 梨');
            DELETE FROM note WHERE id = 4294967296;
            INSERT INTO note (id, title) VALUES (12, '');
            UPDATE category SET name = 'Arbeit' WHERE code = 'work';
            DELETE FROM category WHERE code = 'misc';
            INSERT INTO category (code, name) VALUES ('trip', 'My trips');
            """)
        if version >= 2 { try connection.execute("UPDATE note SET body = 'a body' WHERE id = 5") }
    }

    /// The user's database as the app left it at a version.
    public static func writeDatabase(_ connection: Connection, version: Int) throws {
        try connection.executeScript(text: template(version))
        try writeUserRows(connection, version: version)
    }

    /// The copy as the app's upgrade from 1 to 2 fills it: the new template, with the user's rows replacing its rows.
    ///
    /// - Parameter notes: How many notes were copied before the upgrade was killed; `nil` for all of them.
    public static func writeCopy(_ connection: Connection, notes: Int? = nil) throws {
        try connection.executeScript(text: template(2))
        let rows = ["(5, 'first')", "(9, NULL)", "(12, '')"].prefix(notes ?? 3)
        if !rows.isEmpty {
            try connection.executeScript(text: "INSERT INTO note (id, title) VALUES \(rows.joined(separator: ", "))")
        }
        guard notes == nil else { return }
        try connection.executeScript(
            """
            UPDATE category SET name = 'Arbeit' WHERE code = 'work';
            INSERT INTO category (code, name) VALUES ('trip', 'My trips');
            """)
    }
}
