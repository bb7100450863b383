internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherPageSealing
internal import CipherSQLite
internal import CipherSystemFiles
import CCipherSubjectShims
import CipherTestSupport
import Foundation

// What Scripts/kills and its neighbours run, kill and ask, with a fixed key: CipherCrashSubject and one of
//
//   make FILE plaintext|encrypted [hot] [damaged]   a database in WAL mode, its latest rows in the -wal; or with a
//                           journal that must be rolled back; and with a table whose page is overwritten
//   encrypt FILE [backup|recover]   the encryption upgrade; prints the outcome, or the error's code
//   recover FILE            the recovery of a damaged file in its place; of another one, what is left to be done
//   … FILE stay             the same for any operation, and the process lives until a line is said to it
//   rekey FILE              the change to another key
//   decrypt FILE            the way back
//   launch FILE [rekey|decrypt|use|change-key|encrypt-open|recover]   the whole flow of an app's launch: encrypt, migrate,
//                           open; or of one whose key is another now, that has turned encryption off, that observes, writes
//                           and sleeps then, that changes its key while it writes, that is encrypted while several tasks
//                           write, each row printed once it is acknowledged, or that recovers a damaged file
//   rotate FOLDER [STAGE]   app.db opened as a store, from the key in FOLDER/old to a new one in FOLDER/new;
//                           killed at a stage of the change, or "asked", "done", "dropped" by the provider
//   backup FILE             a backup copy.db beside the file, or a look at the one that is there
//   recover-copy FILE       what recovery finds in it, as copy.db beside the file, or a look at the one that is there
//   restore FILE            copy.db in the place of the file
//   check FILE              prints "plaintext", "encrypted" or "rekeyed" where every row is there, with
//                           "-damaged" where the overwritten page is there still, with "-migrated" where the schema is the
//                           new one, the journal mode, and the numbers of the rows that were written by a launch
//   settle FILE OPERATION…  what a crash left: a line with what check says of a copy, one with what the next
//                           run of the operation says, and one with what check says of a copy of its result
//   backfill FOLDER [in|behind N]   a backfill that is killed in or behind its Nth batch
//   write FOLDER [ROWS]     a store written to row by row, each printed once it is acknowledged
//   count FOLDER            the rows of that store
//   serve FILE              a store that is encrypted while it does what lines on standard input say; ServedStore.swift
//   exit FOLDER write|open  a store that goes on writing, or opening, while its process exits
//   checkpoint FOLDER WAY RUNS [elsewhere]   checkpoints during which another connection, of another process even, makes
//                           the log begin anew; CheckpointSubject.swift has the ways
//   quiesce FOLDER          the encryption of a file with a log, and how many checkpoints ran beside others
//
// REPEATABLE in the environment, whatever its value, takes chance and time out of the process, as Repeatability.h says.
// FAILING_ALLOCATION=N in the environment makes SQLite's Nth allocation fail, and N+ every one from it on; 0 prints how
// many there are.

enum Subject {
    static let rows = 40

    /// Ends without closing anything, as an app that is killed does.
    static func make(_ path: String, encrypted: Bool, hot: Bool, damaged: Bool) throws -> Never {
        let connection = try Connection(path: path, mode: .create)
        if encrypted { try connection.setKey(TestKeys.raw(), settings: CipherSettings()) }
        _ = try connection.value(String.self, SQL(text: "PRAGMA journal_mode = \(hot ? "DELETE" : "WAL")"))
        try connection.executeScript(
            """
            PRAGMA wal_autocheckpoint = 0; PRAGMA user_version = 23;
            CREATE TABLE chat(id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT, content BLOB);
            CREATE INDEX chat_by_body ON chat(body); CREATE TABLE bare(a);
            """)
        try insert(1...rows / 2, connection)
        if damaged { try connection.executeScript("CREATE TABLE scrap(a); INSERT INTO scrap VALUES ('of no use')") }
        _ = try connection.value(Int.self, "PRAGMA wal_checkpoint(TRUNCATE)")
        if damaged { try damage("scrap", connection, path) }
        try insert(rows / 2 + 1...rows, connection)
        if hot {
            // More than the cache holds, so that pages are in the file already when the process dies.
            try connection.executeScript(
                "PRAGMA cache_size = 5; BEGIN; UPDATE chat SET body = 'lost', content = zeroblob(1500);")
        }
        withExtendedLifetime(connection) { _exit(0) }
    }

