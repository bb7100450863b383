import CipherSQLite
import CipherStore
import CipherTestSupport
import Foundation

/// Damages databases as determined by seeds, recovers them, and counts the recovered rows.
///
/// Each row whose pages are intact must be recovered with its rowid and values, and no row may appear that did not
/// exist.
struct RecoveryTrials {
    /// The results of the trials of one pattern.
    private struct Count {
        var files = 0
        /// Rows of which no page is lost.
        var whole = 0
        /// Intact rows that are in `lost_and_found` instead of their tables.
        var apart = 0
        /// The rows in `lost_and_found` that may have been deleted, as far as the file shows.
        var undecidable = 0
        /// Intact rows that are nowhere.
        var missing = 0
        /// Rows that did not exist, or that had other values.
        var invented = 0

        var back: Int { whole - apart - missing }

        static func += (left: inout Count, right: Count) {
            left.files += right.files
            left.whole += right.whole
            left.apart += right.apart
            left.undecidable += right.undecidable
            left.missing += right.missing
            left.invented += right.invented
        }
    }

    private typealias Rows = [RowPlaces.Key: String]

    private let folder: TemporaryFolder
    private let shell: RecoveryShell?
    private var counts: [DamagePattern: Count] = [:]
    private var others: [DamagePattern: Count] = [:]
    private(set) var faults = 0

    /// - Parameter shell: The shell whose `.recover` is compared; `nil` for the one from `Scripts/engine`, or the
    ///   system's.
    init(shell: String?) throws {
        folder = try TemporaryFolder(inMemory: true)
        self.shell = try RecoveryShell(shell)
    }

    mutating func run(from first: UInt64, count: UInt64) throws {
        for seed in first..<(first + count) { try trial(seed) }
        print(".recover of \(shell?.path ?? "no shell, because none here has the command")")
        Self.row([
            "pattern", "files", "whole", "back", "apart", "undecidable", "missing", "invented", ".recover: back",
            "elsewhere", "invented",
        ])
        for pattern in DamagePattern.allCases {
            tell(pattern.rawValue, counts[pattern] ?? Count(), others[pattern] ?? Count())
        }
        tell(
            "all", counts.values.reduce(into: Count()) { $0 += $1 }, others.values.reduce(into: Count()) { $0 += $1 })
    }

    private func tell(_ name: String, _ ours: Count, _ theirs: Count) {
        let numbers =
            [ours.files, ours.whole, ours.back, ours.apart, ours.undecidable, ours.missing, ours.invented]
            + (shell == nil ? [] : [theirs.back, theirs.apart, theirs.invented])
        Self.row([name] + numbers.map(String.init))
    }

    private static func row(_ cells: [String]) {
        print(
            cells.enumerated().map { column, cell in
                let width = column == 0 ? 10 : column == 8 ? 15 : 11
                let space = String(repeating: " ", count: max(0, width - cell.count))
                return column == 0 ? cell + space : space + cell
            }.joined())
    }

    // MARK: Databases

