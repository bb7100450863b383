internal import CipherSQLite
import CipherTestSupport
import Foundation

/// B-trees, lists and logs with cyclic pages or with enormous claimed sizes.
extension HostileDatabase {
    private static let pageSize = 1024

    /// A database with pages of 1,024 bytes, which is edited as bytes before it is written.
    private static func bytes(
        _ name: String, _ outcome: String, _ script: String, _ edit: @escaping @Sendable (inout [UInt8]) throws -> Void
    ) -> HostileDatabase {
        HostileDatabase(name, outcome) { folder in
            try LegacyFile.write(folder.path("app.db"), script: "PRAGMA page_size = \(pageSize); \(script)")
            let url = URL(filePath: folder.path("app.db"))
            var bytes = [UInt8](try Data(contentsOf: url))
            try edit(&bytes)
            bytes.setBig32(UInt32(bytes.count / pageSize), at: 28)
            try Data(bytes).write(to: url)
        }
    }

    /// The content of an interior page's cell after its child: a rowid, or the record of an index.
    private enum Tree {
        case table, index

        var kind: UInt8 { self == .table ? 5 : 2 }
        var cell: [UInt8] { self == .table ? [1] : [5, 3, 1, 1, 1, 1] }
    }

    /// Returns an interior page whose branches, as many as fit, all lead to one page.
    private static func branches(to child: UInt32, header: Int = 0, _ tree: Tree = .table) -> [UInt8] {
        var page = [UInt8](repeating: 0, count: pageSize)
        let size = 4 + tree.cell.count
        let count = (pageSize - header - 12) / (size + 2)
        page[header] = tree.kind
        page.setBig16(count, at: header + 3)
        page.setBig16(pageSize - size * count, at: header + 5)
        page.setBig32(child, at: header + 8)
        for cell in 0..<count {
            let place = pageSize - size * (cell + 1)
            page.setBig16(place, at: header + 12 + 2 * cell)
            page.setBig32(child, at: place)
            page.replaceSubrange((place + 4)..<(place + size), with: tree.cell)
        }
        return page
    }

    /// Adds a chain of such pages, and returns the number of the first one.
    ///
    /// The last page leads to `leaf`.
    private static func chain(
        _ length: Int, to leaf: UInt32, _ bytes: inout [UInt8], _ tree: Tree = .table
    ) -> UInt32 {
        let first = UInt32(bytes.count / pageSize) + 1
        for number in 0..<UInt32(length) {
            bytes += branches(to: number + 1 == length ? leaf : first + number + 1, header: 0, tree)
        }
        return first
    }

    /// Gives endless entries to the tree whose root is this page.
    ///
    /// The root's leaf moves to the end.
    private static func multiply(_ root: Int, _ tree: Tree, _ bytes: inout [UInt8]) {
        let range = ((root - 1) * pageSize)..<(root * pageSize)
        bytes += bytes[range]
        let first = chain(8, to: UInt32(bytes.count / pageSize), &bytes, tree)
        bytes.replaceSubrange(range, with: branches(to: first, header: 0, tree))
    }

    static let trees: [HostileDatabase] = [
        bytes(
            "a table of few pages and endless rows", "corrupt",
            "CREATE TABLE t(a); INSERT INTO t VALUES ('a row of some length'); CREATE TABLE u(a);"
        ) { multiply(2, .table, &$0) },
        bytes(
            "an index of few pages and endless entries", "corrupt",
            "CREATE TABLE t(a); CREATE INDEX i ON t(a); INSERT INTO t VALUES (1);"
        ) { multiply(3, .index, &$0) },
        bytes(
            "a table WITHOUT ROWID of few pages and endless rows", "corrupt",
            "CREATE TABLE t(a, b, PRIMARY KEY(a, b)) WITHOUT ROWID; INSERT INTO t VALUES (1, 1);"
        ) { multiply(2, .index, &$0) },
        bytes(
            "a schema of few pages and endless entries", "corrupt",
            "CREATE TABLE t(a UNIQUE); INSERT INTO t VALUES (1);"
        ) {
            bytes in
            // The leaf of a schema with only its second entry, and a first branch to the complete leaf.
            let (leaf, rest) = schemaLeaves(Array(bytes[..<pageSize]))
            bytes += leaf + rest
            let count = UInt32(bytes.count / pageSize)
            let first = chain(8, to: count, &bytes)
            var root = branches(to: first, header: 100)
            root.replaceSubrange(0..<100, with: Array(bytes[..<100]))
            // The first cell is the first branch in order.
            root.setBig32(count - 1, at: root.big16(112))
            bytes.replaceSubrange(0..<pageSize, with: root)
        },
        bytes("a tree that leads back to its root", "corrupt", "CREATE TABLE t(a); INSERT INTO t VALUES (1);") {
            bytes in
            bytes.replaceSubrange(pageSize..<(2 * pageSize), with: branches(to: 2))
        },
        bytes(
            "a list of free pages that leads back to itself", "encrypted",
            "CREATE TABLE t(a); CREATE TABLE u(a); DROP TABLE u;"
        ) {
            bytes in
            bytes.setBig32(bytes.big32(32), at: Int(bytes.big32(32) - 1) * pageSize)
            bytes.setBig32(0x7fff_ffff, at: 36)
        },
        bytes(
            "an overflow chain that leads back to itself", "encrypted",
            "CREATE TABLE t(a); INSERT INTO t VALUES (zeroblob(9000));"
        ) {
            bytes in
            bytes.setBig32(4, at: 2 * pageSize)
            bytes.setBig32(3, at: 3 * pageSize)
        },
    ]

