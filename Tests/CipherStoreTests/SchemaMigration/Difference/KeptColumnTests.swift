internal import CipherErrors
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

struct KeptColumnTests {
    private func fixture(_ script: String) throws -> MigrationFixture {
        try MigrationFixture(.init(isEncrypted: false, journalMode: "DELETE"), script)
    }

    @Test(
        "A kept column keeps its values if a byte order mark or a comment stands before its name",
        arguments: ["\u{feff}old", "/**/ old", "\u{feff}\"old\"", "'old'"])
    func keepsMarkedColumn(name: String) throws {
        let fixture = try fixture("CREATE TABLE t(a TEXT, \(name) TEXT); INSERT INTO t VALUES ('x', 'y')")
        let source = WantedSource(statements: ["CREATE TABLE t(a TEXT NOT NULL DEFAULT '')"])
        let report = try fixture.launch(source)
        #expect(report.titles == ["rebuildTable t"])
        #expect(report.withheld.map(\.kind) == [.dropColumn])
        #expect(try fixture.rows("SELECT * FROM t") == ["\(Value.text("x"))|\(Value.text("y"))"])
        #expect(try fixture.launch(source).applied.isEmpty)
    }
}
