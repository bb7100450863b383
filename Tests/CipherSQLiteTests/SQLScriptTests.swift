internal import CipherSQLite
import Testing

struct SQLScriptTests {
    @Test(
        "A script is split into statements where SQLite ends them",
        arguments: [
            ("", []), (" \n; ;; -- ; only this\n/* or ; that */", []), ("SELECT 1", ["SELECT 1"]),
            ("SELECT 1;", ["SELECT 1"]), ("a;b ; c", ["a", "b", "c"]),
            ("SELECT ';', \";\", [;], `;`; x", ["SELECT ';', \";\", [;], `;`", "x"]),
            ("-- before\nSELECT 1 -- ; behind\n; SELECT 2", ["SELECT 1 -- ; behind", "SELECT 2"]),
            (
                "CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 1; SELECT 2; END; SELECT 3",
                ["CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 1; SELECT 2; END", "SELECT 3"]
            ),
            ("/* c */ CREATE TEMP TRIGGER t BEGIN x; END", ["CREATE TEMP TRIGGER t BEGIN x; END"]),
            ("SELECT 'open; x", ["SELECT 'open; x"]), ("SELECT 'é; ü'; x", ["SELECT 'é; ü'", "x"]),
        ] as [(String, [String])])
    func statements(script: String, expected: [String]) {
        #expect(SQL.statements(of: script) == expected)
    }
}
