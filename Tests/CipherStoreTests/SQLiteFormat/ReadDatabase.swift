internal import CipherSQLite
internal import CipherSQLiteFormat
import CipherTestSupport
import Foundation

/// A database's rows and index entries, as read by the page reader and by SQLite.
struct ReadDatabase: Equatable {
    /// The contents of each table and index by name, in their order.
    var trees: [String: [String]] = [:]

    /// Reads with the page reader.
    ///
    /// - Throws: ``DamagedPage`` if it finds any damage.
    init(_ source: some PageSource) throws {
        let claims = PageSet()
        for entry in try SchemaEntry.all(in: source, claims: claims, damage: { throw $0 }) where entry.rootPage > 0 {
            var cursor = TreeCursor(source, root: entry.rootPage, claims: claims)
            var lines: [String] = []
            while let cell = try cursor.next() {
                var record = try RecordReader(cursor.payload(of: cell), page: cell.page)
                var values: [String] = cursor.isOfTable == true ? ["\(cell.rowid)"] : []
                while let value = try record.next() { values.append(Self.text(value)) }
                lines.append(values.joined(separator: ","))
            }
            trees[String(decoding: entry.name.filter { $0 != 0 }, as: UTF8.self)] = lines
        }
    }

    private static func text(_ value: RecordValue) -> String {
        switch value {
        case .null: "null"
        case .integer(let number): "\(number)"
        // A REAL with an integral value may be stored as an integer.
        case .real(let number): Int64(exactly: number).map { "\($0)" } ?? "\(number.bitPattern)r"
        case .text(let bytes): "t" + Data(bytes).base64EncodedString()
        case .blob(let bytes): "b" + Data(bytes).base64EncodedString()
        }
    }

    /// Reads with SQLite.
    ///
    /// - Parameter queries: For each table and index, the columns of its records in order, and their source.
    init(_ connection: Connection, _ queries: [String: Query]) throws {
        for (name, query) in queries {
            let columns = query.columns.map {
                "typeof(\($0)), CASE typeof(\($0)) WHEN 'text' THEN CAST(\($0) AS BLOB) ELSE \($0) END"
            }
            var lines: [String] = []
            try connection.forEachRow(SQL(text: "SELECT \(columns.joined(separator: ", ")) FROM \(query.from)")) {
                row in
                var values: [String] = []
                for index in 0..<query.columns.count {
                    let type = try row.get(String.self, at: 2 * index)
                    // The key of a table is its rowid, and is NULL in its record.
                    values.append(query.nulls.contains(index) ? "null" : Self.text(row.value(at: 2 * index + 1), type))
                }
                lines.append(values.joined(separator: ","))
            }
            trees[name] = lines
        }
    }

    private static func text(_ value: Value, _ type: String) -> String {
        switch value {
        case .null: "null"
        case .integer(let number): "\(number)"
        case .real(let number): Int64(exactly: number).map { "\($0)" } ?? "\(number.bitPattern)r"
        case .blob(let bytes): (type == "text" ? "t" : "b") + Data(bytes).base64EncodedString()
        case .text: "text"
        }
    }

    /// The query for the contents of one b-tree.
    struct Query {
        let columns: [String]
        let from: String
        /// The columns that are NULL in the record.
        var nulls: Set<Int> = []
    }

    /// Describes briefly where two differ.
    func difference(from other: ReadDatabase) -> String? {
        guard self != other else { return nil }
        for name in Set(trees.keys).union(other.trees.keys).sorted() {
            guard let mine = trees[name], let theirs = other.trees[name] else { return "\(name) is in one alone" }
            for (one, two) in zip(mine, theirs) where one != two {
                return "\(name): \(one.prefix(200)) <> \(two.prefix(200))"
            }
            if mine.count != theirs.count { return "\(name): \(mine.count) <> \(theirs.count)" }
        }
        return "?"
    }
}

/// A database whose structure a seed determines.
struct GeneratedDatabase {
    let pageSize: Int
    let reserved: Int
    let script: String
    let encoding: String
    let vacuum: String
    var queries: [String: ReadDatabase.Query] = [:]

