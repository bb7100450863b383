internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherPrimitives
internal import CipherSQLite
internal import CipherSQLiteFormat
import CipherTestSupport
import Foundation
import Testing

/// Hot journals of a killed writer, and those of another copy of the database.
struct HotJournalTests {
    /// A writer that can be killed at the end of each commit, just before it would remove its journal.
    final class Writer {
        /// A database and its journal at the end of a commit.
        struct Commit {
            let before: Data
            let after: Data
            let journal: Data
            /// The content before the transaction.
            let content: String?

            var pageSize: Int { Int([UInt8](journal).big32(24)) }
            /// The file while the commit writes it.
            var half: Data { after.prefix(pageSize) + before.dropFirst(pageSize) }
        }

        static let content: SQL = "SELECT group_concat(hex(a)) FROM t"
        private let folder: TemporaryFolder
        private let connection: Connection

        init(isEncrypted: Bool, isExclusive: Bool = false, headerSize: Int = 0, autoVacuum: Int = 0) throws {
            folder = try TemporaryFolder()
            connection = try Connection(path: folder.path("app.db"), mode: .create)
            if headerSize > 0 {
                try connection.setKey(
                    TestKeys.rawWithSalt(), settings: CipherSettings(plaintextHeaderSize: headerSize))
            } else if isEncrypted {
                try connection.setKey(TestKeys.raw(), settings: CipherSettings())
            } else {
                try connection.execute("PRAGMA page_size = 4096")
            }
            try connection.execute(SQL(text: "PRAGMA auto_vacuum = \(autoVacuum)"))
            // At a commit, SQLite only overwrites the beginning of the journal with zeros.
            _ = try connection.value(String.self, "PRAGMA journal_mode = PERSIST")
            if isExclusive { _ = try connection.value(String.self, "PRAGMA locking_mode = EXCLUSIVE") }
        }

        deinit { connection.close() }

        /// Changes the schema table itself.
        func editSchema(_ script: String) throws { try connection.editSchema(script) }

        func commit(_ script: String) throws -> Commit {
            let isNew = try connection.value(Int.self, "SELECT count(*) FROM sqlite_master") == 0
            let content = try isNew ? nil : connection.value(String.self, Self.content)
            let before = bytes("")
            try connection.executeScript(text: "BEGIN;" + script)
            let header = bytes("-journal")[12..<28]
            try connection.execute("COMMIT")
            let journal =
                Data(JournalHeader.magic + [0xff, 0xff, 0xff, 0xff]) + header + bytes("-journal").dropFirst(28)
            return Commit(before: before, after: bytes(""), journal: journal, content: content)
        }

        private func bytes(_ ending: String) -> Data {
            (try? Data(contentsOf: URL(filePath: folder.path("app.db" + ending)))) ?? Data()
        }
    }

    static let scripts = [
        "CREATE TABLE t(a); INSERT INTO t VALUES (randomblob(9)), (randomblob(5000))",
        "INSERT INTO t VALUES (randomblob(30000))", "UPDATE t SET a = randomblob(9) WHERE rowid = 1",
        "CREATE TABLE u(a); INSERT INTO u VALUES (zeroblob(90000))", "DELETE FROM t WHERE rowid = 2",
        "PRAGMA user_version = 7", "INSERT INTO t SELECT randomblob(4000) FROM t; DROP TABLE u",
        "UPDATE t SET a = randomblob(9) WHERE rowid = 1", "INSERT INTO t SELECT randomblob(3000) FROM t",
    ]

    /// Create the first virtual table, and drop the last one.
    private static let moduleScripts = [
        "CREATE VIRTUAL TABLE f USING fts4(x); INSERT INTO f VALUES ('hello')", "DROP TABLE f",
    ]