    private static func script(_ random: inout SeededRandom) -> String {
        let rows = 200 + random.below(1500)
        let counted = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(rows))"
        return """
            PRAGMA secure_delete = OFF; PRAGMA page_size = \(512 << random.below(4));
            PRAGMA auto_vacuum = \(random.pick(["NONE", "NONE", "FULL", "INCREMENTAL"])); BEGIN;
            CREATE TABLE person(id INTEGER PRIMARY KEY, name TEXT NOT NULL, born REAL, photo BLOB);
            CREATE INDEX person_name ON person(name);
            CREATE TABLE visit(person INTEGER, note TEXT, at INTEGER, place TEXT);
            CREATE TABLE word(text TEXT PRIMARY KEY, number INTEGER, a, b, c) WITHOUT ROWID;
            CREATE TABLE setting(key TEXT UNIQUE, value, kind INTEGER, since REAL, owner TEXT, scope TEXT);
            \(counted) INSERT INTO person SELECT i * 3, 'name ' || i, i / 2.0,
                CASE i % 40 WHEN 0 THEN randomblob(200 + i % 7 * 1500) END FROM n;
            \(counted) INSERT INTO visit SELECT i % 50, hex(randomblob(15)), i, 'place ' || (i % 9) FROM n;
            \(counted) INSERT INTO word SELECT 'word ' || i, i, i % 3, i / 7.0, hex(randomblob(4)) FROM n;
            \(counted) INSERT INTO setting SELECT 'key ' || i, i, i % 5, i / 3.0, 'owner', 'scope ' || i FROM n WHERE i < 150;
            COMMIT; BEGIN; DELETE FROM visit WHERE at % 700 BETWEEN 100 AND 220; DELETE FROM person WHERE id BETWEEN 300 AND 420;
            COMMIT; \(deletions(rows, &random))
            """
    }

    /// Frees the pages of whole trees, including interior ones, and reuses some of them.
    private static func deletions(_ rows: Int, _ random: inout SeededRandom) -> String {
        switch random.below(5) {
        case 0: "DELETE FROM visit WHERE at < \(rows * 2 / 3);"
        case 1: "DELETE FROM visit; INSERT INTO visit SELECT id, name, id, 'new' FROM person LIMIT 20;"
        case 2: "DELETE FROM person WHERE id > \(rows); DELETE FROM word WHERE number > \(rows / 3);"
        default: ""
        }
    }

    private mutating func trial(_ seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let (path, output) = (folder.path("app.db"), folder.path("new.db"))
        for name in try folder.names { try FileManager.default.removeItem(atPath: folder.path(name)) }
        try LegacyFile.write(path, script: Self.script(&random))
        let places = try RowPlaces(path)
        let pattern = DamagePattern.allCases[Int(seed) % DamagePattern.allCases.count]
        let template = pattern.losesSchema ? try makeTemplate(of: path) : nil
        var bytes = [UInt8](try Data(contentsOf: URL(filePath: path)))
        let size = Int(bytes[16]) << 8 | Int(bytes[17])
        let lost = pattern.damage(&bytes, pageSize: size, places, &random)
        try Data(bytes).write(to: URL(filePath: path))
        let report = try DatabaseConverter.recoverBlocking(
            URL(filePath: path), to: URL(filePath: output), keyProvider: TestKeys.provider(),
            template: template.map { URL(filePath: $0) })
        let connection = try Connection(path: output, mode: .readOnly, key: TestKeys.raw(), settings: CipherSettings())
        defer { connection.close() }
        let rows = try RowPlaces.rows(connection)
        let ours = Self.judge(rows, places, lost)
        counts[pattern, default: Count()] += ours
        if ours.missing + (ours.apart - ours.undecidable) + (pattern == .bits ? 0 : ours.invented) > 0 {
            faults += 1
            Self.explain(seed, pattern, rows, places, lost, pages: bytes.count / size)
            print("    \(report.notes) \(report.lostAndFound.map { "\($0)" } ?? "")")
        }
        guard let shell else { return }
        let theirs = try shell.recovered(path, to: folder.path("shell.db"))
        others[pattern, default: Count()] += Self.judge(theirs, places, lost)
    }

    private func makeTemplate(of path: String) throws -> String {
        let template = folder.path("template.db")
        try LegacyFile.write(template) { connection in
            let original = try Connection(path: path, mode: .readOnly)
            defer { original.close() }
            for sql in try original.values(
                String.self, "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid")
            {
                try connection.executeScript(text: sql)
            }
        }
        return template
    }

    // MARK: Judging

    private static func isApart(_ key: RowPlaces.Key) -> Bool { key.table.hasPrefix("lost_and_found") }

    private static func judge(_ found: Rows, _ places: RowPlaces, _ lost: Set<UInt32>) -> Count {
        var count = Count(files: 1)
        let apart = Set(found.filter { isApart($0.key) }.values.map(apartText))
        for key in places.whole(without: lost) {
            count.whole += 1
            guard let row = places.rows[key], found[key] != row else { continue }
            guard apart.contains(apartText(key, row)) else {
                count.missing += 1
                continue
            }
            count.apart += 1
            if !isDecidable(key, places, lost) { count.undecidable += 1 }
        }
        for (key, value) in found where !isApart(key) && places.rows[key] != value { count.invented += 1 }
        return count
    }

    /// Returns whether anything that is left shows that a row existed, and to which table it belonged.
    ///
    /// This is the list of free pages together with the schema or one whole tree, or an index that names the row. If the
    /// list is lost, an index without all of the row's values does not show that the row is not an old version.
    private static func isDecidable(_ key: RowPlaces.Key, _ places: RowPlaces, _ lost: Set<UInt32>) -> Bool {
        let isListLost = !places.freeTrunks.isDisjoint(with: lost) && !places.freeLeaves.isEmpty
        let isInParts = lost.contains(1) && !places.interior[key.table, default: []].isDisjoint(with: lost)
        guard isListLost || isInParts else { return true }
        // The chain that a pointer map shows from a page to all pages above it.
        if places.isMapped(key, without: lost) { return true }
        return !isListLost && places.entries[key]?.contains { $0.isDisjoint(with: lost) } ?? false
    }

    /// A row of `lost_and_found` without the columns that only that table has: the rowid and the values.
    private static func apartText(_ row: String) -> String {
        let values = row.split(separator: "|", omittingEmptySubsequences: false).dropFirst(3)
        return trimmed(Array(values))
    }

    private static func apartText(_ key: RowPlaces.Key, _ row: String) -> String {
        var values = row.split(separator: "|", omittingEmptySubsequences: false)
        // The value that replaces the rowid is NULL in the record.
        if key.table == "person" { values[0] = "null" }
        return trimmed([key.table == "word" ? "null" : "integer(\(key.key))"] + values)
    }

    private static func trimmed(_ values: [Substring]) -> String {
        var values = values[...]
        while values.last == "null" { values.removeLast() }
        // SQLite stores a whole number as an integer.
        return values.map { $0.replacing(".0)", with: ")").replacing("real(", with: "integer(") }.joined(separator: "|")
    }

    private static func explain(
        _ seed: UInt64, _ pattern: DamagePattern, _ found: Rows, _ places: RowPlaces, _ lost: Set<UInt32>, pages: Int
    ) {
        let missing = places.whole(without: lost).filter {
            found[$0] != places.rows[$0] && isDecidable($0, places, lost)
        }
        let invented = found.filter { !isApart($0.key) && places.rows[$0.key] != $0.value }
        print("trial \(seed), \(pattern): lost pages \(lost.sorted().prefix(20)) of \(pages), roots \(places.roots)")
        for key in missing.prefix(2) {
            print("    \(missing.count) missing, such as \(key) of \(places.pages[key] ?? [])")
        }
        for (key, row) in invented.prefix(2) {
            print("    \(invented.count) invented, such as \(key): \(row.prefix(99)) for \(places.rows[key] ?? "none")")
        }
    }
}
