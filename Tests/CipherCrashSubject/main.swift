internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherPageSealing
internal import CipherSQLite
internal import CipherSystemFiles
import CCipherSubjectShims
import CipherTestSupport
import Foundation

// The subject of Scripts/kills and similar scripts, which run, kill and query it. It uses a fixed key. Its commands are:
//
//   make FILE plaintext|encrypted [hot] [damaged]   makes a database in WAL mode with its latest rows in the -wal; hot:
//                           with a journal that must be rolled back; damaged: with a table with an overwritten page
//   encrypt FILE [backup|recover]   encrypts the file; prints the outcome, or the error's code
//   recover FILE            recovers a damaged file in place, or finishes an earlier recovery
//   … FILE stay             for any operation: the process lives until it reads a line
//   rekey FILE              changes the key
//   decrypt FILE            decrypts the file
//   launch FILE [rekey|decrypt|use|change-key|encrypt-open|recover]   launches an app: encrypts, migrates, opens; rekey: the
//                           app has a new key; decrypt: it has turned encryption off; use: it then observes, writes and is
//                           suspended; change-key: it changes its key while it writes; encrypt-open: its store is encrypted
//                           while several tasks write, and each acknowledged row is printed; recover: it recovers a damaged
//                           file
//   rotate FOLDER [STAGE]   opens app.db as a store, and changes the key in FOLDER/old to a new one in FOLDER/new; is
//                           killed at a stage of the change, or when the provider reports "asked", "done" or "dropped"
//   backup FILE             makes a backup copy.db beside the file, or checks the existing one
//   recover-copy FILE       recovers the file into copy.db beside it, or checks the existing copy.db
//   restore FILE            restores the file from copy.db
//   check FILE              prints "plaintext", "encrypted" or "rekeyed" if every row exists, with "-damaged" if the
//                           overwritten page still exists, and with "-migrated" if the file has the new schema; then the
//                           journal mode, and the numbers of the rows that a launch wrote
//   settle FILE OPERATION…  examines the files after a crash: prints a line with the check of a copy, a line with the output
//                           of the operation's next run, and a line with the check of a copy of the result
//   backfill FOLDER [in|behind N]   runs a backfill that is killed in or after its Nth batch
//   write FOLDER [ROWS]     writes row after row to a store, and prints each acknowledged row
//   count FOLDER            counts the rows of that store
//   serve FILE              encrypts a store while it executes commands from standard input; see ServedStore.swift
//   exit FOLDER write|open  runs a store that continues to write, or to open, while its process exits
//   checkpoint FOLDER WAY RUNS [elsewhere]   runs checkpoints during which another connection restarts the log; elsewhere:
//                           a connection in another process; see CheckpointSubject.swift for the ways
//   quiesce FOLDER          encrypts a file with a log, and prints how many checkpoints ran while others could write
//
// With REPEATABLE in the environment, the process is repeatable, as Repeatability.h describes. With FAILING_ALLOCATION=N,
// SQLite's Nth allocation fails; with N+, all later ones fail too; with 0, the number of allocations is printed. With
// FIRST_PRAGMA in the environment, that pragma is executed first, as other code in an app's process may do.

enum Subject {
    static let rows = 40

    /// Ends without closing anything, like an app that is killed.
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
            // Exceeds the cache, so that some pages are already in the file when the process dies.
            try connection.executeScript(
                "PRAGMA cache_size = 5; BEGIN; UPDATE chat SET body = 'lost', content = zeroblob(1500);")
        }
        withExtendedLifetime(connection) { _exit(0) }
    }

    /// Overwrites the first page of a table that has no pages in the log.
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

    /// Runs an operation on a file, and returns its output.
    ///
    /// - Parameter words: The operation's name, and its arguments after the file.
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
            // After the file has been recovered, only the leftovers of a killed run remain to be removed.
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
                allowsPlaintext: false, options: options
            ).run()
        case "launch": return try await LaunchSubject.run(path, change: change)
        default: exit(64)
        }
        return ([report.outcome.rawValue] + report.warnings.filter { !isExpected($0) }).joined(separator: "; ")
    }

    /// Returns whether a warning says where a damaged file is kept, or is the one that a system without leases adds to
    /// each report.
    static func isExpected(_ warning: String) -> Bool {
        let isOfKept = warning.contains("-damaged") && warning.contains(" is kept as ")
        // The tests of old connections have this process stay, and expect the warning.
        return isOfKept || !CommandLine.arguments.contains("stay") && [warning].besidesLeases.isEmpty
    }

    static func newKey() throws -> CipherKey { try TestKeys.raw(8) }

    /// Reads as the next launch does, including the recovery from a log or journal.
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

    /// Returns the numbers of the rows that a launch has written, or nothing if their table does not exist.
    private static func writtenRows(_ connection: Connection) throws -> String {
        guard
            try connection.value(Int.self, "SELECT count(*) FROM sqlite_master WHERE name = \(WrittenRows.table)") == 1
        else { return "" }
        return " rows=" + (try WrittenRows.ids(connection).map(String.init).joined(separator: ","))
    }

    /// Returns whether the overwritten page still exists.
    ///
    /// Uses a separate connection for this alone.
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

    /// Reads a copy, and only the pages of the file: the files beside it stay for the next run.
    private static func hasDamage(_ path: String) -> Bool { look(path).contains("-damaged") }

    /// Returns a line each for the state after a crash, the end of the operation's next run, and the state after it.
    static func settle(_ path: String, _ words: some Collection<String>) async {
        print(look(path))
        do {
            print(try await perform(words, on: path))
        } catch {
            print(Failure(error).text)
        }
        print(look(path))
    }

    /// Returns the result of ``check(_:)`` on a copy.
    ///
    /// Reading the files themselves would recover them before the next run does.
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

    /// If a damaged file has both of its names, its log or journal counts under either name, as in the next launch.
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

    /// Reads only the first page.
    ///
    /// A hot journal prevents a read-only connection, and a writable one under a wrong key would checkpoint and delete
    /// a log.
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

/// Why the subject failed.
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
    let other = try ProcessInfo.processInfo.environment["FIRST_PRAGMA"].map { pragma in
        let other = try Connection(path: "", mode: .create)
        // Without a key, SQLCipher ignores some of its pragmas.
        try other.setKey(TestKeys.raw(), settings: CipherSettings())
        try other.execute(SQL(text: "PRAGMA \(pragma)"))
        return other
    }
    defer { other?.close() }
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
