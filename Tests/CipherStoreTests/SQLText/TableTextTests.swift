internal import CipherSQLText
import Testing

struct TableTextTests {
    static let constraints = [
        "PRIMARY KEY (a) FOREIGN KEY (b) REFERENCES p(k) ON DELETE SET NULL UNIQUE (a, b)",
        "CONSTRAINT k PRIMARY KEY (a) CONSTRAINT f FOREIGN KEY (b) REFERENCES p(k) ON DELETE SET NULL, UNIQUE (a, b)",
        "PRIMARY KEY (a) /* , */ FOREIGN KEY (b) REFERENCES p(k) ON DELETE SET NULL CONSTRAINT \"check\" UNIQUE (a, b)",
    ]

    @Test("Table constraints are separated even if there is no comma between them", arguments: constraints)
    func separatesConstraints(list: String) throws {
        let text = try #require(TableText("CREATE TABLE t(a UNIQUE CHECK (a > 0), b, \(list))"))
        #expect(text.columns.map(\.text) == ["a UNIQUE CHECK (a > 0)", "b"])
        #expect(text.constraints.count == 3)
        #expect(text.constraints.map(\.isPrimaryKey) == [true, false, false])
        #expect(text.constraints.last?.text.hasSuffix("UNIQUE (a, b)") == true)
    }

    @Test("The columns of a table are not qualified with its name in the parts of its text")
    func removesQualifiers() throws {
        let text = try #require(
            TableText("CREATE TABLE main.\"T\"(a CHECK (t.a > 0.5 AND \"T\" . [a] <> 't.a'), CHECK (`t`.a < u.a))"))
        #expect(
            text.columns.map { SQLTokens.normalized($0.text) } == [
                SQLTokens.normalized("a CHECK (a > 0.5 AND a <> 't.a')")
            ])
        #expect(text.constraints.map { SQLTokens.normalized($0.text) } == [SQLTokens.normalized("CHECK (a < u.a)")])
    }
}
