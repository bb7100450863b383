internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
import CipherTestSupport
import Testing

/// The comparison of a table, by each worker alone and by both.
struct TableWalkTests {
    private static let script = """
        CREATE TABLE t(a, b);
        WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500) INSERT INTO t SELECT i, 'short' FROM n;
        UPDATE t SET b = zeroblob(4200000) WHERE rowid IN (1, 1200, 1201, 2500);
        """

    private func pair(_ change: String) throws -> (ConnectionPair, LegacyFile, LegacyFile) {
        let original = try LegacyFile { try $0.executeScript(text: Self.script) }
        let copy = try LegacyFile { try $0.executeScript(text: Self.script + change) }
        return (
            ConnectionPair(
                original: try Connection(path: original.path, mode: .readOnly),
                copy: try Connection(path: copy.path, mode: .readOnly)), original, copy
        )
    }

    private func walk(_ connection: Connection, indexColumns: [[Int32]] = []) throws -> TableWalk {
        TableWalk(
            try TableReading("t", key: nil, mayLackRowID: true, connection), indexColumns: indexColumns, connection)
    }

    private static let walkers: [[TableWalk.Direction]] = [[.up], [.down], [.up, .down]]

    @Test(
        "Every row is counted once, whichever way the table is walked, with long and short values", arguments: walkers)
    func counts(directions: [TableWalk.Direction]) throws {
        let (pair, original, copy) = try pair("")
        defer { pair.close() }
        let walk = try walk(pair.original, indexColumns: [[1, 0], [0]])
        var bytes: Int64 = 0
        for direction in directions { try walk.walk(direction, pair) { bytes += $0 } }
        #expect(walk.rows == 2_500)
        // However the rows are divided, and however long they are, each counts once in each index.
        let alone = try self.walk(pair.original, indexColumns: [[1, 0], [0]])
        try alone.walk(.up, pair) { _ in }
        #expect(walk.indexEntries == alone.indexEntries)
        #expect(walk.indexEntries.map(\.count) == [2_500, 2_500])
        #expect(bytes > 16_800_000)
        _ = (original, copy)
    }

    static let differences = [
        ("UPDATE t SET b = CAST(substr(b, 1, 4199999) || x'01' AS BLOB) WHERE rowid = 1200", "differs in column b"),
        ("UPDATE t SET b = zeroblob(4199999) WHERE rowid = 1201", "differs in column b"),
        ("UPDATE t SET b = CAST(b AS TEXT) WHERE rowid = 1", "differs in column b"),
        ("UPDATE t SET b = 'short' WHERE rowid = 2500", "differs in column b"),
        ("UPDATE t SET b = zeroblob(4200000) WHERE rowid = 2499", "differs in column b"),
        ("UPDATE t SET a = a + 1 WHERE rowid = 1200", "differs in column a"),
        ("DELETE FROM t WHERE rowid = 1200", "differs in column"),
        ("DELETE FROM t WHERE rowid = 2500", "differs in column a"),
        ("INSERT INTO t VALUES (1, zeroblob(4200000))", "rows in the copy"),
    ]

    @Test("A difference in a row of long values, or in a row next to one, is found and named", arguments: differences)
    func differs(change: String, told: String) throws {
        let (pair, original, copy) = try pair(change)
        defer { pair.close() }
        let error = try storeError { try walk(pair.original).walk(.up, pair) { _ in } }
        #expect(error?.code == .proofFailed)
        #expect(error?.detail.contains(told) == true, "\(error?.detail ?? "no error")")
        _ = (original, copy)
    }
}
