internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
internal import CipherSystemFiles
import CipherTestSupport
import Foundation
import Testing

/// Connections of other programs that were opened before the swap.
///
/// If the system reports them, no conversion begins.
struct OldConnectionTests {
    private static let holder = TestProgram.built("CipherLockHolder")
    private static var isPossible: Bool { holder.isThere && LinuxCalls.areUsed }

    /// How another program uses the file, as lines for `CipherLockHolder`.
    struct Use: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let lines: [String]
        /// The lines for its turn, before it writes.
        var end: [String] = []

        static let all: [Use] =
            [Use(testDescription: "has opened it", lines: [])]
            + ["DELETE", "TRUNCATE", "PERSIST", "MEMORY", "OFF"].flatMap { mode in
                let set = "PRAGMA journal_mode = \(mode)"
                let read = "SELECT count(*) FROM t"
                return [
                    Use(testDescription: "\(mode), idle", lines: [set, read]),
                    Use(
                        testDescription: "\(mode), in a read transaction", lines: [set, "BEGIN", read], end: ["COMMIT"]),
                    Use(testDescription: "\(mode), a half-read cursor", lines: [set, "half SELECT a FROM t"]),
                    Use(
                        testDescription: "\(mode), exclusive after a read",
                        lines: [set, "PRAGMA locking_mode = EXCLUSIVE", read]),
                    Use(
                        testDescription: "\(mode), writing",
                        lines: [set, "BEGIN IMMEDIATE", "INSERT INTO t VALUES ('early')"], end: ["COMMIT"]),
                ]
            }
    }

    @Test(
        "A rollback-mode file that another program has open, even idle, is not converted, and every write is kept",
        .enabled(if: isPossible), arguments: Conversions.allCases, Use.all)
    func rollback(_ conversion: Conversions, use: Use) throws {
        try refuses(conversion, journal: "DELETE", use)
    }

    @Test(
        "A WAL file that another program has open but has not read is not converted, and every write is kept",
        .enabled(if: isPossible), arguments: Conversions.allCases, [[], ["SELECT count(*) FROM t"]])
    func writeAheadLog(_ conversion: Conversions, lines: [String]) throws {
        try refuses(conversion, journal: "WAL", Use(testDescription: "WAL", lines: lines))
    }

    private func refuses(_ conversion: Conversions, journal: String, _ use: Use) throws {
        let file = try conversion.file(journal: journal)
        let other = try Self.holder.start(["sql", file.path] + conversion.oldKeyArgument)
        #expect(try other.line() == "ready")
        for line in use.lines { #expect(try other.ask(line).hasPrefix("ok")) }
        let before = try file.digest()
        let error = try #require(try storeError { try conversion.run(file) })
        #expect(error.code == .busy)
        #expect(error.detail.contains("\(other.processID) (\(Self.holder.processName))"), "\(error)")
        #expect(try file.digest() == before)
        for line in use.end { #expect(try other.ask(line) == "ok") }
        #expect(try other.ask("INSERT INTO t VALUES ('late')") == "ok")
        #expect(try other.wait().status == 0)
        #expect(try conversion.run(file).besidesLeases.isEmpty)
        #expect(try conversion.values(file, "SELECT a FROM t WHERE a = 'late'") == ["late"])
    }

    @Test(
        "A file that the same process has open is not converted, whoever opened it",
        arguments: Conversions.allCases, [true, false])
    func ownProcess(_ conversion: Conversions, isConnection: Bool) throws {
        let file = try conversion.file(journal: "DELETE")
        let before = try file.digest()
        do {
            let connection = try isConnection ? conversion.oldConnection(file) : nil
            // Another SQLite library in this process has a descriptor that ours does not know.
            let descriptor = isConnection ? nil : try FileHandle(forReadingFrom: URL(filePath: file.path))
            defer {
                connection?.close()
                try? descriptor?.close()
            }
            _ = try connection?.value(Int.self, "SELECT count(*) FROM t")
            let error = try #require(try storeError { try conversion.run(file) })
            #expect(error.code == .busy)
            #expect(error.detail.contains("this process"))
        }
        #expect(try file.digest() == before)
        #expect(try conversion.run(file).besidesLeases.isEmpty)
    }

    @Test(
        "A program that opens the file during the conversion is detected before the swap, and the file is unchanged",
        .enabled(if: isPossible), arguments: Conversions.allCases, ["DELETE", "WAL"])
    func meanwhile(_ conversion: Conversions, journal: String) throws {
        let file = try conversion.file(journal: journal)
        let late = Late()
        let error = try #require(
            try storeError {
                try conversion.run(file) { progress in
                    guard progress.stage == .proving else { return }
                    late.open { try Self.holder.start(["sql", file.path] + conversion.oldKeyArgument) }
                }
            })
        #expect(error.code == .busy)
        let other = try #require(late.program)
        #expect(error.detail.contains("\(other.processID) (\(Self.holder.processName))"), "\(error)")
        #expect(try other.ask("INSERT INTO t VALUES ('late')") == "ok")
        #expect(try other.wait().status == 0)
        #expect(try conversion.run(file).besidesLeases.isEmpty)
        #expect(try conversion.values(file, "SELECT a FROM t WHERE a = 'late'") == ["late"])
    }

    /// Another program that is started once, within an upgrade.
    private final class Late: @unchecked Sendable {
        private let lock = Lock()
        private(set) var program: TestProgram.Running?

        func open(_ start: () throws -> TestProgram.Running) {
            lock.withLock {
                guard program == nil, let started = try? start() else { return }
                _ = try? started.line()
                program = started
            }
        }
    }
}
