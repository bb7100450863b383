internal import CipherErrors
internal import CipherSQLite
internal import CipherSQLiteFormat
import CipherTestSupport
import Foundation
import Testing

/// Compares the check of a database's b-trees with SQLite's own check.
@Suite struct StructureCheckTests {
    private let folder = try? TemporaryFolder(inMemory: true)

    /// Whether the page reader finds no damage.
    private static func isSound(_ bytes: [UInt8]) throws -> Bool {
        let held = HeldBytes(bytes)
        guard let header = try FileHeader(of: held), let pages = try FilePages(held) else { return false }
        do {
            try StructureCheck(pages).run(header)
            return true
        } catch is DamagedPage {
            return false
        }
    }

    /// Whether SQLite finds damage in a tree or the free list, or an unreferenced page.
    private func isFaulty(_ bytes: [UInt8]) throws -> Bool {
        let path = try #require(folder).path("changed.db")
        try Data(bytes).write(to: URL(filePath: path))
        do {
            let connection = try ConnectionProfile.inspecting(Int64(bytes.count)).open(path)
            defer { connection.close() }
            var lines: [Substring] = []
            try connection.forEachRow("PRAGMA quick_check(100)") { row in
                let text = try row.get(String.self, at: 0)
                if text.hasPrefix("*** in database") { lines += text.split(separator: "\n").dropFirst() }
            }
            return !lines.isEmpty
        } catch is DatabaseError {
            return true
        }
    }

    @Test("Whichever pages are exchanged, no fault that SQLite finds is missed", arguments: 0..<6)
    func pagesExchanged(part: UInt64) throws {
        var (sound, faulty) = (0, 0)
        // The check leaves pointer maps and names in UTF-16 to SQLite.
        let databases = (part * 1_000..<part * 1_000 + 1_000).lazy.map { ($0, GeneratedDatabase(seed: $0)) }
            .filter { $1.vacuum == "NONE" && $1.encoding == "UTF-8" }.prefix(12)
        for (seed, database) in databases {
            let path = try #require(folder).path("\(seed).db")
            try database.write(path) { _ in }
            let bytes = [UInt8](try Data(contentsOf: URL(filePath: path)))
            #expect(try Self.isSound(bytes), "seed \(seed)")
            sound += 1
            let pageCount = bytes.count / database.pageSize
            guard pageCount > 2 else { continue }
            var random = SeededRandom(seed: seed)
            for _ in 0..<12 {
                let (one, two) = (1 + random.below(pageCount - 1), 1 + random.below(pageCount - 1))
                let (first, second) = (one * database.pageSize, two * database.pageSize)
                var changed = bytes
                changed.replaceSubrange(
                    first..<first + database.pageSize, with: bytes[second..<second + database.pageSize])
                if random.oneIn(2) {
                    changed.replaceSubrange(
                        second..<second + database.pageSize, with: bytes[first..<first + database.pageSize])
                }
                guard try isFaulty(changed) else { continue }
                faulty += 1
                #expect(try !Self.isSound(changed), "seed \(seed), page \(two + 1) as page \(one + 1)")
            }
        }
        #expect(sound == 12 && faulty > 10)
    }

    @Test("A free list shorter than the header states, and a chain that is too long, are faults")
    func counts() throws {
        let path = try #require(folder).path("counts.db")
        let connection = try Connection(path: path, mode: .create)
        for table in ["t", "u"] {
            try connection.execute(SQL(text: "CREATE TABLE \(table)(a)"))
            try connection.execute(SQL(text: "INSERT INTO \(table) VALUES (zeroblob(20000))"))
        }
        try connection.execute("DROP TABLE u")
        connection.close()
        let bytes = [UInt8](try Data(contentsOf: URL(filePath: path)))
        #expect(try Self.isSound(bytes))
        var shorter = bytes
        shorter[39] -= 1
        #expect(try !Self.isSound(shorter) && isFaulty(shorter))
        // The last page of the blob, which is the only chain in use, names a further page.
        let header = try #require(try FileHeader(of: HeldBytes(bytes)))
        let usage = try PageUsage(of: try #require(try FilePages(HeldBytes(bytes))), header: header)
        let chain = (1...UInt32(bytes.count / header.pageSize)).filter { page in
            if case .overflow = usage[page] { true } else { false }
        }
        let last = try #require(
            chain.first { page in
                let start = (Int(page) - 1) * header.pageSize
                return bytes[start..<start + 4].allSatisfy { $0 == 0 }
            })
        var longer = bytes
        longer[(Int(last) - 1) * header.pageSize + 3] = 2
        // SQLite 3.15 does not check this.
        #expect(try !Self.isSound(longer))
    }

    @Test("An unreferenced page, a b-tree of another kind and a virtual table do not pass as sound")
    func kinds() throws {
        let path = try #require(folder).path("kinds.db")
        func write(_ script: String...) throws -> [UInt8] {
            try? FileManager.default.removeItem(atPath: path)
            let connection = try Connection(path: path, mode: .create)
            for statement in script { try connection.execute(SQL(text: statement)) }
            connection.close()
            return [UInt8](try Data(contentsOf: URL(filePath: path)))
        }
        let table = ["CREATE TABLE t(a, without_rowid)", "CREATE INDEX i ON t(a)", "INSERT INTO t VALUES (1, 2)"]
        let sound = try write(table[0], table[1], table[2])
        #expect(try Self.isSound(sound))
        // The header counts one more page.
        var longer = sound + [UInt8](repeating: 0, count: sound.count / 3)
        longer[31] += 1
        #expect(try !Self.isSound(longer) && isFaulty(longer))
        #expect(
            try !Self.isSound(
                write(
                    table[0], table[1], table[2], "PRAGMA writable_schema = ON",
                    "UPDATE sqlite_master SET rootpage = 5 - rootpage")))
        let keyed = "CREATE TABLE k(a PRIMARY KEY, b) WITHOUT ROWID"
        #expect(try Self.isSound(write(keyed)))
        #expect(
            try !Self.isSound(
                write(
                    keyed, table[0], "PRAGMA writable_schema = ON",
                    "UPDATE sqlite_master SET rootpage = 5 - rootpage")))
        #expect(try !Self.isSound(write("CREATE VIRTUAL TABLE f USING fts4(a)")))
    }
}
