internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
import CipherTestSupport
import Testing

/// The comparison of whole files, by workers that begin at opposite ends of the list of tables.
struct CopyProofTests {
    private static let script = """
        CREATE TABLE a(v); CREATE TABLE b(v); CREATE TABLE c(k PRIMARY KEY, v) WITHOUT ROWID; CREATE TABLE d(v);
        CREATE TABLE e(without);
        WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) INSERT INTO a SELECT i FROM n;
        INSERT INTO c SELECT v, v FROM a; INSERT INTO d SELECT v FROM a WHERE v < 3; INSERT INTO e SELECT v FROM a;
        """

    private func prove(_ script: String = Self.script, change: String) throws -> CopyProof.Outcome {
        let original = try LegacyFile { try $0.executeScript(text: script) }
        let copy = try LegacyFile { try $0.executeScript(text: script + change) }
        func opened(_ file: LegacyFile) -> ProofConnection {
            ProofConnection(path: file.path, key: nil, settings: CipherSettings(), extensions: SQLExtensions())
        }
        return try CopyProof(
            original: opened(original), copy: opened(copy), copyWithDerivedKey: opened(copy),
            observer: UpgradeObserver(path: original.path, report: nil, cancellation: nil)
        ).run()
    }

    @Test("Every table and row of equal files is counted once")
    func counts() throws {
        let outcome = try prove(change: "")
        #expect(outcome.tables == 5)
        #expect(outcome.rows == 9_002)
    }

    static let differences = [
        "DELETE FROM a WHERE rowid = 3000", "INSERT INTO b VALUES (NULL)", "UPDATE c SET v = -1 WHERE k = 1500",
        "UPDATE d SET v = '2' WHERE v = 2", "UPDATE e SET without = 0 WHERE rowid = 1500",
    ]

    @Test("A difference is found in any table", arguments: differences)
    func differs(change: String) throws {
        #expect(try storeError { try prove(change: change) }?.code == .proofFailed)
    }

    /// Mistakes of a builder that confuses one thing with another, in a copy with exactly the original's schema.
    static let mistakes = [
        // Two columns, of which one is in an index.
        "UPDATE x SET (p, q) = (SELECT q, p FROM x AS o WHERE o.rowid = x.rowid)",
        // The b-trees of two tables.
        swapped("x", "y"),
        // The b-trees of two indexes over columns of the same type.
        swapped("xp", "xq"),
        // A column's name instead of its values, as a string in double quotes would be.
        "UPDATE x SET q = 'q'",
        // A column instead of the rowid.
        "UPDATE y SET rowid = rowid + 1000",
    ]

    private static func swapped(_ one: String, _ other: String) -> String {
        """
        PRAGMA writable_schema = ON;
        CREATE TEMP TABLE roots AS SELECT name, rootpage FROM sqlite_master WHERE name IN ('\(one)', '\(other)');
        UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM roots WHERE roots.name <> sqlite_master.name)
        WHERE name IN ('\(one)', '\(other)');
        """
    }

    @Test("A builder that mistakes one column, name or table for another is detected", arguments: mistakes)
    func mistake(change: String) throws {
        let script = """
            CREATE TABLE x(p TEXT, q TEXT); CREATE TABLE y(p TEXT, q TEXT);
            INSERT INTO x VALUES ('a', 'b'), ('c', 'd'); INSERT INTO y VALUES ('a', 'b'), ('c', 'e');
            CREATE INDEX xp ON x(p); CREATE INDEX xq ON x(q);
            """
        let error = try storeError { try prove(script, change: change) }
        #expect(error?.code == .proofFailed, "\(error.map { $0.detail } ?? "no error")")
    }

    /// Formats in which SQLCipher writes a copy and reads all of it.
    static let otherFormats =
        Engine.current.defaultCompatibility >= 4
        ? [
            CipherSettings(pageSize: 1024), CipherSettings(compatibility: 3), CipherSettings(hmacAlgorithm: .sha256),
            CipherSettings(plaintextHeaderSize: 32),
        ] : [CipherSettings(), CipherSettings(pageSize: 2048)]

    @Test(
        "A copy in another format than the default is refused if one byte of any of its pages is changed",
        arguments: otherFormats)
    func everyPage(format: CipherSettings) throws {
        // SQLCipher before version 4 does not check free pages, which the copies that are built do not have.
        let free = "CREATE TABLE free(a); INSERT INTO free VALUES (zeroblob(20000)); DROP TABLE free;"
        let copy = try EncryptedCopy(
            """
            CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT); CREATE INDEX i ON t(b); CREATE TABLE empty(a UNIQUE);
            CREATE TABLE keyed(k PRIMARY KEY, v) WITHOUT ROWID; \(Engine.current.hasCipherIntegrityCheck ? free : "")
            WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)
            INSERT INTO t SELECT i, printf('%0*d', CASE i WHEN 50 THEN 9000 ELSE 200 END, i) FROM n;
            INSERT INTO keyed SELECT b, a FROM t;
            """, settings: format)
        #expect(try copy.prove().comparedBySQL == 5)
        let pageCount = try UInt32(copy.size / Int64(format.pageSize))
        for page in 1...pageCount {
            let sound = try copy.sealed(page)
            // A byte of the content, and one of the initialization vector or the HMAC, of which the shortest has 20.
            for place in [200, format.pageSize - format.reservedBytes + Int(page) % 36] {
                var bytes = sound
                bytes[place] ^= 1
                try copy.writeSealed(bytes, at: page)
                let error = #expect(throws: (any Error).self, "byte \(place) of page \(page)") { try copy.prove() }
                let isRefused = (error as? StoreError)?.code == .proofFailed || error is DatabaseError
                #expect(isRefused, "byte \(place) of page \(page): \(error.map { "\($0)" } ?? "no error")")
            }
            try copy.writeSealed(sound, at: page)
        }
        #expect(try copy.prove().tables == 3)
    }

    @Test("A covering index is not read in place of its WITHOUT ROWID table's rows")
    func coveringIndex() throws {
        // The copy's index still has the value that the row no longer has.
        let script =
            "CREATE TABLE t(a PRIMARY KEY, b) WITHOUT ROWID; CREATE INDEX i ON t(b); INSERT INTO t VALUES (1, 2);"
        let change = """
            PRAGMA writable_schema = ON;
            CREATE TEMP TABLE entry AS SELECT * FROM sqlite_master WHERE name = 'i';
            DELETE FROM sqlite_master WHERE name = 'i'; PRAGMA writable_schema = RESET; UPDATE t SET b = 3;
            PRAGMA writable_schema = ON; INSERT INTO sqlite_master SELECT * FROM entry
            """
        guard Engine.current.sqliteVersionNumber >= 3_030_000 else { return }
        #expect(try storeError { try prove(script, change: change) }?.code == .proofFailed)
    }

    @Test("Schema entries that name each other's tables are refused")
    func liars() throws {
        // Both entries have the name t, so a reader that uses their names reads one table twice.
        let script = """
            CREATE TABLE t(a); CREATE TABLE u(a); INSERT INTO u VALUES (1);
            PRAGMA writable_schema = ON; UPDATE sqlite_master SET name = 't', tbl_name = 't' WHERE name = 'u';
            """
        // Engines since SQLite 3.29 detect this themselves.
        let error = #expect(throws: (any Error).self) { try prove(script, change: "") }
        #expect((error as? StoreError)?.code == .corrupt || (error as? DatabaseError)?.isCorrupt == true)
    }
}
