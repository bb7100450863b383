import CipherSQLite
import CipherStore
import CipherTestSupport
import Foundation

/// Damages databases by seeds, recovers them, and counts what came back: each row whose pages are whole must, with its rowid
/// and values, and no row that was not there.
struct RecoveryTrials {
    /// What one trial found.
    struct Count {
        var whole = 0
        var missing = 0
        var invented = 0
        /// Rows of pages in which bits were flipped, with another value: nothing tells in a plaintext file.
        var altered = 0

        static func += (left: inout Count, right: Count) {
            left.whole += right.whole
            left.missing += right.missing
            left.invented += right.invented
            left.altered += right.altered
        }
    }

    private enum Pattern: String, CaseIterable {
        case onePage, somePages, manyPages, noise, bits, cut, roots, interior, index, header, freeList
    }

    private let folder: TemporaryFolder
    private let shell = FileManager.default.isExecutableFile(atPath: "/usr/bin/sqlite3")
    private var counts: [Pattern: Count] = [:]
    private var others: [Pattern: Count] = [:]
    private(set) var faults = 0

    /// Whether the shell of SQLite was built with what `.recover` needs; Debian 12's was not.
    private let shellRecovers: Bool

    init() throws {
        folder = try TemporaryFolder(inMemory: true)
        let process = Process()
        process.executableURL = URL(filePath: "/bin/sh")
        process.arguments = [
            "-c", "sqlite3 :memory: 'CREATE TABLE t(a)' .recover 2>/dev/null | grep -q 'CREATE TABLE'",
        ]
        try process.run()
        process.waitUntilExit()
        shellRecovers = process.terminationStatus == 0
    }

    mutating func run(from first: UInt64, count: UInt64) throws {
        for seed in first..<(first + count) { try trial(seed) }
        if !shellRecovers { print("the shell here has no .recover: its columns are empty") }
        print(
            "pattern     rows of whole pages   missing  invented  altered   sqlite3 .recover: missing  invented  altered"
        )
        for pattern in Pattern.allCases {
            let (ours, theirs) = (counts[pattern] ?? Count(), others[pattern] ?? Count())
            print(
                pattern.rawValue.padding(toLength: 12, withPad: " ", startingAt: 0),
                [
                    ours.whole, ours.missing, ours.invented, ours.altered, theirs.missing, theirs.invented,
                    theirs.altered,
                ]
                .map { "\($0)" }.joined(separator: "\t"))
        }
    }

