internal import CipherCatalog
internal import CipherSQLite
internal import CipherSchemaMigration
import CipherTestSupport
import Testing

struct TableShapeTests {
    static let definitions = [
        "a uNiQuE", "\"a\"UNIQUE", "a, b, UNIQUE(a,b)", "a TEXT/**/PRIMARY/**/KEY", "a, CONSTRAINT k PRIMARY KEY(a)",
        "a \u{feff}UNIQUE", "a DEFAULT 'unique'", "a CHECK (a <> 'primary')", "a INTEGER PRIMARY KEY", "a",
        "a reFERENCES\"p\"(b)", "a, FOREIGN KEY(a)REFERENCES p", "a \u{feff}REFERENCES p", "a DEFAULT 'references'",
    ]

    @Test(
        "The shape of a table has the keys that SQLite reports, however they are written",
        arguments: definitions)
    func hasKeys(definition: String) throws {
        let file = try LegacyFile { try $0.executeScript(text: "CREATE TABLE t(\(definition))") }
        let connection = try Connection(path: file.path, mode: .readOnly)
        defer { connection.close() }
        func count(_ pragma: String) throws -> Int {
            var count = 0
            try connection.forEachRow(SQL(text: "PRAGMA \(pragma)(t)")) { _ in count += 1 }
            return count
        }
        let state = try DatabaseState(of: connection) { nil }
        let table = try #require(state.table("t"))
        let facts = try TableShape(table, in: connection).facts
        #expect(try facts.keys.count == count("index_list"))
        #expect(try facts.foreignKeys.count == count("foreign_key_list"))
        #expect(try table.references.count == count("foreign_key_list"))
    }
}
