internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
internal import CipherSQLiteFormat
import CipherTestSupport
import Foundation
import Testing

/// Damage that hides rows from SQLite, which reads the database without an error.
struct HiddenRowsTests {
    /// A way of hiding rows.
    struct Damage: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let apply: @Sendable (inout [UInt8], _ roots: [String: Int]) throws -> Void
    }

    private static let pageSize = 1_024

    static let damages = [
        Damage(testDescription: "an empty root page") { bytes, roots in
            try changePage(roots["b"], of: &bytes) { page in
                page[0] = TreePage.Kind.tableLeaf.rawValue
                page.replaceSubrange(3..<5, with: [0, 0])
            }
        },
        Damage(testDescription: "a root page without one of its children") { bytes, roots in
            try changePage(roots["b"], of: &bytes) { page in
                let count = page.big16(3)
                page.replaceSubrange(16..<(12 + 2 * count), with: Array(page[18..<(12 + 2 * count)]) + [0, 0])
                page.replaceSubrange(3..<5, with: [UInt8((count - 1) >> 8), UInt8((count - 1) & 255)])
            }
        },
        Damage(testDescription: "a root page with an old bound, outside of which a row is") { bytes, roots in
            // The child's last rowid is equal to the bound, which takes one byte.
            try changePage(roots["b"], of: &bytes) { $0[$0.cells[0] + 4] -= 1 }
        },
        Damage(testDescription: "a leaf of another table") { bytes, roots in
            var leaf: UInt32 = 0
            try changePage(roots["a"], of: &bytes) { leaf = $0.big32($0.cells[2]) }
            try changePage(roots["b"], of: &bytes) { $0.set32($0.cells[2], leaf) }
        },
        Damage(testDescription: "overflow pages of another row") { bytes, roots in
            let geometry = try #require(PageGeometry(pageSize: pageSize, reserved: 0))
            try changePage(roots["long"], of: &bytes) { page in
                // The length takes two bytes, and the rowid takes one.
                let overflows = page.cells.map { cell in
                    let length = Int(page[cell] & 0x7f) << 7 | Int(page[cell + 1])
                    return cell + 3 + geometry.localLength(of: length, inTable: true)
                }
                page.set32(overflows[1], page.big32(overflows[0]))
            }
        },
        Damage(testDescription: "a root page of a table WITHOUT ROWID without its last leaf") { bytes, roots in
            // The page ends as it did before the leaf was added.
            try changePage(roots["words"], of: &bytes) { page in
                let (count, start) = (page.big16(3), page.big16(5))
                let cells = page.cells
                #expect(page[0] == TreePage.Kind.indexInterior.rawValue && cells.last == start && count > 1)
                let next = cells.dropLast().min() ?? 0
                page.replaceSubrange(8..<12, with: page[start..<(start + 4)])
                page.replaceSubrange(3..<5, with: [UInt8((count - 1) >> 8), UInt8((count - 1) & 255)])
                page.replaceSubrange(5..<7, with: [UInt8(next >> 8), UInt8(next & 255)])
                page.replaceSubrange(start..<next, with: [UInt8](repeating: 0, count: next - start))
            }
        },
        Damage(testDescription: "a leaf whose header counts too few cells") { bytes, roots in
            var leaf: UInt32 = 0
            try changePage(roots["b"], of: &bytes) { leaf = $0.big32($0.cells[2]) }
            try changePage(Int(leaf), of: &bytes) { $0[4] -= 3 }
        },
        Damage(testDescription: "a root page of a table WITHOUT ROWID whose header counts no cell") { bytes, roots in
            try changePage(roots["keyed"], of: &bytes) { $0[4] = 0 }
        },
        Damage(testDescription: "a page of the schema whose header counts too few cells") { bytes, _ in
            bytes[104] -= 1
        },
    ]

    /// A database whose page 1 was not written by its last transaction, so that an index leads to the rows of a table.
    private static func withLostWrite(index: String) throws -> LegacyFile {
        let file = try LegacyFile { connection in
            try connection.executeScript(
                text: """
                    CREATE TABLE t(v, deleted); CREATE \(index);
                    INSERT INTO t VALUES ('a', 1), ('b', 1), ('c', 0);
                    """)
        }
        let before = try Data(contentsOf: URL(filePath: file.path))
        let connection = try Connection(path: file.path, mode: .readWrite)
        try connection.executeScript(
            text: """
                BEGIN; DROP INDEX i; CREATE TABLE note(a);
                INSERT INTO note VALUES ('one'), ('two'), ('three'); COMMIT;
                """)
        connection.close()
        let after = try Data(contentsOf: URL(filePath: file.path))
        try (before.prefix(4_096) + after.dropFirst(4_096)).write(to: URL(filePath: file.path))
        return file
    }

    static let indexes = [
        "INDEX i ON t(v)", "INDEX i ON t(v) WHERE deleted = 1", "INDEX i ON t(v) WHERE deleted = 2",
        "UNIQUE INDEX i ON t(v)",
    ]

    @Test(
        "Rows to which only an index leads, because a write of page 1 was lost, are never dropped without a warning",
        arguments: indexes, [OnDamage.refuse, .rebuildIndexes, .recover])
    func lostWrite(index: String, onDamage: OnDamage) throws {
        let file = try Self.withLostWrite(index: index)
        let before = try file.digest()
        var options = ConversionOptions()
        options.onDamage = onDamage
        let upgrade = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider(), options: options)
        switch onDamage {
        case .refuse:
            #expect(try storeError { try upgrade.run() }?.code == .corrupt)
            #expect(try file.digest() == before)
        case .rebuildIndexes:
            let report = try upgrade.run()
            #expect(report.warnings.contains { $0.contains("is a page of a table") }, "\(report.warnings)")
            #expect(try file.folder.names.contains("app.db-plaintext"))
        case .recover:
            let report = try upgrade.run()
            #expect(report.outcome == .recovered, "\(report)")
            #expect(report.recovery?.lostAndFound.map { $0.orphanedRows + $0.deletedRows } == 3, "\(report)")
        }
    }

    @Test(
        "A new table whose entry was lost with page 1 is reported, although the header counts its pages as free",
        arguments: [(free: 90_000, rows: 300), (free: 1, rows: 1)], ["n(a)", "n(a PRIMARY KEY) WITHOUT ROWID"])
    func lostTable(size: (free: Int, rows: Int), table: String) throws {
        let file = try LegacyFile { connection in
            try connection.executeScript(
                text: """
                    CREATE TABLE t(a); INSERT INTO t VALUES (1); CREATE TABLE z(a);
                    INSERT INTO z VALUES (zeroblob(\(size.free))); DROP TABLE z;
                    """)
        }
        let before = try Data(contentsOf: URL(filePath: file.path))
        let connection = try Connection(path: file.path, mode: .readWrite)
        try connection.executeScript(
            text: """
                CREATE TABLE \(table);
                WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < \(size.rows))
                    INSERT INTO n SELECT 'new ' || i || hex(zeroblob(50)) FROM c;
                """)
        connection.close()
        let after = try Data(contentsOf: URL(filePath: file.path))
        try (before.prefix(4_096) + after.dropFirst(4_096)).write(to: URL(filePath: file.path))
        let digest = try file.digest()
        var options = ConversionOptions()
        options.onDamage = .refuse
        let error = try storeError {
            try EncryptionUpgrade(path: file.path, provider: TestKeys.provider(), options: options).run()
        }
        #expect(error?.code == .corrupt)
        #expect(try file.digest() == digest)
        options.onDamage = .rebuildIndexes
        let report = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider(), options: options).run()
        #expect(report.warnings.contains { $0.contains("like part of a table") }, "\(report.warnings)")
        #expect(try file.folder.names.contains("app.db-plaintext"))
    }

    @Test(
        "Rows of a lost table in the page of an index are reported, whatever the index and the number of values",
        arguments: ["", " WHERE c IS NOT NULL"], ["", ", b", ", b, c, d"])
    func lostTableInIndex(condition: String, columns: String) throws {
        let file = try LegacyFile { connection in
            try connection.executeScript(
                text: """
                    CREATE TABLE t(a INTEGER PRIMARY KEY, v TEXT, c); INSERT INTO t(v) VALUES ('one'), ('two');
                    CREATE INDEX i ON t(v)\(condition);
                    """)
        }
        let before = try Data(contentsOf: URL(filePath: file.path))
        let connection = try Connection(path: file.path, mode: .readWrite)
        let values = columns.replacing(/\w/, with: "'text'")
        try connection.executeScript(
            text: """
                BEGIN; DROP INDEX i; CREATE TABLE n(k TEXT PRIMARY KEY\(columns)) WITHOUT ROWID;
                INSERT INTO n VALUES ('key 1'\(values)), ('key 2'\(values)); COMMIT;
                """)
        connection.close()
        let after = try Data(contentsOf: URL(filePath: file.path))
        try (before.prefix(4_096) + after.dropFirst(4_096)).write(to: URL(filePath: file.path))
        let digest = try file.digest()
        #expect(try storeError { try file.upgrade(.refuse).run() }?.code == .corrupt)
        #expect(try file.digest() == digest)
        let report = try file.upgrade(.rebuildIndexes).run()
        #expect(report.warnings.contains { $0.contains("may be rows of a table") }, "\(report.warnings)")
        #expect(report.backup != nil)
    }

    /// How a new table took its pages.
    enum Taking: CaseIterable {
        /// A table WITHOUT ROWID took the pages of deleted rows.
        case deletedRows
        /// Only the root of a table is on a page that the old page 1 counts.
        case onePage
        /// A table WITHOUT ROWID took the pages of a dropped index.
        case droppedIndex
    }

    @Test(
        "A new table whose entry was lost with page 1 is reported, whatever its pages were before",
        arguments: Taking.allCases)
    func lostTableWithOldPages(taking: Taking) throws {
        let file = try LegacyFile { connection in
            try connection.executeScript(
                text: """
                    CREATE TABLE t(a INTEGER PRIMARY KEY, v TEXT, c BLOB); CREATE INDEX ui ON t(v);
                    WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 600)
                        INSERT INTO t SELECT i, 'value ' || i || hex(zeroblob(25)), zeroblob(20) FROM c;
                    """)
            if taking != .droppedIndex { try connection.execute("DROP INDEX ui") }
            try connection.execute("VACUUM")
        }
        let before = try Data(contentsOf: URL(filePath: file.path))
        let connection = try Connection(path: file.path, mode: .readWrite)
        try connection.execute("BEGIN")
        switch taking {
        case .deletedRows: try connection.execute("DELETE FROM t WHERE a > 200")
        case .onePage:
            while try connection.value(Int.self, "PRAGMA freelist_count") == 0 {
                try connection.execute("DELETE FROM t WHERE a = (SELECT max(a) FROM t)")
            }
        case .droppedIndex: try connection.execute("DROP INDEX ui")
        }
        try connection.executeScript(
            text: """
                CREATE TABLE \(taking == .onePage ? "n(k, a, b, c, d)" : "n(k PRIMARY KEY, a, b, c, d) WITHOUT ROWID");
                WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 900)
                    INSERT INTO n SELECT 'key ' || i, 'new ' || i, i, hex(zeroblob(30)), 'end' FROM c;
                COMMIT;
                """)
        connection.close()
        let after = try Data(contentsOf: URL(filePath: file.path))
        try (before.prefix(4_096) + after.dropFirst(4_096)).write(to: URL(filePath: file.path))
        let digest = try file.digest()
        #expect(try storeError { try file.upgrade(.refuse).run() }?.code == .corrupt)
        #expect(try file.digest() == digest)
        let report = try file.upgrade(.rebuildIndexes).run()
        #expect(report.warnings.contains { $0.contains("part of a table") || $0.contains("rows of a table") })
        #expect(report.backup != nil, "\(report.warnings)")
    }

    @Test(
        "A new table whose entry was lost with page 1 is reported if the old list's first page is empty or reused by now",
        arguments: [true, false])
    func lostTableInEncrypted(isEmpty: Bool) throws {
        let folder = try TemporaryFolder()
        let path = folder.path("app.db")
        func connecting(_ mode: Connection.Mode, _ body: (Connection) throws -> Void) throws {
            let connection = try Connection(path: path, mode: mode, key: TestKeys.raw(), settings: CipherSettings())
            defer { connection.close() }
            try body(connection)
        }
        try connecting(.create) { connection in
            try connection.executeScript(
                text: """
                    PRAGMA secure_delete = ON; CREATE TABLE t(a); INSERT INTO t VALUES (1); CREATE TABLE z(a);
                    INSERT INTO z VALUES (zeroblob(20000)); DROP TABLE z;
                    """)
        }
        let before = try Data(contentsOf: URL(filePath: path))
        try connecting(.readWrite) { connection in
            try connection.executeScript(text: "PRAGMA secure_delete = ON; BEGIN; CREATE TABLE n(a)")
            let free: SQL = "PRAGMA freelist_count"
            if isEmpty {
                while try connection.value(Int.self, free) ?? 0 > 1 {
                    try connection.execute("INSERT INTO n VALUES (hex(zeroblob(100)))")
                }
                #expect(try connection.value(Int.self, free) == 1)
                try connection.executeScript(text: "CREATE TABLE q(a); DROP TABLE q")
            } else {
                try connection.execute("INSERT INTO n VALUES (randomblob(50000))")
                #expect(try connection.value(Int.self, free) == 0)
            }
            try connection.execute("COMMIT")
        }
        let after = try Data(contentsOf: URL(filePath: path))
        let size = CipherSettings().pageSize
        try (before.prefix(size) + after.dropFirst(size)).write(to: URL(filePath: path))
        let digest = try FolderDigest(folder.url)
        let paths = try DatabasePaths(path)
        let error = try storeError {
            try Rekeying(
                at: paths, oldKey: TestKeys.provider(), newKey: TestKeys.provider { try TestKeys.raw(8) },
                formats: [CipherSettings()], newSettings: CipherSettings(), options: ConversionOptions()
            ).run()
        }
        #expect(error?.code == .corrupt)
        let output = try TemporaryFolder()
        let report = try DatabaseRecovery(
            of: paths, provider: TestKeys.provider(), formats: [CipherSettings()], to: output.path("new.db"),
            targetProvider: nil, template: nil, options: ConversionOptions()
        ).run()
        #expect(!report.complete, "\(report)")
        #expect(try FolderDigest(folder.url) == digest)
    }

    private static let emptySchema = Damage(testDescription: "a page of the schema whose header counts no entry") {
        bytes, _ in bytes.replaceSubrange(103..<105, with: [0, 0])
    }

    /// Damage to the number of cells in the header of a page.
    static let uncounted: [Damage] = damages.suffix(3) + [emptySchema]

    private static func changePage(
        _ number: Int?, of bytes: inout [UInt8], _ change: (inout [UInt8]) throws -> Void
    ) throws {
        let start = (try #require(number) - 1) * pageSize
        var page = Array(bytes[start..<(start + pageSize)])
        try change(&page)
        bytes.replaceSubrange(start..<(start + pageSize), with: page)
    }

    private static func file(
        autoVacuum: Int = 0, encoding: String = "UTF-8",
        _ change: (inout [UInt8], _ roots: [String: Int]) throws -> Void
    ) throws -> LegacyFile {
        let file = try LegacyFile {
            try $0.executeScript(
                text: """
                    PRAGMA page_size = \(pageSize); PRAGMA auto_vacuum = \(autoVacuum); PRAGMA encoding = '\(encoding)';
                    CREATE TABLE a(id INTEGER PRIMARY KEY, x); CREATE TABLE b(id INTEGER PRIMARY KEY, x);
                    CREATE TABLE long(id INTEGER PRIMARY KEY, x);
                    CREATE TABLE keyed(k PRIMARY KEY) WITHOUT ROWID /* was: (k, v) */;
                    CREATE TABLE words(k PRIMARY KEY) WITHOUT ROWID /* was: (k, v) */;
                    CREATE TRIGGER last AFTER INSERT ON a BEGIN DELETE FROM a WHERE id < 0; END;
                    WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
                    INSERT INTO a SELECT i, printf('a %090d', i) FROM n;
                    INSERT INTO b SELECT id, replace(x, 'a', 'b') FROM a;
                    INSERT INTO long VALUES (1, zeroblob(3200)), (2, randomblob(3200));
                    INSERT INTO keyed VALUES ('a'), ('b');
                    INSERT INTO words SELECT printf('%0100d', id) FROM a WHERE id <= 60;
                    """)
        }
        var roots: [String: Int] = [:]
        try file.readOriginal {
            try $0.forEachRow("SELECT name, rootpage FROM sqlite_master") {
                roots[try $0.get(at: 0)] = try $0.get(at: 1)
            }
        }
        var bytes = try Array(Data(contentsOf: URL(filePath: file.path)))
        try change(&bytes, roots)
        try Data(bytes).write(to: URL(filePath: file.path))
        return file
    }

    private static func isFinding(_ text: String) -> Bool {
        text.contains(" may be missing") && !text.contains("no row depends")
    }

    @Test(
        "An encryption keeps the plaintext original if rows may be hidden in it", arguments: damages,
        ProofReader.allCases)
    func keepsOriginal(damage: Damage, proof: ProofReader) throws {
        for (autoVacuum, encoding) in [(0, "UTF-8"), (1, "UTF-8"), (0, "UTF-16le"), (0, "UTF-16be")] {
            let file = try Self.file(autoVacuum: autoVacuum, encoding: encoding, damage.apply)
            let original = try Data(contentsOf: URL(filePath: file.path))
            let report = try file.upgrade(.rebuildIndexes, proof).run()
            #expect(report.outcome == .encrypted)
            #expect(report.warnings.contains(where: Self.isFinding), "\(report.warnings)")
            #expect(report.rebuiltIndexes == [])
            let backup = try #require(report.backup)
            #expect(try Data(contentsOf: URL(filePath: backup)) == original)
        }
    }

    @Test("With onDamage set to refuse, hidden rows are reported and nothing is changed", arguments: damages)
    func refuses(damage: Damage) throws {
        let file = try Self.file(damage.apply)
        let before = try file.digest()
        let error = try #require(try storeError { try file.upgrade(.refuse).run() })
        #expect(error.code == .corrupt)
        #expect(Self.isFinding(error.detail), "\(error.detail)")
        #expect(try file.digest() == before)
    }

    @Test("With onDamage set to recover, a database that hides rows is recovered", arguments: damages)
    func recovers(damage: Damage) throws {
        let file = try Self.file(damage.apply)
        let original = try Data(contentsOf: URL(filePath: file.path))
        let report = try file.upgrade(.recover).run()
        #expect(report.outcome == .recovered)
        #expect(try Data(contentsOf: URL(filePath: file.path + "-damaged")) == original)
    }

    @Test("With onDamage set to recover, a shadow proof reports that the database would be recovered")
    func shadowOfRecovery() throws {
        let file = try Self.file(Self.damages[0].apply)
        let before = try file.digest()
        let warnings = try file.upgrade(.recover).shadow().warnings
        #expect(warnings.contains { $0.hasPrefix("a real upgrade would recover the database") }, "\(warnings)")
        #expect(!warnings.contains { $0.contains("would keep the plaintext original") }, "\(warnings)")
        #expect(try file.digest() == before)
    }

    @Test("With onDamage set to recover, a database in use that hides rows is not encrypted", arguments: damages)
    func refusesInUse(damage: Damage) throws {
        let file = try Self.file(damage.apply)
        let finding = try file.refusalInUse(.recover)
        #expect(Self.isFinding(finding), "\(finding)")
    }

    @Test("An encryption of a database in use reports hidden rows as any other encryption does", arguments: damages)
    func reportsInUse(damage: Damage) throws {
        let (first, second) = (try Self.file(damage.apply), try Self.file(damage.apply))
        let (atRest, inUse) = (try first.upgrade(.rebuildIndexes).run(), try second.encryptInUse())
        #expect(inUse.damageWarnings == atRest.damageWarnings)
        #expect(inUse.backup != nil)
    }

    @Test("A recovery finds the rows that the header of a page does not count", arguments: uncounted)
    func recoversUncounted(damage: Damage) throws {
        let file = try Self.file(damage.apply)
        let report = try file.upgrade(.recover).run()
        #expect(report.recovery?.complete == false)
        let found = try file.read(key: TestKeys.raw()) {
            try $0.values(
                String.self,
                """
                SELECT count(*) || '' FROM b WHERE x = printf('b %090d', id) UNION ALL SELECT k FROM keyed
                UNION ALL SELECT name FROM sqlite_master WHERE type = 'trigger'
                """)
        }
        #expect(found == ["400", "a", "b", "last"])
    }

    @Test(
        "A database with tables but without a schema is refused, and nothing is changed",
        arguments: [OnDamage.refuse, .rebuildIndexes])
    func emptySchema(onDamage: OnDamage) throws {
        let file = try Self.file(Self.emptySchema.apply)
        let before = try file.digest()
        #expect(try storeError { try file.upgrade(onDamage).run() }?.code == .corrupt)
        #expect(try file.digest() == before)
    }

    @Test("An unused page without rows is no reason to keep the original", arguments: OnDamage.allCases)
    func unusedPage(onDamage: OnDamage) throws {
        let file = try Self.file { bytes, _ in
            bytes += [UInt8](repeating: 0, count: Self.pageSize)
            bytes.set32(28, UInt32(bytes.count / Self.pageSize))
        }
        guard onDamage != .refuse else {
            #expect(try storeError { try file.upgrade(onDamage).run() }?.code == .corrupt)
            return
        }
        let report = try file.upgrade(onDamage).run()
        #expect(report.outcome == .encrypted)
        #expect(report.backup == nil)
        #expect(report.warnings.besidesLeases == [])
    }

    // MARK: Cells

    /// A database with a row whose cell extends into the cell of another row.
    private static func overlappingCells(autoVacuum: Int = 1) throws -> LegacyFile {
        try file(autoVacuum: autoVacuum) { bytes, roots in
            var leaf: UInt32 = 0
            try changePage(roots["a"], of: &bytes) { leaf = $0.big32($0.cells[0]) }
            try changePage(Int(leaf), of: &bytes) { page in
                // The payload begins with the length of the header, NULL for the id, and the type of a text.
                let cell = page.cells[1]
                #expect(Array(page[cell..<(cell + 4)]) == [96, 2, 4, 0])
                page[cell] += 4
                page[cell + 5] += 8
            }
        }
    }

    @Test("Cells that overlap are reported, or refused")
    func overlap() throws {
        let file = try Self.overlappingCells()
        let report = try file.upgrade(.rebuildIndexes).run()
        #expect(
            report.warnings.contains { $0.contains("some of its rows may be wrong") && $0.contains("Multiple uses") },
            "\(report.warnings)")
        // Without auto-vacuum, SQLite's own check does not read the original.
        let unchecked = try Self.overlappingCells(autoVacuum: 0)
        let kept = try unchecked.upgrade(.rebuildIndexes).run()
        #expect(kept.warnings.contains(where: Self.isFinding) && kept.backup != nil, "\(kept.warnings)")
        let refused = try Self.overlappingCells()
        let before = try refused.digest()
        let error = try #require(try storeError { try refused.upgrade(.refuse).run() })
        #expect(error.code == .corrupt)
        #expect(Self.isFinding(error.detail), "\(error.detail)")
        #expect(try refused.digest() == before)
    }
}
