import CipherSQLite
import CipherStore
import FailingMemory
import TestSupport

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

// What Scripts/kills and its neighbours run, kill and ask, with a fixed key:
//
//   CrashSubject make FILE plaintext|encrypted [hot]   a database in WAL mode, its latest rows in the -wal; or with a
//                                        journal that must be rolled back
//   CrashSubject encrypt FILE [backup]   the encryption upgrade; prints the outcome, or the error's code
//   CrashSubject rekey FILE              the change to another key
//   CrashSubject decrypt FILE            the way back
//   CrashSubject launch FILE [rekey|decrypt]   the whole flow of an app's launch: encrypt, migrate, open; or of one whose
//                                        key is another now, or that has turned encryption off
//   CrashSubject rotate FOLDER [STAGE]   app.db opened as a store, from the key in FOLDER/old to a new one in FOLDER/new;
//                                        killed at a stage of the change, or "asked", "done", "dropped" by the provider
//   CrashSubject check FILE              prints "plaintext", "encrypted" or "rekeyed" where every row is there, with
//                                        "-migrated" where the schema is the new one, and the journal mode
//   CrashSubject backfill FOLDER [in|behind N]   a backfill that is killed in or behind its Nth batch
//   CrashSubject write FOLDER [ROWS]     a store written to row by row, each printed once it is acknowledged
//   CrashSubject count FOLDER            the rows of that store
//
// FAILING_ALLOCATION=N in the environment makes SQLite's Nth allocation fail, and N+ every one from it on; 0 prints how
// many there are.

enum Subject {
    static let rows = 40

    /// Ends without closing anything, as an app that is killed does.
    static func make(_ path: String, encrypted: Bool, hot: Bool) throws -> Never {
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
        _ = try connection.value(Int.self, "PRAGMA wal_checkpoint(TRUNCATE)")
        try insert(rows / 2 + 1...rows, connection)
        if hot {
            // More than the cache holds, so that pages are in the file already when the process dies.
            try connection.executeScript(
                "PRAGMA cache_size = 5; BEGIN; UPDATE chat SET body = 'lost', content = zeroblob(1500);")
        }
        withExtendedLifetime(connection) { _exit(0) }
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

    static func encrypt(_ path: String, keepBackup: Bool) throws {
        var options = EncryptionUpgrade.Options()
        options.keepBackup = keepBackup
        options.busyTimeout = 200
        print(try EncryptionUpgrade(path: path, provider: TestKeys.provider(), options: options).run())
    }

    static func shadow(_ path: String) throws {
        var options = EncryptionUpgrade.Options()
        options.busyTimeout = 200
        print(try EncryptionUpgrade(path: path, provider: TestKeys.provider(), options: options).shadow())
    }

    static func rekey(_ path: String) throws {
        var options = EncryptionUpgrade.Options()
        options.busyTimeout = 200
        print(
            try Rekeying(
                path: path, oldKey: TestKeys.provider(), newKey: TestKeys.provider { try newKey() },
                formats: [CipherSettings()], newSettings: CipherSettings(), options: options
            ).run())
    }

    static func decrypt(_ path: String) throws {
        var options = EncryptionUpgrade.Options()
        options.busyTimeout = 200
        print(
            try Decryption(
                path: path, provider: TestKeys.provider(), formats: [CipherSettings()], options: options
            ).run())
    }

    private static func print(_ report: EncryptionReport) {
        Swift.print(([report.outcome.rawValue] + report.warnings).joined(separator: "; "))
    }

    static func newKey() throws -> CipherKey { try TestKeys.raw(8) }

    /// Reads as the next launch does, recovery included.
    static func check(_ path: String) throws {
        let isPlaintext = try DatabaseFile(path: path).read(at: 0, count: 16).starts(
            with: Array("SQLite format 3\0".utf8))
        let isRekeyed = try !isPlaintext && opens(path, newKey())
        let connection = try Connection(path: path, mode: .readWrite)
        defer { connection.close() }
        if !isPlaintext {
            try connection.setKey(isRekeyed ? newKey() : TestKeys.raw(), settings: CipherSettings())
        }
        let found = try connection.values(
            String.self, "SELECT body || length(content) || hex(substr(content, 1, 1)) FROM chat ORDER BY id")
        let expected = (1...rows).map { "message \($0)300" + hex($0) }
        let rowids = try connection.values(Int.self, "SELECT rowid FROM bare ORDER BY a")
        let version = try connection.value(Int.self, "PRAGMA user_version")
        guard found == expected, rowids == (1...rows).map({ $0 * $0 - 700 }),
            try connection.value(String.self, "PRAGMA integrity_check") == "ok",
            try version == 23 || version == LaunchSubject.version && isMigrated(connection)
        else {
            Swift.print("rows are missing: \(found.count) and \(rowids.count) of \(rows)")
            exit(1)
        }
        let mode = try connection.value(String.self, "PRAGMA journal_mode") ?? "?"
        let form = isPlaintext ? "plaintext" : isRekeyed ? "rekeyed" : "encrypted"
        Swift.print("\(form)\(version == 23 ? "" : "-migrated") \(mode)")
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

let arguments = CommandLine.arguments
guard arguments.count >= 3 else {
    print("usage: CrashSubject make|encrypt|shadow|rekey|decrypt|launch|check FILE, or CrashSubject backfill FOLDER")
    exit(64)
}
let memory = try FailingAllocation.install()
do {
    switch arguments[1] {
    case "make":
        try Subject.make(
            arguments[2], encrypted: arguments.dropFirst(3).first == "encrypted", hot: arguments.contains("hot"))
    case "encrypt": try Subject.encrypt(arguments[2], keepBackup: arguments.dropFirst(3).first == "backup")
    case "shadow": try Subject.shadow(arguments[2])
    case "rekey": try Subject.rekey(arguments[2])
    case "rotate": try RotationSubject.run(arguments[2], killedAt: arguments.dropFirst(3).first)
    case "decrypt": try Subject.decrypt(arguments[2])
    case "launch": try await LaunchSubject.run(arguments[2], change: arguments.dropFirst(3).first)
    case "check": try Subject.check(arguments[2])
    case "backfill":
        let place = arguments.dropFirst(3)
        let batch = place.dropFirst().first.flatMap { Int($0) }
        try await BackfillSubject.run(arguments[2], place: place.first, batch: batch)
    case "write": try await StoreSubject.write(arguments[2], rows: arguments.dropFirst(3).first.flatMap { Int($0) })
    case "count": try await StoreSubject.count(arguments[2])
    default: exit(64)
    }
    if memory == .counting { print("allocations: \(fm_count())") }
} catch let error as StoreError {
    print("\(error.code.rawValue): \(error)")
    exit(2)
} catch {
    print("\(error)")
    exit(3)
}
