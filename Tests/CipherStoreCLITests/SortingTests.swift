internal import CipherSQLite
import CipherTestSupport
import Foundation
import Testing

/// Indexes whose entries are computed and sorted: those on expressions, partial ones, and damaged ones.
struct SortingTests {
    /// Writes a database of 4 MB with an index of 12 MB, which is empty in the file.
    private func makeWithEmptyIndex(_ path: String) throws {
        try LegacyFile.write(path) { connection in
            try connection.executeScript(
                text: """
                    CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT);
                    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
                    INSERT INTO t SELECT i, i || hex(zeroblob(1000)) FROM n;
                    CREATE INDEX i ON t(a || a || a) WHERE id < 0;
                    """)
            try connection.editSchema(
                "UPDATE sqlite_master SET sql = 'CREATE INDEX i ON t(a || a || a)' WHERE name = 'i'")
        }
    }

    @Test("If the entries of an index that are being sorted fill the disk, the error says so, and nothing is changed")
    func fullDisk() throws {
        let fixture = try ToolFixture()
        try makeWithEmptyIndex(fixture.database)
        let before = try fixture.snapshot()
        // Enough for the copy of the original, in blocks of 512 bytes.
        let run = try fixture.run(
            shell: "ulimit -f 12000; exec \"$@\"", ["encrypt", fixture.database, "--key-file", fixture.key, "--json"])
        #expect(run.status == 73, "\(run.errors)")
        #expect(try run.failureCode() == "noSpace")
        #expect(try fixture.snapshot() == before)
    }

    @Test("An index that is larger than the memory for sorting is complete in the encrypted database")
    func complete() throws {
        let fixture = try ToolFixture()
        try makeWithEmptyIndex(fixture.database)
        let run = try fixture.run(["encrypt", fixture.database, "--key-file", fixture.key, "--json"])
        #expect(run.status == 0, "\(run.errors)")
        let check = try fixture.run("verify", fixture.database, "--key-file", fixture.key)
        #expect(check.status == 0, "\(check.errors)")
    }
}
