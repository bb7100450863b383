internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherPageOpening
internal import CipherSQLite
internal import CipherSQLiteFormat
import CipherTestSupport
import Foundation
import Testing

/// The comparison of records: what it counts, what it leaves to SQL, and every way to damage a copy.
@Suite(.enabled(if: Engine.current.defaultCompatibility >= 4))
struct RecordProofTests {
    /// A table of three levels, a table with overflow pages, a table WITHOUT ROWID, an empty table, and indexes of two
    /// levels.
    static let script = """
        CREATE TABLE big(id INTEGER PRIMARY KEY, a TEXT NOT NULL, b);
        CREATE TABLE long(a, b); CREATE TABLE keyed(k TEXT, n, v, PRIMARY KEY(n, k)) WITHOUT ROWID;
        CREATE TABLE empty(a UNIQUE, b); CREATE TABLE numbers(a, b REAL);
        BEGIN;
        WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2200)
            INSERT INTO big SELECT i * 3, printf('%01100d', i), 'text ' || (i % 97) FROM n;
        INSERT INTO long SELECT id, printf('%09000d', id) FROM big WHERE id % 200 = 0;
        INSERT INTO keyed SELECT 'key ' || id, id % 10, b || b || b FROM big;
        INSERT INTO numbers VALUES (1125899906842624, 1), (1.5, 2.5), (NULL, 1e300), (x'00ff', -0.0), ('', 0);
        INSERT INTO numbers SELECT id, id FROM big WHERE id < 900;
        CREATE INDEX bigb ON big(b DESC, id); CREATE UNIQUE INDEX longa ON long(a); CREATE INDEX keyedv ON keyed(v);
        CREATE INDEX numbersb ON numbers(b, a);
        COMMIT;
        """

    @Test("Equal files are compared by their records alone, and every table and row is counted once")
    func counts() throws {
        let copy = try EncryptedCopy(Self.script)
        let outcome = try copy.prove()
        #expect(outcome.comparedBySQL == 0)
        #expect(outcome.tables == 5)
        let bySQL = try copy.prove(.engine)
        #expect(bySQL.comparedBySQL == 10)
        #expect(outcome.rows == bySQL.rows && outcome.warnings == bySQL.warnings)
        #expect(outcome.warnings == [])
    }

    @Test("One item in a hundred is selected, and each has the same chance")
    func sampling() {
        var taken = Array(repeating: 0, count: 200)
        for _ in 0..<20_000 {
            var sampler = Sampler()
            for item in taken.indices where sampler.takes() { taken[item] += 1 }
        }
        // The expected number is 200 for each item; the standard deviation is 14.
        #expect(taken.allSatisfy { (100...300).contains($0) })
        #expect(taken.reduce(0, +) == 40_000)
    }

    static let contents = [
        "CREATE TABLE t(a)",
        "CREATE TABLE t(a); INSERT INTO t VALUES (1)",
        "CREATE TABLE t(a NOT NULL); CREATE VIEW v AS SELECT 1; INSERT INTO t VALUES (1)",
        // Values that were inserted after the index was created.
        "CREATE TABLE t(a UNIQUE, b); INSERT INTO t VALUES (NULL, NULL), (NULL, 1), (9e999, x''), ('', zeroblob(9000))",
        "PRAGMA encoding = 'UTF-16le'; CREATE TABLE t(a TEXT, b); CREATE INDEX i ON t(a, b); "
            + "INSERT INTO t VALUES ('ä', 1), ('z', 'x'), (CAST(x'00d8' AS TEXT), NULL)",
        "CREATE TABLE t(id INTEGER PRIMARY KEY DESC, a); CREATE INDEX i ON t(a, id); INSERT INTO t VALUES (3, 1), (1, 2)",
        "CREATE TABLE t(a REAL, b NUMERIC); CREATE INDEX i ON t(a, b DESC); INSERT INTO t VALUES "
            + "(1, 1.5), (-0.0, 9007199254740993), (9e999, -9e999), (9223372036854775807, 'x'), (NULL, x'00')",
        "CREATE TABLE t(a, b, PRIMARY KEY(b DESC, a)) WITHOUT ROWID; CREATE INDEX i ON t(a); "
            + "INSERT INTO t VALUES (1, 2), ('x', 'y'), (x'00', 1.5)",
    ]

