internal import CipherStore
import CipherSQLite
import CipherTestSupport
import Foundation

/// Damages indexes, free lists and pointer maps, on which no row depends, as determined by seeds.
///
/// Each file must be healed with every row, and be intact. If there are duplicates under a UNIQUE index, the file must
/// be refused with the index's name, and stay unchanged.
struct IndexDamageTrials {
    private enum Damage: String, CaseIterable {
        case missingEntries, extraEntry, wrongEntry, unorderedEntries
        case zeroPages, randomPages, lostRoot, rootElsewhere
        case freeList, pointerMap, pageInUseIsFree, pageFreeTwice
        case duplicates
    }

    private struct Count {
        var files = 0
        var healed = 0
        var named = 0
        var refused = 0
        var faults = 0
    }

    private var counts: [Damage: Count] = [:]
    private(set) var faults = 0

    /// Every combination of an index kind and a damage kind occurs once in this many trials.
    static let round = UInt64(IndexKind.all.count * Damage.allCases.count)

    mutating func run(from first: UInt64, count: UInt64) throws {
        for seed in first..<(first + count) { try trial(seed) }
        print("damage             files  healed with every row  index named  refused by name  faults")
        var sum = Count()
        for damage in Damage.allCases {
            let count = counts[damage] ?? Count()
            Self.tell(damage.rawValue, count)
            sum.files += count.files
            sum.healed += count.healed
            sum.named += count.named
            sum.refused += count.refused
            sum.faults += count.faults
        }
        Self.tell("sum", sum)
    }

    private static func tell(_ name: String, _ count: Count) {
        let numbers = zip([count.files, count.healed, count.named, count.refused, count.faults], [6, 23, 13, 17, 8])
        print(
            name.padding(toLength: 18, withPad: " ", startingAt: 0)
                + numbers.map { String(repeating: " ", count: max(0, $1 - "\($0)".count)) + "\($0)" }.joined())
    }

    private mutating func trial(_ seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let kinds = IndexKind.all
        let damage = Damage.allCases[Int(seed / UInt64(kinds.count)) % Damage.allCases.count]
        var kind = kinds[Int(seed) % kinds.count]
        if damage == .duplicates, kind.loose == nil { kind = random.pick(kinds.filter { $0.loose != nil }) }
        let folder = try TemporaryFolder(inMemory: true)
        let path = folder.path("app.db")
        try Self.make(path, kind, damage, &random)
        let before = try Self.dump(path, nil)
        try Self.damageBytes(path, kind, damage, &random)
        let digest = try FolderDigest(folder.url)
        var count = counts[damage] ?? Count()
        count.files += 1
        let fault: String?
        do {
            let report = try EncryptionUpgrade(path: path, provider: TestKeys.provider()).run()
            fault = damage == .duplicates ? "duplicates are in the copy" : try Self.fault(path, before)
            if fault == nil { count.healed += 1 }
            if report.rebuiltIndexes.contains(kind.indexName) { count.named += 1 }
        } catch let error as StoreError {
            let isNamed = error.code == .corrupt && error.detail.contains("index \(kind.indexName) ")
            fault =
                damage == .duplicates && isNamed
                ? try FolderDigest(folder.url) == digest ? nil : "refused, but changed" : "\(error)"
            if fault == nil { count.refused += 1 }
        }
        if let fault {
            count.faults += 1
            faults += 1
            print("trial \(seed), \(kind.name), \(damage): \(fault)")
        }
        counts[damage] = count
    }

    private static func dump(_ path: String, _ key: CipherKey?) throws -> DatabaseDump {
        let connection = try Connection(path: path, mode: .readWrite)
        defer { connection.close() }
        if let key { try connection.setKey(key, settings: CipherSettings()) }
        return try DatabaseDump(connection)
    }

    private static func fault(_ path: String, _ before: DatabaseDump) throws -> String? {
        let after = try dump(path, TestKeys.raw())
        guard after == before else { return "other rows: \(after.differences(from: before))" }
        let verification = try Verification.run(
            at: DatabasePaths(path), provider: TestKeys.provider(), formats: [CipherSettings()])
        return verification.isSound ? nil : "not sound: \(verification.complaints)"
    }

    // MARK: Files

    private static func make(
        _ path: String, _ kind: IndexKind, _ damage: Damage, _ random: inout SeededRandom
    ) throws {
        let vacuum =
            damage == .pointerMap
            ? random.pick([1, 2])
            : [.freeList, .pageInUseIsFree, .pageFreeTwice].contains(damage)
                ? random.pick([0, 0, 2]) : random.pick([0, 0, 1, 2])
        let rows = 300 + random.below(900)
        try LegacyFile.write(path) { connection in
            try connection.executeScript(
                text: """
                    PRAGMA page_size = \(random.pick([512, 1024, 4096])); PRAGMA auto_vacuum = \(vacuum);
                    PRAGMA encoding = '\(random.pick(["UTF-8", "UTF-8", "UTF-16le", "UTF-16be"]))';
                    CREATE TABLE before(x); \(kind.loose != nil && damage == .duplicates ? kind.loose?.table ?? "" : kind.table);
                    \(damage == .duplicates ? kind.loose?.index ?? "" : kind.index);
                    WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(rows))
                        INSERT INTO t(a, b) SELECT 'k' || i, i % 10 FROM n;
                    CREATE TABLE gone(x);
                    WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)
                        INSERT INTO gone SELECT zeroblob(900) FROM n;
                    DROP TABLE gone; INSERT INTO before VALUES ('kept'); PRAGMA user_version = 7;
                    """)
            switch damage {
            case .missingEntries, .extraEntry, .wrongEntry, .unorderedEntries:
                try changeEntries(connection, kind, damage, &random)
            case .rootElsewhere:
                let page = kind.key.hasSuffix("r") ? random.pick(["before", "t"]) : "before"
                try connection.editSchema(
                    "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = '\(page)') "
                        + "WHERE name = '\(kind.indexName)'")
            case .duplicates: try addDuplicates(connection, kind, &random)
            default: break
            }
        }
    }

