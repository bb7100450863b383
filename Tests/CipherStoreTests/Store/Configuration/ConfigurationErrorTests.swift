internal import CipherErrors
internal import CipherSQLText
internal import CipherStore
import Foundation
import Testing

/// Wrong configurations are refused, and the error names the place.
struct ConfigurationErrorTests {
    private func description(of json: String, newestFormat: Int = 4) -> String {
        do {
            _ = try Configuration(data: Data(json.utf8), place: "app.json", newestFormat: newestFormat)
            return "accepted"
        } catch let error as StoreError where error.code == .configuration {
            return error.description
        } catch {
            return "another error: \(error)"
        }
    }

    @Test(
        "A wrong value at the top level is refused with the reason",
        arguments: [
            (#""dbName": "a.db""#, "app.json: the key \"dbVersion\" is missing"),
            (#""dbVersion": 1"#, "app.json: the key \"dbName\" is missing"),
            (#""dbName": "", "dbVersion": 1"#, "dbName must be a file name without a folder, but it is empty"),
            (#""dbName": "x/a.db", "dbVersion": 1"#, "dbName must be a file name without a folder, but it contains"),
            (#""dbName": "..", "dbVersion": 1"#, "dbName must be a file name without a folder, but it is the name"),
            (#""dbName": "a\u0000b", "dbVersion": 1"#, "dbName contains a NUL character"),
            (#""dbName": 3, "dbVersion": 1"#, "dbName must be text, not a whole number"),
            (#""dbName": "a.db", "dbVersion": true"#, "dbVersion must be a whole number or a dotted version such"),
            (#""dbName": "a.db", "dbVersion": "1.x""#, "dbVersion must be a non-negative integer, or"),
            (#""dbName": "a.db", "dbVersion": 1.5"#, "dbVersion must be a whole number or a dotted version such"),
            (#""dbName": "a.db", "dbVersion": -1"#, "dbVersion must be a non-negative integer, or"),
            (#""dbName": "a.db", "dbVersion": 2147483648"#, "dbVersion must be a whole number from 0 to"),
            (#""dbName": "a.db", "dbVersion": 1e30"#, "dbVersion must be a whole number or a dotted version such"),
            (#""dbName": "a.db", "dbVersion": null"#, "dbVersion must be a whole number or a dotted version such"),
            (#""dbName": "a.db", "dbVersion": 1, "updates": {}"#, #"updates: the key "directory" is missing"#),
            (#""dbName": "a.db", "dbVersion": 1, "template": {}"#, "template: the key \"file\" is missing"),
            (#""dbName": "a.db", "dbVersion": 1, "tableVersions": 1"#, "tableVersions must be a dictionary"),
            (
                #""dbName": "a.db", "dbVersion": 1, "dbTables": [], "template": {}"#,
                "template: a configuration can have only one schema source"
            ),
            (#""dbName": "a.db", "dbVersion": 1, "dbTabels": []"#, "unknown key \"dbTabels\"; did you mean \"dbTables"),
            (#""dbName": "a.db", "dbVersion": 1, "colour": 1"#, "unknown key \"colour\"; the known keys are dbName, d"),
            (
                #""dbName": "a.db", "dbVersion": 1, "destructiveChanges": "alow""#,
                "destructiveChanges must be \"allow\" or \"withhold\" or \"refuse\", not \"alow\"; did you mean \"allow\"?"
            ),
        ])
    func top(entries: String, expected: String) {
        #expect(description(of: "{\(entries)}").contains(expected))
    }

    @Test(
        "A wrong value in the encryption section is refused with the reason",
        arguments: [
            (#"[]"#, "encryption must be a dictionary, not a list"),
            (#"{"enabled": 1}"#, "encryption.enabled must be true or false, not a whole number"),
            (#"{"enabled": "yes"}"#, "encryption.enabled must be true or false, not text"),
            (#"{"enable": true}"#, "encryption: unknown key \"enable\"; did you mean \"enabled\"?"),
            (
                #"{"sinceVersion": 1.4}"#,
                "encryption.sinceVersion must be a whole number or a dotted version such as \"2.0.0\", not"
            ),
            (#"{"sinceVersion": -1}"#, "encryption.sinceVersion must be a non-negative integer"),
            (#"{"sinceVersion": "2.x"}"#, "encryption.sinceVersion must be a non-negative integer, or text"),
            (#"{"sinceVersion": true}"#, "encryption.sinceVersion must be a whole number or a dotted version"),
            (#"{"whenDisabled": "encrypt"}"#, "encryption.whenDisabled must be \"refuse\" or \"decrypt\", not"),
            (#"{"unexpectedPlaintext": true}"#, "encryption.unexpectedPlaintext must be \"refuse\" or \"encrypt\""),
            (#"{"pageSize": 300}"#, "encryption.pageSize must be a whole number from 512 to 65536"),
            (#"{"pageSize": 5000}"#, "encryption: a page size must be a power of two from 512 to 65536 bytes"),
            (#"{"pageSize": 512}"#, "encryption: a page of 512 bytes has no room for its HMAC"),
            (#"{"kdfIterations": 0}"#, "encryption.kdfIterations must be a whole number from 1 to"),
            (#"{"hmacAlgorithm": "sha265"}"#, "encryption.hmacAlgorithm must be \"sha1\" or \"sha256\" or \"sha512\""),
            (#"{"cipherCompatibility": 3, "kdfAlgorithm": "sha512"}"#, "formats before 4 support only SHA-1"),
            (#"{"formerFormats": 3}"#, "encryption.formerFormats must be a list, not a whole number"),
            (#"{"formerFormats": [0]}"#, "encryption.formerFormats[0] must be a whole number from 1 to 4"),
            (#"{"formerFormats": [3, {}]}"#, "formerFormats[1]: the key \"cipherCompatibility\" is missing"),
            (
                #"{"formerFormats": [{"cipherCompatibility": 2, "pageSiz": 1024}]}"#,
                "formerFormats[0]: unknown key \"pageSiz\"; did you mean \"pageSize\"?"
            ),
            (#"{"whenFormerFormat": "refuse"}"#, "whenFormerFormat must be \"open\" or \"upgrade\""),
            (#"{"cipherCompatibility": 5}"#, "encryption.cipherCompatibility must be a whole number from 3 to 4"),
            (#"{"plaintextHeaderSize": 16}"#, "encryption.plaintextHeaderSize must be 0 or 32"),
            (
                #"{"plaintextHeaderSize": 32, "cipherCompatibility": 3}"#,
                "encryption.plaintextHeaderSize: a plaintext header requires cipher format 4"
            ),
            (#"{"keepBackup": 0}"#, "encryption.keepBackup must be true or false, not a whole number"),
            (#"{"maximumAttempts": 0}"#, "encryption.maximumAttempts must be a whole number from 1"),
            (#"{"onDamage": "heal"}"#, "encryption.onDamage must be \"refuse\" or \"rebuildIndexes\" or \"recover\""),
            (#"{"onRepeatedFailure": "openPlain"}"#, "encryption.onRepeatedFailure must be \"refuse\" or \"openPl"),
        ])
    func encryption(section: String, expected: String) {
        #expect(description(of: #"{"dbName": "a.db", "dbVersion": 1, "encryption": \#(section)}"#).contains(expected))
    }

    @Test(
        "A format that an older engine cannot write is refused",
        arguments: [
            (
                #"{"cipherCompatibility": 4}"#,
                "encryption.cipherCompatibility: this SQLCipher library supports cipher formats up"
            ),
            (
                #"{"plaintextHeaderSize": 32}"#,
                "encryption.plaintextHeaderSize: a plaintext header requires cipher format 4"
            ),
            (#"{"cipherCompatibility": 3}"#, "accepted"),
        ])
    func olderEngine(section: String, expected: String) {
        let json = #"{"dbName": "a.db", "dbVersion": 1, "encryption": \#(section)}"#
        #expect(description(of: json, newestFormat: 3).contains(expected))
    }

    @Test(
        "A wrong place for the recorded version is refused with the reason",
        arguments: [
            (#"{}"#, "recordedVersion: the key \"source\" is missing"),
            (
                #"{"source": "tabel"}"#,
                "recordedVersion.source must be \"userVersion\" or \"table\" or \"migrations\" or \"plist\", not"
            ),
            (#"{"source": "table", "column": "v"}"#, "recordedVersion: the key \"table\" is missing"),
            (#"{"source": "table", "table": "t"}"#, "recordedVersion: the key \"column\" is missing"),
            (#"{"source": "table", "table": "", "column": "v"}"#, "recordedVersion.table is empty"),
            (
                #"{"source": "table", "table": "t", "column": "v", "where": {"name": true}}"#,
                "recordedVersion.where.name must be text"
            ),
            (
                #"{"source": "table", "table": "t", "column": "v", "offset": 0.5}"#,
                "recordedVersion.offset must be a whole number"
            ),
            (#"{"source": "userVersion", "table": "t"}"#, "recordedVersion.table is not allowed if the source is"),
            (#"{"source": "migrations"}"#, "recordedVersion: the key \"identifiers\" is missing"),
            (#"{"source": "migrations", "identifiers": []}"#, "recordedVersion.identifiers: the list contains no migr"),
            (
                #"{"source": "migrations", "identifiers": ["a", "a"]}"#,
                "recordedVersion.identifiers: the list contains \"a\" twice"
            ),
            (
                #"{"source": "migrations", "identifiers": ["a"], "merged": {"m": ["b"]}}"#,
                "recordedVersion.merged: \"b\", which \"m\" replaces, is not in identifiers"
            ),
            (#"{"source": "migrations", "identifiers": [true]}"#, "recordedVersion.identifiers[0] must be text"),
            (
                #"{"source": "migrations", "identifiers": ["a"], "where": {}}"#,
                "recordedVersion.where is not allowed if the source is"
            ),
            (#"{"source": "plist", "file": "a.plist"}"#, "recordedVersion: the key \"key\" is missing"),
            (#"{"source": "plist", "file": "../a", "key": "v"}"#, "recordedVersion.file must be a file name without"),
            (
                #"{"source": "plist", "file": "a.db-wal", "key": "v"}"#,
                "recordedVersion.file must not be one of the database's own files"
            ),
            (#"{"source": "plist", "fiel": "a", "key": "v"}"#, "unknown key \"fiel\"; did you mean \"file\"?"),
        ])
    func recordedVersion(section: String, expected: String) {
        let json = #"{"dbName": "a.db", "dbVersion": 1, "recordedVersion": \#(section)}"#
        #expect(description(of: json).contains(expected))
    }

    @Test(
        "An invalid table is refused, and the error names its place",
        arguments: [
            (#"{}"#, "dbTables must be a list, not a dictionary"),
            (#"[]"#, "dbTables lists no tables"),
            (#"["chat"]"#, "dbTables[0] must be a dictionary with one table, not text"),
            (#"[{}]"#, "dbTables[0] must be a dictionary with one table, but it has 0 keys"),
            (#"[{"a": [{"x": ""}], "b": [{"x": ""}]}]"#, "dbTables[0] must be a dictionary with one table, but it"),
            (#"[{"a": {"x": ""}}]"#, "dbTables[0].a must be a list, not a dictionary"),
            (#"[{"a": []}]"#, "dbTables[0].a: a table needs at least one column"),
            (#"[{"a": [{"x": ""}]}, {"chat": [{"x": ""}, {"y": 3}]}]"#, "dbTables[1].chat[1].y must be text, not"),
            (#"[{"a": [{"x": "", "y": ""}]}]"#, "dbTables[0].a[0] must be a dictionary with one column, but it has 2"),
            (
                #"[{"a": [{"x": ""}]}, {"A": [{"x": ""}]}]"#,
                "dbTables[1]: the table \"A\" is also declared at dbTables[0]"
            ),
            (
                #"[{"a": [{"x": ""}, {"X": ""}]}]"#,
                "dbTables[0].a[1]: the column \"X\" is also declared at dbTables[0].a[0]"
            ),
            (#"[{"": [{"x": ""}]}]"#, "dbTables[0]: the table's name is empty"),
            (#"[{"SQLite_x": [{"x": ""}]}]"#, "dbTables[0]: the table's name \"SQLite_x\" begins with sqlite_, which"),
            (#"[{"CipherStore_x": [{"x": ""}]}]"#, "dbTables[0]: the table's name \"CipherStore_x\" begins with cip"),
            (#"[{"a": [{"x": "TEXT, y TEXT"}]}]"#, "dbTables[0].a[0].x: the definition contains a comma outside"),
            (#"[{"a": [{"x": "TEXT) --"}]}]"#, "dbTables[0].a[0].x: the definition contains a closing parenthesis"),
            (#"[{"a": [{"x": "CHECK (x > 1"}]}]"#, "dbTables[0].a[0].x: the definition contains an opening parent"),
            (#"[{"a": [{"x": "DEFAULT 'a"}]}]"#, "dbTables[0].a[0].x: the definition contains an unclosed quot"),
            (#"[{"a": [{"x": "TEXT -- text"}]}]"#, "dbTables[0].a[0].x: the definition contains a line comment"),
            (#"[{"a": [{"x": "TEXT /* text"}]}]"#, "dbTables[0].a[0].x: the definition contains an unclosed comment"),
            (#"[{"a": [{"x": "TEXT; DROP TABLE a"}]}]"#, "dbTables[0].a[0].x: the definition contains a semicolon"),
        ])
    func tables(list: String, expected: String) {
        #expect(description(of: #"{"dbName": "a.db", "dbVersion": 1, "dbTables": \#(list)}"#).contains(expected))
    }

    @Test(
        "A definition that stays within its column is accepted",
        arguments: [
            "", "TEXT", "DECIMAL(10, 2) DEFAULT 0", "TEXT DEFAULT ',;--)'", "TEXT DEFAULT 'it''s'",
            "TEXT CHECK (x IN ('a', 'b'))", "INTEGER REFERENCES [other, table](id)", "TEXT /* , ; */ NOT NULL",
            "INTEGER DEFAULT -1", "TEXT DEFAULT (1 - -1)",
        ])
    func definition(text: String) {
        #expect(SQLFragment.fault(in: text, isColumn: true) == nil)
    }

    @Test func `Names are the same where SQLite takes them as the same, and only there`() {
        #expect(SQLName("Chat") == SQLName("cHAT"))
        #expect(SQLName("Ä") != SQLName("ä"))
        #expect(SQLName("\u{E9}") != SQLName("e\u{301}"))
    }

    @Test func `A key of any length and content stays short and on one line in the error`() {
        let key = String(repeating: "k", count: 10_000)
        let text = description(of: "{\"a\\nb\": 1, \"\(key)\": 2}")
        #expect(text.contains("unknown key \"a?b\""))
        #expect(description(of: "{\"\(key)\": 2}").count < 500)
    }
}