    @Test("Unusual values, keys and encodings are compared without SQL", arguments: contents)
    func unusual(script: String) throws {
        #expect(try EncryptedCopy(script).prove().comparedBySQL == 0)
    }

    @Test("A forbidden NULL is found in a record, but not in records from before the column was added")
    func forbiddenNulls() throws {
        let script = """
            CREATE TABLE t(a, b); INSERT INTO t VALUES (1, NULL), (NULL, 3);
            PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = 'CREATE TABLE t(a, b NOT NULL, c NOT NULL DEFAULT 1)';
            """
        let outcome = try EncryptedCopy(script).prove()
        #expect(outcome.comparedBySQL == 0)
        #expect(
            outcome.warnings == ["table t has rows with NULL in column b, although the column is declared NOT NULL"])
    }

    @Test("Equal values stored in different bytes are compared by SQL, table by table")
    func otherBytes() throws {
        let script =
            "CREATE TABLE t(a); INSERT INTO t VALUES (70000000000), ('x'); CREATE TABLE u(a); INSERT INTO u VALUES (1);"
        let copy = try EncryptedCopy(script)
        // 70000000000 takes six bytes, with serial type 5. A text of the same length makes room for eight bytes, of
        // type 6.
        try copy.change(copy.root("t")) { page in
            let cell = page.cells[0]
            #expect(Array(page[cell..<(cell + 4)]) == [8, 1, 2, 5])
            let wide: [UInt8] = [10, 1, 2, 6, 0, 0] + page[(cell + 4)..<(cell + 10)]
            let start = page.big16(5) - wide.count
            page.replaceSubrange(start..<(start + wide.count), with: wide)
            page.replaceSubrange(8..<10, with: [UInt8(start >> 8), UInt8(start & 255)])
            page.replaceSubrange(5..<7, with: [UInt8(start >> 8), UInt8(start & 255)])
        }
        let outcome = try copy.prove()
        #expect(outcome.comparedBySQL == 1)
        #expect(outcome.rows == 3)
    }

    @Test("A column added after its rows is compared by SQL if an index contains it")
    func addedColumn() throws {
        let script = "CREATE TABLE t(a); INSERT INTO t VALUES (1), (2); ALTER TABLE t ADD COLUMN b DEFAULT 'x';"
        #expect(try EncryptedCopy(script).prove().comparedBySQL == 0)
        let outcome = try EncryptedCopy(script + "CREATE INDEX i ON t(b)").prove()
        #expect(outcome.comparedBySQL == 1)
        #expect(outcome.warnings == [])
    }

    @Test("A record whose header accounts only for the part of the payload on its own page is left to SQL")
    func shortenedRecord() throws {
        let copy = try EncryptedCopy(
            """
            CREATE TABLE t(a); INSERT INTO t VALUES (1), (zeroblob(4997)), (zeroblob(4997));
            ALTER TABLE t ADD COLUMN b;
            """)
        func shorten(_ page: inout [UInt8]) {
            // The type of a blob of 4,997 bytes becomes that of one of 905 bytes. SQLCipher always reads the first row.
            let cell = page.cells[1]
            #expect(Array(page[cell..<(cell + 6)]) == [0xa7, 0x08, 2, 3, 0xce, 0x16])
            page.replaceSubrange((cell + 4)..<(cell + 6), with: [0x8e, 0x1e])
        }
        let root = try copy.root("t")
        try copy.change(root) { shorten(&$0) }
        let file = URL(filePath: copy.original.path)
        var bytes = [UInt8](try Data(contentsOf: file))
        let start = Int(root - 1) * 4_096
        var page = Array(bytes[start..<(start + 4_096)])
        shorten(&page)
        bytes.replaceSubrange(start..<(start + 4_096), with: page)
        try Data(bytes).write(to: file)
        #expect(throws: (any Error).self) { try copy.prove(.engine) }
        #expect(throws: (any Error).self) { try copy.prove() }
    }

    @Test("An index that SQLite can only search through equal keys is compared by SQL")
    func equalKeys() throws {
        let script = """
            CREATE TABLE t(a TEXT PRIMARY KEY, b);
            WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) INSERT INTO t SELECT NULL, i FROM n
            """
        let outcome = try EncryptedCopy(script).prove()
        #expect(outcome.comparedBySQL == 1)
        #expect(outcome.rows == 100_000)
    }

    // MARK: Damaged copies

    /// A way to damage a copy.
    struct Fault: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// Whether SQLCipher and SQL detect it too.
        var isSeenBySQL = true
        let apply: @Sendable (EncryptedCopy) throws -> Void

        init(_ name: String, isSeenBySQL: Bool = true, _ apply: @escaping @Sendable (EncryptedCopy) throws -> Void) {
            testDescription = name
            self.isSeenBySQL = isSeenBySQL
            self.apply = apply
        }
    }

    /// One page of each kind.
    static let kinds: [(name: String, find: @Sendable (EncryptedCopy) throws -> UInt32?)] = [
        ("the first page", { _ in 1 }),
        ("a table's root", { try $0.root("big") }),
        ("an interior page of a table", { try $0.pages(of: "big", .tableInterior).last }),
        ("a table's leaf", { try $0.pages(of: "big", .tableLeaf).last }),
        ("an interior page of an index", { try $0.pages(of: "bigb", .indexInterior).last }),
        ("an index's leaf", { try $0.pages(of: "bigb", .indexLeaf).last }),
        ("an interior page of a WITHOUT ROWID table", { try $0.pages(of: "keyed", .indexInterior).last }),
        ("a leaf of a WITHOUT ROWID table", { try $0.pages(of: "keyed", .indexLeaf).last }),
        ("an overflow page", { try $0.overflowPages(of: "long").last }),
        ("the last page", { try $0.pages().pageCount }),
    ]

    static let seals = kinds.flatMap { kind in
        EncryptedCopy.Seal.allCases.filter { $0 != .right }.map { seal in
            Fault("\(kind.name) sealed: \(seal)") { try $0.change(#require(try kind.find($0)), seal) }
        }
    }

    static let bytes = kinds.flatMap { kind in
        // The content, the initialization vector, and the HMAC.
        [20, 4_020, 4_090].map { offset in
            Fault("byte \(offset) of \(kind.name) changed") { copy in
                let number = try #require(try kind.find(copy))
                var bytes = try copy.sealed(number)
                bytes[offset] ^= 1
                try copy.writeSealed(bytes, at: number)
            }
        }
    }

    /// Authentic pages, in a file that is not the original's copy.
    static let faults = [
        // The key in the tests includes its salt, so SQLCipher does not read this one.
        Fault("the salt in front of the first page changed", isSeenBySQL: false) { copy in
            var bytes = try copy.sealed(1)
            bytes[3] ^= 1
            try copy.writeSealed(bytes, at: 1)
        },
        Fault("two sealed pages in each other's place") { copy in
            let pages = try copy.pages(of: "big", .tableLeaf)
            let (one, other) = (try copy.sealed(pages[3]), try copy.sealed(pages[4]))
            try copy.writeSealed(other, at: pages[3])
            try copy.writeSealed(one, at: pages[4])
        },
        Fault("the content of two pages in each other's place, sealed anew") { copy in
            let pages = try copy.pages(of: "big", .tableLeaf)
            let (one, other) = (try #require(try copy.page(pages[3])), try #require(try copy.page(pages[4])))
            try copy.write(other, as: pages[3])
            try copy.write(one, as: pages[4])
        },
        Fault("a page in the place of another, so that it is there twice") { copy in
            let pages = try copy.pages(of: "big", .tableLeaf)
            try copy.write(#require(try copy.page(pages[3])), as: pages[4])
        },
        Fault("two cells of a leaf in each other's place") { copy in
            try copy.change(copy.pages(of: "big", .tableLeaf)[3]) { page in
                let (one, other) = (Array(page[8..<10]), Array(page[10..<12]))
                page.replaceSubrange(8..<12, with: other + one)
            }
        },
        Fault("the records of two rows in each other's place") { copy in
            try copy.change(copy.pages(of: "big", .tableLeaf)[3]) { page in
                let (one, other) = (page.cells[0] + 4, page.cells[1] + 4)
                let (left, right) = (Array(page[one..<(one + 1_104)]), Array(page[other..<(other + 1_104)]))
                #expect(left != right)
                page.replaceSubrange(one..<(one + 1_104), with: right)
                page.replaceSubrange(other..<(other + 1_104), with: left)
            }
        },
        Fault("two entries of an index in each other's place") { copy in
            try copy.change(copy.pages(of: "bigb", .indexLeaf)[3]) { page in
                let (one, other) = (Array(page[8..<10]), Array(page[10..<12]))
                page.replaceSubrange(8..<12, with: other + one)
            }
        },
        Fault("one byte of an index entry changed") { copy in
            try copy.change(copy.pages(of: "bigb", .indexLeaf)[3]) { $0[$0.cells[2] + 6] ^= 1 }
        },
        Fault("an entry of an index's interior page changed") { copy in
            try copy.change(copy.pages(of: "bigb", .indexInterior)[0]) { $0[$0.cells[0] + 10] ^= 1 }
        },
        Fault("a value of a WITHOUT ROWID table changed") { copy in
            try copy.change(copy.pages(of: "keyed", .indexLeaf)[3]) { $0[$0.cells[2] + 16] ^= 1 }
        },
        Fault("one row's overflow pages in the place of another's") { copy in
            let pages = try copy.pages(of: "long", .tableLeaf)
            try copy.change(pages[0]) { page in
                // The cells have equal lengths, and end with the number of the first overflow page.
                let cells = page.cells.sorted()
                let (one, other) = (cells[1] - 4, cells[2] - 4)
                let (left, right) = (Array(page[one..<(one + 4)]), Array(page[other..<(other + 4)]))
                #expect(left != right)
                page.replaceSubrange(one..<(one + 4), with: right)
                page.replaceSubrange(other..<(other + 4), with: left)
            }
        },
        Fault("one overflow page of another row's") { copy in
            let pages = try copy.overflowPages(of: "long")
            let firsts = try pages.filter { try copy.page($0).map { $0.big32(0) } != 0 }
            let other = try #require(try copy.page(firsts[1])).big32(0)
            try copy.change(firsts[0]) { $0.set32(0, other) }
        },
        Fault("one byte of an overflow page changed") { copy in
            try copy.change(copy.overflowPages(of: "long")[2]) { $0[1_000] ^= 1 }
        },
        Fault("an integer as a floating-point number of equal value") { copy in
            let leaf = try #require(try copy.pages(of: "numbers", .tableLeaf).first)
            try copy.change(leaf) { page in
                let cell = page.cells[0]
                #expect(page[cell + 3] == 6)
                page[cell + 3] = 7
                let number = withUnsafeBytes(of: 1_125_899_906_842_624.0.bitPattern.bigEndian) { Array($0) }
                page.replaceSubrange((cell + 5)..<(cell + 13), with: number)
            }
        },
        Fault("text as a blob of equal bytes") { copy in
            try copy.change(copy.pages(of: "big", .tableLeaf)[3]) { page in
                // The serial type of a text is odd; that of a blob is one less.
                let cell = page.cells[0]
                #expect(page[cell + 7] & 1 == 1)
                page[cell + 7] -= 1
            }
        },
        Fault("a rowid changed") { copy in
            try copy.change(copy.pages(of: "long", .tableLeaf)[0]) { $0[$0.cells[0] + 2] += 64 }
        },
        Fault("a rowid changed to one between its neighbours") { copy in
            try copy.change(copy.pages(of: "big", .tableLeaf)[3]) { page in
                // The rowid follows a length of two bytes.
                let rowid = page.cells[1] + 2
                #expect(page[rowid] < 128 && page[rowid] % 3 == 0)
                page[rowid] ^= 1
            }
        },
        Fault("a row left out") { copy in
            try copy.change(copy.pages(of: "big", .tableLeaf)[3]) { page in
                page.replaceSubrange(3..<5, with: [0, UInt8(page.cells.count - 1)])
            }
        },
        Fault("a rowid of an interior page changed", isSeenBySQL: false) { copy in
            try copy.change(copy.pages(of: "big", .tableInterior).last ?? 0) { $0[$0.cells[1] + 5] ^= 2 }
        },
        Fault("a chain of overflow pages that goes on behind its payload", isSeenBySQL: false) { copy in
            let pages = try copy.overflowPages(of: "long")
            let last = try pages.filter { try copy.page($0).map { $0.big32(0) } == 0 }
            try copy.change(last[0]) { $0.set32(0, last[1]) }
        },
        Fault("a page that nothing uses", isSeenBySQL: false) { copy in
            try copy.write([UInt8](repeating: 0, count: 4_096), as: copy.pages().pageCount + 1)
        },
        Fault("a page that two tables use", isSeenBySQL: false) { copy in
            // The content is equal, so that each table has the right content.
            let root = try copy.root("empty")
            var entry = try #require(try copy.page(1))
            let numbers = try copy.root("sqlite_autoindex_empty_1")
            #expect(root != numbers)
            // In the schema's record, the root page is one byte before the SQL.
            let place = try #require(entry.indices.first { entry[$0...].starts(with: "emptyempty".utf8) }) + 10
            #expect(entry[place] == UInt8(root))
            entry[place] = UInt8(try copy.root("numbers"))
            try copy.write(entry, as: 1)
        },
        Fault("the root of an empty index as that of a table", isSeenBySQL: false) { copy in
            try copy.change(copy.root("sqlite_autoindex_empty_1")) { page in
                #expect(page[0] == TreePage.Kind.indexLeaf.rawValue)
                page[0] = TreePage.Kind.tableLeaf.rawValue
            }
        },
        Fault("the last page cut off") { copy in copy.truncate(to: try copy.size - 4_096) },
        Fault("half of the last page cut off") { copy in copy.truncate(to: try copy.size - 2_048) },
    ]

    @Test("A copy with one fault is rejected, whichever way it is read", arguments: seals + bytes + faults)
    func notices(fault: Fault) throws {
        let copy = try EncryptedCopy(Self.script)
        try fault.apply(copy)
        let error = #expect(throws: (any Error).self) { try copy.prove() }
        // SQLCipher itself reports what is missing from the header or what it cannot interpret there.
        let isRefused = (error as? StoreError)?.code == .proofFailed || error is DatabaseError
        #expect(isRefused, "\(error.map { "\($0)" } ?? "no error")")
        if fault.isSeenBySQL {
            #expect(throws: (any Error).self) { try copy.prove(.engine) }
        }
    }

    /// Changes the first row of a table and of a table WITHOUT ROWID, and the first entry of an index.
    static let engineChanges = [
        "UPDATE big SET a = 'x' || substr(a, 2) WHERE id = 3",
        "UPDATE keyed SET v = 'x' WHERE n = 0",
        // Two swapped indexes.
        """
        PRAGMA writable_schema = ON;
        CREATE TEMP TABLE roots AS SELECT name, rootpage FROM sqlite_master WHERE name IN ('bigb', 'numbersb');
        UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM roots WHERE roots.name <> sqlite_master.name)
        WHERE name IN ('bigb', 'numbersb');
        """,
    ]

    @Test("The pages that SQLCipher reads of the copy are compared too", arguments: engineChanges)
    func engineReads(change: String) throws {
        let copy = try EncryptedCopy(Self.script)
        let engineCopy = try EncryptedCopy(Self.script, change: change)
        #expect(try storeError { try copy.prove(engineCopy: engineCopy) }?.code == .proofFailed)
    }

    @Test("A copy under a key other than the one derived for the proof is refused")
    func otherKey() throws {
        let copy = try EncryptedCopy("CREATE TABLE t(a); INSERT INTO t VALUES (1)")
        let error = try storeError { try copy.prove(key: TestKeys.rawWithSalt(8)) }
        #expect(error?.code == .proofFailed)
    }
}