    func folder(_ database: Data, journal: Data) throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        try database.write(to: URL(filePath: folder.path("app.db")))
        try journal.write(to: URL(filePath: folder.path("app.db-journal")))
        return folder
    }

    func upgrade(_ folder: TemporaryFolder) throws -> EncryptionReport.Outcome {
        try EncryptionUpgrade(path: folder.path("app.db"), provider: TestKeys.provider()).run().outcome
    }

    private func content(_ folder: TemporaryFolder) throws -> String? {
        try reading(folder.path("app.db")) { try $0.value(String.self, Writer.content) }
    }

    private func tables(_ folder: TemporaryFolder) throws -> Int? {
        try reading(folder.path("app.db")) { try $0.value(Int.self, "SELECT count(*) FROM sqlite_master") }
    }

    private func reading<Result>(_ path: String, _ body: (Connection) throws -> Result) throws -> Result {
        let connection = try Connection(
            path: path, mode: .readWrite, key: TestKeys.raw(), settings: CipherSettings())
        defer { connection.close() }
        return try body(connection)
    }

    /// Recovers a database into another file, which `body` reads.
    func recovered<Result>(_ folder: TemporaryFolder, _ body: (Connection) throws -> Result) throws -> Result {
        let output = try TemporaryFolder()
        _ = try DatabaseRecovery(
            of: DatabasePaths(folder.path("app.db")), provider: TestKeys.provider(), formats: [CipherSettings()],
            to: output.path("new.db"), targetProvider: nil, template: nil, options: ConversionOptions()
        ).run()
        return try reading(output.path("new.db"), body)
    }

    private func inspect(_ folder: TemporaryFolder) throws -> FileState {
        try Inspector(path: folder.path("app.db")).inspect(provider: nil, formats: []).state
    }

    func expectStale(_ database: Data, _ journal: Data, _ comment: Comment? = nil) throws {
        let folder = try folder(database, journal: journal)
        let before = try FolderDigest(folder.url)
        #expect(try storeError { try upgrade(folder) }?.code == .staleSidecar, comment)
        #expect(try FolderDigest(folder.url) == before, comment)
        // Recovery does not read the journal either.
        let rows = try recovered(folder) { try $0.value(Int.self, "SELECT count(*) FROM t") }
        try FileManager.default.removeItem(atPath: folder.path("app.db-journal"))
        _ = try upgrade(folder)
        let all = try reading(folder.path("app.db")) { try $0.value(Int.self, "SELECT count(*) FROM t") }
        #expect(rows == all, comment)
    }

    // MARK: Of the same database

    @Test(
        "A commit that was killed before its end is rolled back, whatever it wrote",
        arguments: [false, true], [(false, 0), (true, 0), (false, 1), (true, 2)])
    func killedCommit(isEncrypted: Bool, mode: (isExclusive: Bool, autoVacuum: Int)) throws {
        let writer = try Writer(
            isEncrypted: isEncrypted, isExclusive: mode.isExclusive, autoVacuum: mode.autoVacuum)
        _ = try writer.commit(Self.scripts[0])
        for script in Self.scripts.dropFirst() + Self.moduleScripts {
            let commit = try writer.commit(script)
            // With auto-vacuum, SQLite cuts the file only after it has removed the journal.
            let written = commit.after + commit.before.dropFirst(commit.after.count)
            for database in [commit.before, commit.half, written] {
                let folder = try folder(database, journal: commit.journal)
                #expect(try inspect(folder) == (isEncrypted ? .opaque : .needsRecovery), "\(script)")
                #expect(try upgrade(folder) == (isEncrypted ? .alreadyEncrypted : .encrypted), "\(script)")
                #expect(try content(folder) == commit.content, "\(script)")
            }
        }
    }

    @Test(
        "A first commit that was killed before its end leaves an empty database",
        arguments: [false, true])
    func killedFirstCommit(isEncrypted: Bool) throws {
        let commit = try Writer(isEncrypted: isEncrypted).commit(Self.scripts[0])
        let folder = try folder(commit.after, journal: commit.journal)
        if isEncrypted {
            // The key can be checked only before the rollback.
            #expect(try storeError { try upgrade(folder) }?.code == .needsRecovery)
        } else {
            #expect(try inspect(folder) == .needsRecovery)
        }
        #expect(try upgrade(folder) == .created)
        #expect(try tables(folder) == 0)
        #expect(try folder.names == ["app.db"])
    }

    @Test(
        "A first transaction that was killed before its commit leaves an empty database",
        arguments: [false, true])
    func killedFirstTransaction(isEncrypted: Bool) throws {
        let file = try firstTransaction(isEncrypted: isEncrypted)
        #expect(try inspect(file.folder) == .needsRecovery)
        let before = try file.digest()
        for key in [nil, SecretBytes("key".utf8)] {
            let keyText = key.map { key in { key } }
            let diagnosis = try Diagnostician(DatabasePaths(file.path), DiagnosisOptions()).run(keyText: keyText)
            #expect(diagnosis.causes.map(\.kind) == [.hotJournal])
        }
        #expect(try file.digest() == before)
        #expect(try upgrade(file.folder) == .created)
        #expect(try tables(file.folder) == 0)
        #expect(try file.folder.names == ["app.db"])
    }

    /// A database whose first transaction was killed, after more changes than the cache holds.
    func firstTransaction(isEncrypted: Bool) throws -> LegacyFile {
        try LegacyFile(unclosed: true) { connection in
            if isEncrypted { try connection.setKey(TestKeys.raw(), settings: CipherSettings()) }
            try connection.executeScript(
                """
                PRAGMA cache_size = 2; BEGIN; CREATE TABLE t(a);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40)
                INSERT INTO t SELECT zeroblob(1500) FROM n;
                """)
        }
    }

    @Test(
        "A first page that a power loss tore while it was overwritten is restored from the journal",
        arguments: [0..<512, 0..<4096, 512..<4096], [false, true])
    func tornFirstPage(lost: Range<Int>, isRandom: Bool) throws {
        let commit = try committed(isEncrypted: false)
        var database = commit.after
        for offset in lost { database[offset] = isRandom ? .random(in: 0...255) : 0 }
        let folder = try folder(database, journal: commit.journal)
        #expect(try inspect(folder) == .needsRecovery)
        #expect(try upgrade(folder) == .encrypted)
        #expect(try content(folder) == commit.content)
    }

    @Test("A record that a killed writer had not finished is not taken for a page of another database")
    func unfinishedRecord() throws {
        let commit = try committed(isEncrypted: false)
        let record = [0, 0, 0, 1] + [UInt8](repeating: 7, count: commit.pageSize + 4)
        let folder = try folder(commit.before, journal: commit.journal.prefix(512) + record)
        #expect(try inspect(folder) == .needsRecovery)
        #expect(try upgrade(folder) == .encrypted)
        #expect(try content(folder) == commit.content)
    }

    @Test("A plaintext journal beside an encrypted database whose first page is damaged is not rolled back")
    func damagedEncrypted() throws {
        var database = try committed(isEncrypted: true).after
        for offset in 0..<512 { database[offset] = 0 }
        let folder = try folder(database, journal: committed(isEncrypted: false).journal)
        let before = try FolderDigest(folder.url)
        #expect(try storeError { try upgrade(folder) }?.code == .staleSidecar)
        #expect(try FolderDigest(folder.url) == before)
    }

    @Test(
        "A journal with a page that is not authentic is not rolled back over an authentic one",
        arguments: [false, true])
    func forgedRecord(isBlank: Bool) throws {
        let writer = try Writer(isEncrypted: true)
        _ = try writer.commit("CREATE TABLE t(a); INSERT INTO t VALUES ('kept'), (zeroblob(30000))")
        let commit = try writer.commit("UPDATE t SET a = randomblob(30000); PRAGMA user_version = 7")
        let size = commit.pageSize
        let start = Int([UInt8](commit.journal).big32(20))
        let nonce = [UInt8](commit.journal).big32(12)
        let records = (commit.journal.count - start) / (size + 8)
        try #require(records > 2)
        for record in 0..<records {
            var journal = [UInt8](commit.journal)
            let page = start + record * (size + 8) + 4
            try #require(journal.big32(page - 4) > 0)
            let content = (0..<size).map { _ in isBlank ? 0 : UInt8.random(in: 0...255) }
            // Source: SQLite, `pager.c`, `pager_cksum`.
            let sum = stride(from: size - 200, to: 0, by: -200).reduce(nonce) { $0 &+ UInt32(content[$1]) }
            journal.replaceSubrange(
                page..<(page + size + 4),
                with: content + (0..<4).map { UInt8(truncatingIfNeeded: sum >> (24 - 8 * $0)) })
            let folder = try folder(commit.half, journal: Data(journal))
            let before = try FolderDigest(folder.url)
            let error = try storeError { try upgrade(folder) }
            #expect(error != nil && error?.code != .proofFailed, "record \(record)")
            #expect(try FolderDigest(folder.url) == before, "record \(record)")
            // In a file that the transaction has not changed, no page of the journal is needed.
            let unchanged = try self.folder(commit.before, journal: Data(journal))
            #expect(try recovered(unchanged) { try $0.value(String.self, Writer.content) } == commit.content)
        }
        let honest = try folder(commit.half, journal: commit.journal)
        #expect(try upgrade(honest) == .alreadyEncrypted)
        #expect(try content(honest) == commit.content)
    }

    @Test("A journal that states a smaller size than its own page 1 does not cut the file")
    func smallerSize() throws {
        let commit = try committed(isEncrypted: true)
        let pages = try #require(UInt8(exactly: commit.before.count / commit.pageSize))
        for size in 1..<pages {
            var journal = [UInt8](commit.journal)
            journal.replaceSubrange(16..<20, with: [0, 0, 0, size])
            let folder = try folder(commit.half, journal: Data(journal))
            let before = try FolderDigest(folder.url)
            #expect(try storeError { try upgrade(folder) }?.code == .staleSidecar, "\(size)")
            #expect(try FolderDigest(folder.url) == before, "\(size)")
            #expect(try recovered(folder) { try $0.value(Int.self, "SELECT count(*) FROM t") } ?? 0 >= 2, "\(size)")
        }
    }

    @Test(
        "A journal does not change the readable header of a file, except for the journal mode and the counters",
        .enabled(if: Engine.current.cipherMajor >= 4))
    func readableHeader() throws {
        let writer = try Writer(isEncrypted: true, headerSize: 32)
        _ = try writer.commit("CREATE TABLE t(a); INSERT INTO t VALUES ('kept'), (zeroblob(30000))")
        let commit = try writer.commit("INSERT INTO t VALUES ('undone'); PRAGMA user_version = 7")
        var options = ConversionOptions()
        options.format = CipherSettings(plaintextHeaderSize: 32)
        func upgrade(_ folder: TemporaryFolder) throws -> EncryptionReport.Outcome {
            try EncryptionUpgrade(
                path: folder.path("app.db"), provider: TestKeys.provider { try TestKeys.rawWithSalt() },
                options: options
            ).run().outcome
        }
        let (size, start) = (commit.pageSize, Int([UInt8](commit.journal).big32(20)))
        let records = (commit.journal.count - start) / (size + 8)
        let page = try #require(
            (0..<records).map { start + $0 * (size + 8) + 4 }
                .first { [UInt8](commit.journal).big32($0 - 4) == 1 })
        // Each field but the journal mode, of which every value is valid, and the change counter.
        for offset in Array(0..<18) + Array(20..<24) + Array(28..<32) {
            var journal = [UInt8](commit.journal)
            // The checksum does not cover these bytes. Source: SQLite, `pager.c`, `pager_cksum`.
            journal[page + offset] ^= 0x41
            // SQLite uses the file's page size if the journal states none.
            for pageSize in [journal[24..<28], [0, 0, 0, 0]] {
                journal.replaceSubrange(24..<28, with: pageSize)
                let folder = try folder(commit.half, journal: Data(journal))
                let before = try FolderDigest(folder.url)
                #expect(try storeError { try upgrade(folder) } != nil, "\(offset)")
                #expect(try FolderDigest(folder.url) == before, "\(offset)")
            }
        }
        #expect(try upgrade(folder(commit.half, journal: commit.journal)) == .alreadyEncrypted)
    }

    /// A commit that changes page 1.
    func committed(isEncrypted: Bool) throws -> Writer.Commit {
        let writer = try Writer(isEncrypted: isEncrypted)
        _ = try writer.commit("CREATE TABLE t(a); INSERT INTO t VALUES ('kept'), (zeroblob(30000))")
        return try writer.commit("INSERT INTO t VALUES ('undone'); PRAGMA user_version = 7")
    }

    /// Returns a commit's journal that names a super-journal.
    func journal(of commit: Writer.Commit, superJournal name: String) -> Data {
        let sum = name.utf8.reduce(UInt32(0)) { $0 &+ UInt32($1) }
        func big32(_ number: UInt32) -> [UInt8] {
            (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
        }
        return commit.journal + big32(0x4000_0000 / UInt32(commit.pageSize) + 1) + name.utf8
            + big32(UInt32(name.utf8.count)) + big32(sum) + JournalHeader.magic
    }

    @Test("A journal whose super-journal is gone belongs to a committed transaction, which a recovery keeps")
    func committedSuperJournal() throws {
        let commit = try committed(isEncrypted: false)
        for isGone in [true, false] {
            let folder = try folder(commit.after, journal: Data())
            let name = folder.path("other.db-mj1A2B3C9FF")
            if !isGone { _ = try folder.write(folder.path("app.db-journal") + "\0", to: "other.db-mj1A2B3C9FF") }
            try journal(of: commit, superJournal: name).write(to: URL(filePath: folder.path("app.db-journal")))
            let rows = try recovered(folder) { try $0.value(Int.self, "SELECT count(*) FROM t") }
            #expect(rows == (isGone ? 3 : 2))
        }
    }

    @Test(
        "After a commit across several databases was killed, a moved database is refused, and a recovery rolls it back",
        arguments: [false, true], ["gone", "loop", "here"])
    func movedSuperJournal(isEncrypted: Bool, old: String) throws {
        let commit = try committed(isEncrypted: isEncrypted)
        let folder = try folder(commit.half, journal: Data())
        // A path that cannot be examined, here because of a symbolic link to itself, is not known to be empty.
        try FileManager.default.createSymbolicLink(atPath: folder.path("loop"), withDestinationPath: "loop")
        try FileManager.default.createDirectory(atPath: folder.path("here"), withIntermediateDirectories: false)
        if old == "here" { _ = try folder.write(folder.path("app.db-journal") + "\0", to: "other.db-mj1A2B3C9FF") }
        let name = folder.path("\(old)/other.db-mj1A2B3C9FF")
        try journal(of: commit, superJournal: name).write(to: URL(filePath: folder.path("app.db-journal")))
        let before = try FolderDigest(folder.url)
        let error = try #require(try storeError { try upgrade(folder) })
        #expect(error.code == .corrupt && error.detail.contains(name), "\(error)")
        #expect(try storeError { try inspect(folder) }?.code == .corrupt)
        let key = isEncrypted ? SecretBytes(TestKeys.text().utf8) : nil
        let diagnosis = try Diagnostician(DatabasePaths(folder.path("app.db")), DiagnosisOptions()).run(
            keyText: key.map { key in { key } })
        #expect(diagnosis.causes.contains { $0.kind == .damagedPages && $0.detail.contains(name) }, "\(diagnosis)")
        #expect(error.advice.hasPrefix("move the databases"), "\(error)")
        #expect(try FolderDigest(folder.url) == before)
        if old == "here" {
            // A copy must not replace the database in the old folder.
            _ = try folder.write("", to: "here/app.db")
            #expect(try storeError { try upgrade(folder) }?.advice.hasPrefix("recover each database") == true)
        }
        #expect(try recovered(folder) { try $0.value(Int.self, "SELECT count(*) FROM t") } == 2)
        let report = try InPlaceRecovery(
            of: DatabasePaths(folder.path("app.db")), provider: TestKeys.provider(), formats: [CipherSettings()],
            options: ConversionOptions()
        ).runLocked()
        #expect(!report.complete)
        #expect(try content(folder) == commit.content)
    }

    @Test("A super-journal that only a running writer can find is not taken for a moved one")
    func superJournalOfRunningWriter() throws {
        let commit = try committed(isEncrypted: false)
        let folder = try TemporaryFolder()
        try commit.half.write(to: URL(filePath: folder.path("app.db")))
        let writer = try TestProgram.built("CipherLockHolder").start(["write", folder.path("app.db")])
        try #require(try writer.line() == "ready")
        try journal(of: commit, superJournal: folder.path("gone/other.db-mj1A2B3C9FF"))
            .write(to: URL(filePath: folder.path("app.db-journal")))
        let before = try FolderDigest(folder.url)
        var options = ConversionOptions()
        options.busyTimeout = .zero
        let error = try storeError {
            try EncryptionUpgrade(path: folder.path("app.db"), provider: TestKeys.provider(), options: options).run()
        }
        #expect(error?.code == .busy, "\(String(describing: error))")
        #expect(try FolderDigest(folder.url) == before)
        writer.kill()
        _ = try writer.wait()
        #expect(try storeError { try upgrade(folder) }?.code == .corrupt)
    }

    /// Returns a half-written database with a journal that is damaged, or whose super-journal was moved.
    private func faulty(_ commit: Writer.Commit, isDamaged: Bool) throws -> TemporaryFolder {
        let folder = try folder(commit.half, journal: Data())
        var journal = journal(of: commit, superJournal: folder.path("gone/other.db-mj1A2B3C9FF"))
        if isDamaged {
            journal = commit.journal
            // The record count is larger than the number of records.
            journal.replaceSubrange(8..<12, with: [0, 0, 0, 200])
        }
        try journal.write(to: URL(filePath: folder.path("app.db-journal")))
        return folder
    }

    @Test(
        "A journal that could not be examined, because the database was in use, is examined before it is rolled back",
        arguments: [false, true])
    func rollbackAfterUse(isDamaged: Bool) throws {
        let commit = try committed(isEncrypted: true)
        let folder = try faulty(commit, isDamaged: isDamaged)
        let before = try FolderDigest(folder.url)
        let reader = try TestProgram.built("CipherLockHolder").start(["read", folder.path("app.db")])
        try #require(try reader.line() == "ready")
        let paths = try DatabasePaths(folder.path("app.db"))
        #expect(try Inspector(paths).surface() == .opaque(hasPlaintextHeader: false))
        #expect(try storeError { try HotJournal.checkRollback(paths, nil, timeout: .zero) }?.code == .busy)
        // The reader ends when the key is requested, which is after the inspection of the file.
        let process = reader.processID
        let provider = TestKeys.provider {
            kill(process, SIGKILL)
            return try TestKeys.raw()
        }
        let error = try storeError { try EncryptionUpgrade(path: folder.path("app.db"), provider: provider).run() }
        _ = try reader.wait()
        #expect(error?.code == .corrupt, "\(String(describing: error))")
        #expect(try FolderDigest(folder.url) == before)
    }

    @Test("An error after a rollback says that the journal was rolled back", arguments: [false, true])
    func errorAfterRollback(isEncrypted: Bool) throws {
        let commit = try committed(isEncrypted: isEncrypted)
        let folder = try folder(commit.half, journal: commit.journal)
        let cancellation = UpgradeCancellation()
        var options = ConversionOptions()
        options.progress = { if $0.stage == .proving { cancellation.cancel() } }
        options.cancellation = cancellation
        let path = folder.path("app.db")
        let error = try storeError {
            if isEncrypted {
                _ = try Decryption(
                    path: path, provider: TestKeys.provider(), formats: [CipherSettings()], options: options
                ).run()
            } else {
                _ = try EncryptionUpgrade(path: path, provider: TestKeys.provider(), options: options).run()
            }
        }
        #expect(error?.code == .cancelled && error?.change == .rolledBack, "\(String(describing: error))")
        #expect(!FileManager.default.fileExists(atPath: folder.path("app.db-journal")))
        if isEncrypted { #expect(try content(folder) == commit.content) }
    }

    @Test(
        "An encryption that may recover a damaged database recovers one with a damaged journal or a moved super-journal"
    )
    func recoveringEncryption() throws {
        let commit = try committed(isEncrypted: false)
        for isDamaged in [false, true] {
            let folder = try faulty(commit, isDamaged: isDamaged)
            var options = ConversionOptions()
            options.onDamage = .recover
            let report = try EncryptionUpgrade(
                path: folder.path("app.db"), provider: TestKeys.provider(), options: options
            ).run()
            #expect(report.outcome == .recovered, "\(report)")
            #expect(report.recovery?.complete == false, "\(report)")
        }
    }

    @Test(
        "A killed transaction is rolled back although an older fault has left pages that nothing uses",
        arguments: 0...2)
    func unusedPages(autoVacuum: Int) throws {
        let writer = try Writer(isEncrypted: true, autoVacuum: autoVacuum)
        _ = try writer.commit(
            """
            CREATE TABLE t(a); INSERT INTO t VALUES (randomblob(9)), (randomblob(5000)); CREATE TABLE g(a);
            INSERT INTO g VALUES (randomblob(9000)); CREATE TABLE h(a); INSERT INTO h VALUES (randomblob(9000));
            """)
        try writer.editSchema("DELETE FROM sqlite_master WHERE name = 'g'")
        let scripts = [
            "CREATE TABLE n(a); INSERT INTO n VALUES (randomblob(3000))", "CREATE INDEX ti ON t(a)",
            "INSERT INTO t VALUES (randomblob(20000))", "DROP TABLE h", "DELETE FROM t WHERE rowid > 1",
        ]
        for script in scripts {
            let commit = try writer.commit(script)
            let written = commit.after + commit.before.dropFirst(commit.after.count)
            for file in [
                written, commit.half, written.prefix(written.count / 2) + commit.before.dropFirst(written.count / 2),
            ] {
                let folder = try folder(file, journal: commit.journal)
                #expect(
                    try recovered(folder) { try $0.value(String.self, Writer.content) } == commit.content, "\(script)")
                #expect(try upgrade(folder) == .alreadyEncrypted, "\(script)")
                #expect(try content(folder) == commit.content, "\(script)")
            }
        }
    }

    @Test("A torn first page is restored even if the rest of the file looks encrypted")
    func tornFirstPageOfBlobs() throws {
        let writer = try Writer(isEncrypted: false)
        _ = try writer.commit(
            "CREATE TABLE t(a); WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60) "
                + "INSERT INTO t SELECT randomblob(9000) FROM n")
        let commit = try writer.commit("DELETE FROM t WHERE rowid = 1; PRAGMA user_version = 7")
        let folder = try folder(Data(count: 512) + commit.half.dropFirst(512), journal: commit.journal)
        #expect(try upgrade(folder) == .encrypted)
        #expect(try content(folder) == commit.content)
    }
}