    /// Copies the schema's page to a leaf elsewhere, and also with only its last entry.
    private static func schemaLeaves(_ page: [UInt8]) -> (whole: [UInt8], last: [UInt8]) {
        var whole = page
        let cells = page.big16(103)
        // The b-tree header comes first on every page except page 1; the cells stay where they are.
        let header = Array(page[100..<(108 + 2 * cells)])
        whole.replaceSubrange(0..<header.count, with: header)
        for index in header.count..<100 { whole[index] = 0 }
        var last = whole
        last.setBig16(1, at: 3)
        last.setBig16(whole.big16(8 + 2 * (cells - 1)), at: 8)
        return (whole, last)
    }

    static let sizes: [HostileDatabase] = [
        HostileDatabase("a header that claims four billion pages", "corrupt") { folder in
            try edit(folder, "app.db", "CREATE TABLE t(a); INSERT INTO t VALUES (1);") {
                $0.setBig32(0xffff_fffe, at: 28)
            }
        },
        HostileDatabase("a log of a quarter of a gigabyte that holds nothing", "encrypted") { folder in
            try edit(folder, "app.db", "CREATE TABLE t(a); INSERT INTO t VALUES (1); PRAGMA journal_mode = WAL;") { _ in
            }
            var header = [UInt8](repeating: 0, count: 32)
            header.setBig32(0x377f_0682, at: 0)
            header.setBig32(3_007_000, at: 4)
            header.setBig32(4096, at: 8)
            try Data(header).write(to: URL(filePath: folder.path("app.db-wal")))
            try FileHandle(forWritingTo: URL(filePath: folder.path("app.db-wal"))).truncate(atOffset: 1 << 28)
        },
        entries("a hundred thousand views", 100_000, "view", "AS SELECT a FROM t", "corrupt"),
        entries("2,200 views, nearly the limit", 2_200, "view", "AS SELECT a FROM t", "encrypted"),
        entries("2,200 triggers", 2_200, "trigger", "AFTER INSERT ON t BEGIN SELECT 1; END", "encrypted"),
        entries("2,200 virtual tables", 2_200, "table", "USING rtree(a, b, c)", "encrypted"),
        HostileDatabase("thirty thousand tables", "encrypted", isSlow: true) { folder in
            // The pages are copies of the first one, and the entries are added at once, because each CREATE reads all
            // earlier entries.
            try edit(folder, "app.db", "PRAGMA page_size = 4096; CREATE TABLE t(a)") { bytes in
                let leaf = bytes[4096...]
                for _ in 1..<30_000 { bytes += leaf }
                bytes.setBig32(UInt32(bytes.count / 4096), at: 28)
            }
            let connection = try Connection(path: folder.path("app.db"), mode: .readWrite)
            defer { connection.close() }
            try connection.executeScript(
                """
                PRAGMA writable_schema = ON;
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 29999)
                INSERT INTO sqlite_master SELECT 'table', 't' || i, 't' || i, i + 2, 'CREATE TABLE t' || i || '(a)' FROM n;
                PRAGMA schema_version = 99
                """)
        },
        HostileDatabase(
            "32 MB of schema text", "encrypted", isSlow: true,
            "CREATE TABLE t(a, b DEFAULT '\(String(repeating: "x", count: 900_000))');"
                + (0..<36).map { "CREATE TABLE t\($0)(a, b DEFAULT '\(String(repeating: "x", count: 900_000))');" }
                .joined()),
    ]

    /// Adds schema entries that have no pages to a file that contains nothing else.
    private static func entries(
        _ name: String, _ count: Int, _ type: String, _ definition: String, _ outcome: String
    ) -> HostileDatabase {
        let create = type == "table" ? "VIRTUAL TABLE" : type.uppercased()
        return HostileDatabase(name, outcome, isSlow: true) { folder in
            try LegacyFile.write(
                folder.path("app.db"),
                script: """
                    CREATE TABLE t(a); PRAGMA writable_schema = ON;
                    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(count))
                    INSERT INTO sqlite_master
                    SELECT '\(type)', 'v' || i, \(type == "trigger" ? "'t'" : "'v' || i"), 0,
                        'CREATE \(create) v' || i || ' \(definition)' FROM n;
                    PRAGMA schema_version = 99
                    """)
        }
    }

    private static func edit(
        _ folder: TemporaryFolder, _ name: String, _ script: String, _ body: (inout [UInt8]) -> Void
    ) throws {
        try LegacyFile.write(folder.path(name), script: script)
        let url = URL(filePath: folder.path(name))
        var bytes = [UInt8](try Data(contentsOf: url))
        body(&bytes)
        try Data(bytes).write(to: url)
    }
}