    private static func script(_ random: inout SeededRandom) -> String {
        let rows = 200 + random.below(1500)
        let counted = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(rows))"
        return """
            PRAGMA secure_delete = OFF; PRAGMA page_size = \(512 << random.below(4));
            \(random.oneIn(4) ? "PRAGMA auto_vacuum = FULL;" : "") BEGIN;
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
            COMMIT;
            """
    }

    private mutating func trial(_ seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let (path, output, template) = (folder.path("app.db"), folder.path("new.db"), folder.path("template.db"))
        for name in try folder.names { try FileManager.default.removeItem(atPath: folder.path(name)) }
        try LegacyFile.write(path, script: Self.script(&random))
        let places = try RowPlaces(path)
        let pattern = Pattern.allCases[Int(seed) % Pattern.allCases.count]
        var bytes = [UInt8](try Data(contentsOf: URL(filePath: path)))
        let size = Int(bytes[16]) << 8 | Int(bytes[17])
        let lost = Self.damage(&bytes, size, pattern, places, &random)
        // What of the schema is lost goes to lost_and_found without one.
        let hasTemplate = ![.cut, .bits, .freeList, .index].contains(pattern)
        if hasTemplate {
            try LegacyFile.write(template) { connection in
                let original = try Connection(path: path, mode: .readOnly)
                defer { original.close() }
                for sql in try original.values(
                    String.self, "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid")
                {
                    try connection.executeScript(text: sql)
                }
            }
        }
        try Data(bytes).write(to: URL(filePath: path))
        let report = try DatabaseConverter.recoverBlocking(
            URL(filePath: path), to: URL(filePath: output), keyProvider: TestKeys.provider(),
            template: hasTemplate ? URL(filePath: template) : nil)
        let connection = try Connection(path: output, mode: .readOnly, key: TestKeys.raw(), settings: CipherSettings())
        defer { connection.close() }
        let ours = Self.judge(try RowPlaces.rows(connection), places, lost, pattern)
        counts[pattern, default: Count()] += ours
        if ours.missing + ours.invented > 0 {
            faults += 1
            let rows = try RowPlaces.rows(connection)
            let missing = places.whole(without: lost).filter { rows[$0] != places.rows[$0] }
            let invented = rows.filter { !$0.key.table.hasPrefix("lost_and_found") && places.rows[$0.key] != $0.value }
            print(
                """
                trial \(seed), \(pattern): lost pages \(lost.sorted().prefix(20)) of \(bytes.count / size)
                    \(ours.missing) missing, such as \(missing.prefix(2).map { "\($0) of \(places.pages[$0] ?? [])" })
                    \(ours.invented) invented, such as \(invented.keys.prefix(2).map { "\($0): \(rows[$0]?.prefix(99) ?? "") for \(places.rows[$0]?.prefix(99) ?? "none")" })
                    roots \(places.roots), \(report)
                """)
        }
        if shell { others[pattern, default: Count()] += try judgeShell(path, places, lost, pattern) }
    }

    private static func damage(
        _ bytes: inout [UInt8], _ size: Int, _ pattern: Pattern, _ places: RowPlaces, _ random: inout SeededRandom
    ) -> Set<UInt32> {
        let pages = bytes.count / size
        func some(_ most: Int, of all: [UInt32]) -> Set<UInt32> {
            Set(random.some(most, of: all)).union([random.pick(all)])
        }
        let all = (2...UInt32(pages)).map { $0 }
        var lost: Set<UInt32>
        switch pattern {
        case .onePage, .noise: lost = [random.pick(all)]
        case .somePages: lost = some(6, of: all)
        case .manyPages: lost = some(pages / 3, of: all)
        case .roots: lost = some(2, of: places.roots.values.filter { $0 > 1 }.sorted())
        case .interior:
            let interior = places.interior.values.flatMap { $0 }.filter { $0 > 1 }.sorted()
            lost = interior.isEmpty ? [2] : some(3, of: interior)
        case .index:
            lost = some(10, of: (places.pagesOfTrees["person_name"] ?? [2]).sorted())
        case .header: lost = [1]
        case .freeList:
            let trunk = bytes[32..<36].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            lost = trunk > 1 ? [trunk] : [2]
        case .cut:
            let kept = 1 + random.below(pages)
            bytes.removeLast(bytes.count - kept * size)
            return Set((UInt32(kept) + 1)...(UInt32(pages) + 1))
        case .bits:
            lost = []
            for _ in 0...random.below(12) {
                let place = size + random.below(bytes.count - size)
                bytes[place] ^= UInt8(1 << random.below(8))
                lost.insert(UInt32(place / size + 1))
            }
            return lost
        }
        let isNoise = pattern == .noise || random.oneIn(3)
        for page in lost {
            for place in (Int(page - 1) * size)..<(Int(page) * size) {
                bytes[place] = isNoise ? UInt8.random(in: 0...255, using: &random) : 0
            }
        }
        return lost
    }

    private static func judge(
        _ found: [RowPlaces.Key: String], _ places: RowPlaces, _ lost: Set<UInt32>, _ pattern: Pattern
    ) -> Count {
        var count = Count()
        let whole = places.whole(without: lost)
        count.whole = whole.count
        count.missing = whole.filter { found[$0] != places.rows[$0] }.count
        for (key, value) in found where !key.table.hasPrefix("lost_and_found") && places.rows[key] != value {
            if pattern == .bits { count.altered += 1 } else { count.invented += 1 }
        }
        return count
    }

    /// The same of what the shell of SQLite makes of the file; nothing comes back where it fails.
    private func judgeShell(
        _ path: String, _ places: RowPlaces, _ lost: Set<UInt32>, _ pattern: Pattern
    ) throws -> Count {
        guard shellRecovers else { return Count() }
        let output = folder.path("shell.db")
        let process = Process()
        process.executableURL = URL(filePath: "/bin/sh")
        process.arguments = [
            "-c", "sqlite3 \"$0\" .recover 2>/dev/null | sqlite3 \"$1\" >/dev/null 2>&1", path, output,
        ]
        try process.run()
        process.waitUntilExit()
        guard let connection = try? Connection(path: output, mode: .readOnly) else {
            return Self.judge([:], places, lost, pattern)
        }
        defer { connection.close() }
        return Self.judge((try? RowPlaces.rows(connection)) ?? [:], places, lost, pattern)
    }
}