    /// Overwrites the page that a table begins with, of which nothing is in the log.
    private static func damage(_ table: String, _ connection: Connection, _ path: String) throws {
        let root = try connection.value(Int.self, "SELECT rootpage FROM sqlite_master WHERE name = \(table)") ?? 0
        let size = try connection.pageSize
        let file = try DatabaseFile(path: path, access: .readWrite)
        try file.write([UInt8](repeating: 0xff, count: size), at: Int64((root - 1) * size))
    }

    private static func insert(_ ids: ClosedRange<Int>, _ connection: Connection) throws {
        try connection.transaction {
            for id in ids {
                try connection.execute(
                    "INSERT INTO chat(body, content) VALUES (\("message \(id)"), \([UInt8](repeating: UInt8(id), count: 300)))"
                )
                try connection.execute("INSERT INTO bare(rowid, a) VALUES (\(id * id - 700), \(id))")
            }
        }
    }

    /// Runs an operation on a file, and returns what it has to say.
    ///
    /// - Parameter words: The operation's name, and what it takes behind the file.
    static func perform(_ words: some Collection<String>, on path: String) async throws -> String {
        let change = words.dropFirst().first
        var options = ConversionOptions()
        options.busyTimeout = .milliseconds(200)
        options.keepBackup = change == "backup"
        options.onDamage = change == "recover" ? .recover : .rebuildIndexes
        let upgrade = try EncryptionUpgrade(path: path, provider: TestKeys.provider(), options: options)
        let report: EncryptionReport
        switch words.first {
        case "encrypt": report = try upgrade.run()
        case "shadow": report = try upgrade.shadow()
        case "recover":
            // Once it is done, nothing but what a run that died has left is to be done.
            guard try FileSystem.exists(path + "-damaged"), !hasDamage(path) else {
                _ = try InPlaceRecovery(
                    of: DatabasePaths(path), provider: TestKeys.provider(), formats: [CipherSettings()],
                    options: options
                ).runLocked()
                return EncryptionReport.Outcome.recovered.rawValue
            }
            report = try upgrade.run()
        case "rekey":
            report = try Rekeying(
                at: DatabasePaths(path), oldKey: TestKeys.provider(), newKey: TestKeys.provider { try newKey() },
                formats: [CipherSettings()], newSettings: CipherSettings(), options: options
            ).run()
        case "decrypt":
            report = try Decryption(
                path: path, provider: TestKeys.provider(), formats: [CipherSettings()], options: options
            ).run()
        case "backup":
            let copy = FileName.sibling("copy.db", of: path)
            guard try !FileSystem.exists(copy) else {
                _ = try check(copy)
                return EncryptionReport.Outcome.backedUp.rawValue
            }
            report = try FileBackup(
                of: DatabasePaths(path), provider: TestKeys.provider(), formats: [CipherSettings()], to: copy,
                backupProvider: nil, options: options
            ).run()
        case "recover-copy":
            let copy = FileName.sibling("copy.db", of: path)
            if try FileSystem.exists(copy) {
                _ = try check(copy)
            } else {
                _ = try DatabaseRecovery(
                    of: DatabasePaths(path), provider: TestKeys.provider(), formats: [CipherSettings()], to: copy,
                    targetProvider: nil, template: nil, options: options
                ).run()
            }
            return "recovered"
        case "restore":
            report = try DatabaseRestore(
                of: FileName.sibling("copy.db", of: path), backupProvider: nil, to: DatabasePaths(path),
                provider: TestKeys.provider(), formats: [CipherSettings()], backupFormats: [CipherSettings()],
                options: options
            ).run()
        case "launch": return try await LaunchSubject.run(path, change: change)
        default: exit(64)
        }
        return ([report.outcome.rawValue] + report.warnings.filter { !isOfKept($0) }).joined(separator: "; ")
    }