    init(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        pageSize = random.pick([512, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536])
        reserved = random.oneIn(2) ? 0 : random.below(min(255, pageSize - 480) + 1)
        encoding = random.pick(["UTF-8", "UTF-16le", "UTF-16be"])
        vacuum = random.pick(["NONE", "FULL", "INCREMENTAL"])
        var lines: [String] = []
        let sizes = [0, 1, 30, 57, 58, 300, pageSize / 4, pageSize, 3 * pageSize]
        for number in 0..<(1 + random.below(3)) {
            let (table, rows) = ("t\(number)", random.pick([0, 1, 5, 60, 400]))
            let isKeyed = random.oneIn(3)
            let declaration =
                isKeyed
                ? "a, b, c, d REAL, PRIMARY KEY(b, a)) WITHOUT ROWID"
                : random.oneIn(2)
                    ? "a, b, c, d REAL)" : "a INTEGER PRIMARY KEY, b, c, d REAL)"
            let isAlias = declaration.hasPrefix("a INTEGER")
            lines.append("CREATE TABLE \(table)(\(declaration)")
            let order = random.pick(["", " DESC", " COLLATE NOCASE"])
            // On a table WITHOUT ROWID, an index record ends with the key columns that it does not already contain.
            let ending = isKeyed ? ["b", "a"] : ["rowid"]
            let index = "i\(number)"
            lines.append("CREATE INDEX \(index) ON \(table)(c\(order), d) WHERE d IS NOT 7")
            for row in 0..<rows {
                let size = random.oneIn(6) ? random.pick(sizes) : random.below(40)
                let values = (0..<3).map { _ in Self.value(size, &random) }
                let key =
                    isAlias
                    ? "\(Int64(bitPattern: random.next()) >> Int64(random.below(60)))" : "'\(row)' || \(values[0])"
                lines.append(
                    "INSERT OR IGNORE INTO \(table) VALUES (\(key), \(row % 7), \(values[1]), \(row % 9 * 2) / 4.0)")
            }
            if random.oneIn(2) { lines.append("DELETE FROM \(table) WHERE d < \(random.below(5))") }
            // Existing rows have no value for the new column.
            if random.oneIn(3), !isKeyed {
                lines.append("ALTER TABLE \(table) ADD COLUMN e; UPDATE \(table) SET e = NULL")
                queries[table] = ReadDatabase.Query(
                    columns: ["rowid", "a", "b", "c", "d", "e"], from: "\(table) NOT INDEXED ORDER BY rowid",
                    nulls: isAlias ? [1] : [])
            } else {
                queries[table] = ReadDatabase.Query(
                    columns: isKeyed ? ["b", "a", "c", "d"] : ["rowid", "a", "b", "c", "d"],
                    from: isKeyed ? "\(table) NOT INDEXED ORDER BY b, a" : "\(table) NOT INDEXED ORDER BY rowid",
                    nulls: isAlias ? [1] : [])
            }
            queries[index] = ReadDatabase.Query(
                columns: ["c", "d"] + ending,
                from:
                    "\(table) INDEXED BY \(index) WHERE d IS NOT 7 ORDER BY c\(order), d, \(ending.joined(separator: ", "))"
            )
        }
        if random.oneIn(3) {
            lines.append("CREATE TABLE gone(a); INSERT INTO gone SELECT zeroblob(\(pageSize) * 150); DROP TABLE gone")
        }
        lines.append("CREATE VIEW v AS SELECT 1")
        script = (["BEGIN"] + lines + ["COMMIT"]).joined(separator: ";\n")
    }

    private static func value(_ size: Int, _ random: inout SeededRandom) -> String {
        switch random.below(6) {
        case 0: return "NULL"
        case 1: return "\(Int64(bitPattern: random.next()) >> Int64(random.below(64)))"
        case 2: return "\(random.below(1000)).\(random.below(1000))"
        case 3: return "zeroblob(\(size))"
        case 4: return "CAST(x'\(String(repeating: "c3a9f0", count: min(200, size / 3 + 1)))' AS TEXT)"
        default: return "substr('\(random.next())' || hex(zeroblob(\(size))), 1, \(size))"
        }
    }

    /// Makes the file; `body` may change it further.
    func write(_ path: String, _ body: (Connection) throws -> Void = { _ in }) throws {
        try Self.begin(path, pageSize: pageSize, reserved: reserved, vacuum: vacuum)
        try LegacyFile.write(path) { connection in
            try connection.executeScript(text: "PRAGMA encoding = '\(encoding)'; PRAGMA synchronous = OFF; \(script)")
            try body(connection)
        }
    }

    /// Makes an empty database with reserved bytes on each page, which SQLite then keeps.
    static func begin(_ path: String, pageSize: Int, reserved: Int, vacuum: String = "NONE") throws {
        try LegacyFile.write(path) { connection in
            try connection.executeScript(
                text: "PRAGMA page_size = \(pageSize); PRAGMA auto_vacuum = \(vacuum); PRAGMA user_version = 1")
        }
        var bytes = [UInt8](try Data(contentsOf: URL(filePath: path)))
        bytes[20] = UInt8(reserved)
        let content = pageSize - reserved
        bytes[105] = UInt8(truncatingIfNeeded: content >> 8)
        bytes[106] = UInt8(truncatingIfNeeded: content)
        try Data(bytes).write(to: URL(filePath: path))
    }
}