    private static func changeEntries(
        _ connection: Connection, _ kind: IndexKind, _ damage: Damage, _ random: inout SeededRandom
    ) throws {
        let key = damage == .unorderedEntries ? kind.reversedKey : kind.key
        try connection.editSchema(
            """
            INSERT INTO sqlite_master(type, name, tbl_name, rootpage, sql)
            SELECT 'table', 'entries', 'entries', rootpage,
                'CREATE TABLE entries(\(kind.columns.joined(separator: ", ")), PRIMARY KEY(\(key))) WITHOUT ROWID'
            FROM sqlite_master WHERE name = '\(kind.indexName)'
            """)
        let change =
            switch damage {
            case .missingEntries:
                "DELETE FROM entries WHERE a IN (SELECT a FROM entries ORDER BY a LIMIT \(1 + random.below(100)))"
            case .extraEntry: "INSERT INTO entries VALUES (\(kind.stranger))"
            case .wrongEntry: "DELETE FROM entries WHERE a = 'k7'; INSERT INTO entries VALUES (\(kind.wrong))"
            default:
                "CREATE TEMP TABLE sorted AS SELECT * FROM entries; DELETE FROM entries; "
                    + "INSERT INTO entries SELECT * FROM sorted"
            }
        try connection.executeScript(text: change)
        try connection.editSchema("DELETE FROM sqlite_master WHERE name = 'entries'")
    }

    /// Adds rows with one key under an index that was not unique then.
    private static func addDuplicates(
        _ connection: Connection, _ kind: IndexKind, _ random: inout SeededRandom
    ) throws {
        try connection.executeScript(
            text: "INSERT INTO t(a, b) SELECT a, b FROM t WHERE a IN ('k3', 'k\(4 + random.below(100))')")
        let (name, sql) = kind.isAutomatic ? (kind.indexName, "NULL") : ("i", "'\(kind.index)'")
        try connection.editSchema(
            "UPDATE sqlite_master SET sql = \(sql), name = '\(name)' WHERE name = 'i'; "
                + "UPDATE sqlite_master SET sql = '\(kind.table)' WHERE name = 't'")
    }

    // MARK: Bytes

    private static func damageBytes(
        _ path: String, _ kind: IndexKind, _ damage: Damage, _ random: inout SeededRandom
    ) throws {
        var bytes = [UInt8](try Data(contentsOf: URL(filePath: path)))
        let size = bytes.big16(16)
        let trunk = Int(bytes.big32(32))
        let start = (trunk - 1) * size
        switch damage {
        case .zeroPages, .randomPages, .lostRoot:
            let places = try RowPlaces(path)
            let all = (places.pagesOfTrees[kind.indexName] ?? []).sorted()
            let pages =
                damage == .lostRoot ? [try root(of: kind, path)] : random.some(all.count, of: all) + [random.pick(all)]
            for page in pages {
                for place in Int(page - 1) * size..<Int(page) * size {
                    bytes[place] = damage == .zeroPages ? 0 : UInt8.random(in: 0...255, using: &random)
                }
            }
        case .freeList:
            switch random.below(4) {
            case 0: bytes.setBig32(0x7fff_ffff, at: 32)
            case 1: bytes.setBig32(random.pick([1, 0x7fff]), at: 36)
            case 2: bytes.setBig32(UInt32(trunk), at: start)
            default: bytes.setBig32(0x00ff_ffff, at: start + 4)
            }
        case .pageInUseIsFree:
            let page = try RowPlaces(path).pagesOfTrees[kind.indexName]?.sorted().last ?? 2
            bytes.setBig32(page, at: random.oneIn(3) ? 32 : start + 8)
        case .pageFreeTwice: bytes.setBig32(bytes.big32(start + 8), at: start + 12)
        case .pointerMap:
            for place in size..<(2 * size) where random.oneIn(2) {
                bytes[place] = UInt8.random(in: 0...255, using: &random)
            }
        default: return
        }
        try Data(bytes).write(to: URL(filePath: path))
    }

    private static func root(of kind: IndexKind, _ path: String) throws -> UInt32 {
        let connection = try Connection(path: path, mode: .readOnly)
        defer { connection.close() }
        return UInt32(
            try connection.value(Int64.self, "SELECT rootpage FROM sqlite_master WHERE name = \(kind.indexName)") ?? 2)
    }
}