    /// Whether a warning says where a damaged file is kept.
    static func isOfKept(_ warning: String) -> Bool { warning.contains("-damaged") && warning.contains(" is kept as ") }

    static func newKey() throws -> CipherKey { try TestKeys.raw(8) }

    /// Reads as the next launch does, recovery included.
    static func check(_ path: String) throws -> String {
        let isPlaintext = try DatabaseFile(path: path).read(at: 0, count: 16).starts(
            with: Array("SQLite format 3\0".utf8))
        let isRekeyed = try !isPlaintext && opens(path, newKey())
        let key = isPlaintext ? nil : isRekeyed ? try newKey() : try TestKeys.raw()
        let connection = try Connection(path: path, mode: .readWrite)
        defer { connection.close() }
        if let key { try connection.setKey(key, settings: CipherSettings()) }
        let found = try connection.values(
            String.self, "SELECT body || length(content) || hex(substr(content, 1, 1)) FROM chat ORDER BY id")
        let expected = (1...rows).map { "message \($0)300" + hex($0) }
        let rowids = try connection.values(Int.self, "SELECT rowid FROM bare ORDER BY a")
        let version = try connection.value(Int.self, "PRAGMA user_version")
        let isDamaged = try isDamaged(path, key)
        guard found == expected, rowids == (1...rows).map({ $0 * $0 - 700 }),
            try isDamaged || connection.value(String.self, "PRAGMA integrity_check") == "ok",
            try version == 23 || version == LaunchSubject.version && isMigrated(connection)
        else {
            throw Failure(text: "rows are missing: \(found.count) and \(rowids.count) of \(rows)", status: 1)
        }
        let mode = try connection.value(String.self, "PRAGMA journal_mode") ?? "?"
        let form = isPlaintext ? "plaintext" : isRekeyed ? "rekeyed" : "encrypted"
        return "\(form)\(isDamaged ? "-damaged" : "")\(version == 23 ? "" : "-migrated") \(mode)"
            + (try writtenRows(connection))
    }

    /// The numbers of the rows that a launch has written; nothing where there is no table of them.
    private static func writtenRows(_ connection: Connection) throws -> String {
        guard
            try connection.value(Int.self, "SELECT count(*) FROM sqlite_master WHERE name = \(WrittenRows.table)") == 1
        else { return "" }
        return " rows=" + (try WrittenRows.ids(connection).map(String.init).joined(separator: ","))
    }

    /// Whether the page that was overwritten is there still; asked on a connection of which nothing else is expected.
    private static func isDamaged(_ path: String, _ key: CipherKey?) throws -> Bool {
        let connection = try Connection(path: path, mode: .readOnly)
        defer { connection.close() }
        if let key { try connection.setKey(key, settings: CipherSettings()) }
        guard try connection.value(Int.self, "SELECT count(*) FROM sqlite_master WHERE name = 'scrap'") == 1 else {
            return false
        }
        do {
            _ = try connection.value(Int.self, "SELECT count(a) FROM scrap")
            return false
        } catch is DatabaseError {
            return true
        }
    }

    /// Asked of a copy, and of the pages of the file alone: what lies beside the file stays for the next run.
    private static func hasDamage(_ path: String) -> Bool { look(path).contains("-damaged") }

    /// What a crash left, how the next run of the operation ends, and what it leaves: a line each.
    static func settle(_ path: String, _ words: some Collection<String>) async {
        print(look(path))
        do {
            print(try await perform(words, on: path))
        } catch {
            print(Failure(error).text)
        }
        print(look(path))
    }

    /// What ``check(_:)`` says of a copy: reading the files themselves would recover them before the next run does.
    private static func look(_ path: String) -> String {
        let file = URL(filePath: path)
        let copy = file.deletingLastPathComponent().appendingPathExtension("look")
        do {
            try FileManager.default.copyItem(at: file.deletingLastPathComponent(), to: copy)
            defer { try? FileManager.default.removeItem(at: copy) }
            try putBackSidecars(path, in: copy)
            return try check(copy.appending(path: file.lastPathComponent).path(percentEncoded: false))
        } catch {
            return Failure(error).text
        }
    }

