import CipherSQLite
import TestSupport
import Testing

@testable import CipherStore

/// The comparison of whole files, by workers that begin at both ends of the list of tables.
struct CopyProofTests {
    private static let script = """
        CREATE TABLE a(v); CREATE TABLE b(v); CREATE TABLE c(k PRIMARY KEY, v) WITHOUT ROWID; CREATE TABLE d(v);
        CREATE TABLE e(without);
        WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) INSERT INTO a SELECT i FROM n;
        INSERT INTO c SELECT v, v FROM a; INSERT INTO d SELECT v FROM a WHERE v < 3; INSERT INTO e SELECT v FROM a;
        """

    private func prove(_ change: String) throws -> CopyProof.Outcome {
        let original = try LegacyFile { try $0.executeScript(Self.script) }
        let copy = try LegacyFile { try $0.executeScript(Self.script + change) }
        func opened(_ file: LegacyFile) -> ProofConnection {
            ProofConnection(path: file.path, key: nil, settings: CipherSettings(), collations: [])
        }
        return try CopyProof(
            original: opened(original), copy: opened(copy), copyWithDerivedKey: opened(copy),
            observer: UpgradeObserver(path: original.path, report: nil, cancellation: nil)
        ).run()
    }

    @Test("Every table and row of equal files is counted once")
    func counts() throws {
        let outcome = try prove("")
        #expect(outcome.tables == 5)
        #expect(outcome.rows == 9_002)
    }

    static let differences = [
        "DELETE FROM a WHERE rowid = 3000", "INSERT INTO b VALUES (NULL)", "UPDATE c SET v = -1 WHERE k = 1500",
        "UPDATE d SET v = '2' WHERE v = 2", "UPDATE e SET without = 0 WHERE rowid = 1500",
    ]

    @Test("A difference is found in whichever table it is", arguments: differences)
    func differs(change: String) throws {
        #expect(try storeError { try prove(change) }?.code == .proofFailed)
    }
}