    /// Where a damaged file has both of its names, its log or journal counts under either, as the next launch has it.
    private static func putBackSidecars(_ path: String, in copy: URL) throws {
        let kept = path + "-damaged"
        guard let status = try FileSystem.status(kept), try FileSystem.status(path)?.identity == status.identity else {
            return
        }
        for ending in ["-wal", "-journal"] where try FileSystem.exists(kept + ending) {
            let name = URL(filePath: path).lastPathComponent
            try? FileManager.default.moveItem(
                at: copy.appending(path: name + "-damaged" + ending), to: copy.appending(path: name + ending))
        }
    }

    private static func isMigrated(_ connection: Connection) throws -> Bool {
        try connection.value(Int.self, "SELECT count(*) FROM chat WHERE draft = 'none'") == rows
            && connection.value(Int.self, "SELECT count(*) FROM cipherstore_history") ?? 0 > 0
    }

    /// Asked of the first page alone: a journal that must be rolled back keeps a connection for reading out, and one for
    /// writing under a wrong key would checkpoint and delete a log.
    private static func opens(_ path: String, _ key: CipherKey) throws -> Bool {
        let file = try DatabaseFile(path: path)
        let raw = try key.rawKey(salt: SecretBytes(file.read(at: 0, count: 16)), settings: CipherSettings())
        return try file.firstPage(key: raw, settings: CipherSettings())[72..<92].allSatisfy { $0 == 0 }
    }

    private static func hex(_ byte: Int) -> String {
        let digits = Array("0123456789ABCDEF")
        return String([digits[byte / 16 % 16], digits[byte % 16]])
    }
}

/// Why the subject ends otherwise than well.
struct Failure: Error {
    let text: String
    let status: Int32

    init(text: String, status: Int32) {
        self.text = text
        self.status = status
    }

    init(_ error: any Error) {
        switch error {
        case let failure as Failure: self = failure
        case let error as StoreError: self.init(text: "\(error.code.rawValue): \(error)", status: 2)
        default: self.init(text: "\(error)", status: 3)
        }
    }
}

let arguments = CommandLine.arguments
guard arguments.count >= 3 else {
    print(
        "usage: CipherCrashSubject make|encrypt|recover|shadow|rekey|decrypt|launch|backup|restore|check|settle FILE, or "
            + "backfill FOLDER")
    exit(64)
}
let (command, place, more) = (arguments[1], arguments[2], arguments.dropFirst(3))
if ProcessInfo.processInfo.environment["REPEATABLE"] != nil {
    guard rp_install() == 1 else { exit(70) }
}
let memory = try FailingAllocation.install()
do {
    switch command {
    case "make":
        try Subject.make(
            place, encrypted: more.first == "encrypted", hot: more.contains("hot"), damaged: more.contains("damaged"))
    case "rotate": try RotationSubject.run(place, killedAt: more.first)
    case "check": print(try Subject.check(place))
    case "settle": await Subject.settle(place, more)
    case "backfill":
        try await BackfillSubject.run(place, place: more.first, batch: more.dropFirst().first.flatMap { Int($0) })
    case "write": try await StoreSubject.write(place, rows: more.first.flatMap { Int($0) })
    case "count": try await StoreSubject.count(place)
    case "serve": try await ServedStore.run(place)
    case "exit": try ExitSubject.run(place, more.first)
    case "checkpoint":
        guard let way = more.first.flatMap({ CheckpointSubject.Way(rawValue: $0) }),
            let runs = more.dropFirst().first.flatMap({ Int($0) })
        else { exit(64) }
        try CheckpointSubject.run(place, way, runs: runs, isElsewhere: more.contains("elsewhere"))
    case "quiesce": try await CheckpointSubject.convert(place)
    default:
        print(try await Subject.perform([command] + more.filter { $0 != "stay" }, on: place))
        if more.contains("stay") {
            fflush(nil)
            _ = readLine()
        }
    }
    if memory == .counting { print("allocations: \(fm_count())") }
} catch {
    let failure = Failure(error)
    print(failure.text)
    exit(failure.status)
}
