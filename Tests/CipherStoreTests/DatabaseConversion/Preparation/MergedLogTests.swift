internal import CipherDatabaseConversion
internal import CipherErrors
import CipherSQLite
internal import CipherSQLiteFormat
import CipherTestSupport
import Foundation
import Testing

/// Logs with correct checksums that someone without the key wrote beside an encrypted file.
@Suite struct MergedLogTests {
    private static let rows = 600

    /// An encrypted file, whose pages can be changed and put into a log.
    private struct Sealed {
        let folder: TemporaryFolder
        let settings: CipherSettings
        var pages: [[UInt8]] = []

        var path: String { folder.path("app.db") }

        init(headerSize: Int = 0, compatibility: Int = Engine.current.defaultCompatibility) throws {
            folder = try TemporaryFolder(inMemory: true)
            settings = CipherSettings(compatibility: compatibility, plaintextHeaderSize: headerSize)
            try LegacyFile.write(path, key: TestKeys.rawWithSalt(), settings: settings) { connection in
                _ = try connection.value(String.self, "PRAGMA journal_mode = WAL")
                try connection.executeScript(
                    text: """
                        CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT);
                        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(rows))
                        INSERT INTO t SELECT i, 'row ' || i FROM n;
                        CREATE TABLE last(x); CREATE TABLE keyed(x PRIMARY KEY) WITHOUT /* hard to read */ ROWID;
                        """)
            }
            try read()
        }

        private mutating func read() throws {
            let bytes = [UInt8](try Data(contentsOf: URL(filePath: path)))
            pages = stride(from: 0, to: bytes.count, by: settings.pageSize).map {
                Array(bytes[$0..<$0 + settings.pageSize])
            }
        }

        /// Inserts as many rows again, and returns the former pages.
        mutating func grow() throws -> [[UInt8]] {
            let former = pages
            let connection = try Connection(
                path: path, mode: .readWrite, key: TestKeys.rawWithSalt(), settings: settings)
            defer { connection.close() }
            try connection.execute("INSERT INTO t SELECT id + 10000, name FROM t")
            _ = try connection.value(Int.self, "PRAGMA wal_checkpoint(TRUNCATE)")
            try read()
            return former
        }

        /// Writes the file, and beside it a log with these pages, the last of which ends a transaction.
        func write(log: [(number: Int, page: [UInt8])], pageCount: Int, pageSize: Int? = nil) throws {
            try Data(pages.flatMap { $0 }).write(to: URL(filePath: path))
            var bytes = big(0x377f_0682) + big(3_007_000) + big(pageSize ?? settings.pageSize)
            bytes += [UInt8](repeating: 7, count: 20)
            for (index, entry) in log.enumerated() {
                bytes += big(entry.number) + big(index == log.count - 1 ? pageCount : 0)
                bytes += [UInt8](repeating: 0, count: 16) + entry.page
            }
            bytes.sealLog()
            try Data(bytes).write(to: URL(filePath: path + "-wal"))
        }

        /// Writes the file, and beside it a hot journal with these pages.
        ///
        /// Source: SQLite, "Database File Format", section 3, and `pager.c`, `pager_cksum`.
        ///
        /// - Parameter padding: The number of pages of zeros after the database.
        func write(journal: [(number: Int, page: [UInt8])], pageCount: Int, padding: Int = 0) throws {
            let blank = [UInt8](repeating: 0, count: padding * settings.pageSize)
            try Data(pages.flatMap { $0 } + blank).write(to: URL(filePath: path))
            var bytes = JournalHeader.magic + big(journal.count) + big(7) + big(pageCount) + big(512)
            bytes += big(settings.pageSize) + [UInt8](repeating: 0, count: 512 - 28)
            for entry in journal {
                let sum = stride(from: settings.pageSize - 200, to: 0, by: -200).reduce(7) { $0 + Int(entry.page[$1]) }
                bytes += big(entry.number) + entry.page + big(sum)
            }
            try Data(bytes).write(to: URL(filePath: path + "-journal"))
        }

        private func big(_ number: Int) -> [UInt8] {
            (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
        }

        var garbage: [UInt8] { (0..<settings.pageSize).map { _ in .random(in: 0...255) } }

        /// Decrypts the file, and returns the error with which it is refused.
        func refusal(_ key: CipherKey? = nil) throws -> StoreError? {
            let before = try FolderDigest(folder.url)
            let key = try key ?? TestKeys.rawWithSalt()
            let error = try storeError {
                _ = try Decryption(
                    path: path, provider: TestKeys.provider { key }, formats: [settings],
                    options: ConversionOptions()
                ).run()
            }
            #expect(try FolderDigest(folder.url) == before)
            return error
        }

        /// Recovers the file into a new one, or in place, and returns the number of rows.
        func recovered(inPlace: Bool) throws -> (report: RecoveryReport, rows: Int?) {
            let provider = TestKeys.provider { try TestKeys.rawWithSalt() }
            let output = inPlace ? path : folder.path("new.db")
            let report =
                inPlace
                ? try InPlaceRecovery(
                    of: DatabasePaths(path), provider: provider, formats: [], options: ConversionOptions()
                ).runLocked()
                : try DatabaseRecovery(
                    of: DatabasePaths(path), provider: provider, formats: [], to: output, targetProvider: nil,
                    template: nil, options: ConversionOptions()
                ).run()
            let connection = try Connection(
                path: output, mode: .readOnly, key: TestKeys.rawWithSalt(), settings: CipherSettings())
            defer { connection.close() }
            return (report, try connection.value(Int.self, "SELECT count(*) FROM t"))
        }
    }

    @Test("A log with a page that is not authentic is not merged, even if the file has such a page too")
    func forged() throws {
        for isDamaged in [false, true] {
            for isFirstGenuine in [false, true] {
                var file = try Sealed()
                if isDamaged { file.pages[file.pages.count - 1][50] ^= 1 }
                let log = (isFirstGenuine ? [(1, file.pages[0])] : []) + [(3, file.garbage)]
                try file.write(log: log, pageCount: file.pages.count)
                let error = try file.refusal()
                #expect([.corrupt, .staleSidecar].contains(error?.code), "\(isDamaged) \(isFirstGenuine) \(error)")
            }
        }
    }

    @Test(
        "A log or a journal whose page 1 has another salt is not merged",
        arguments: 1...Engine.current.defaultCompatibility, [false, true])
    func otherSalt(compatibility: Int, isJournal: Bool) throws {
        let file = try Sealed(compatibility: compatibility)
        var first = file.pages[0]
        first[3] ^= 1
        for key in [try TestKeys.rawWithSalt(), try TestKeys.raw(9)] {
            if isJournal {
                try file.write(journal: [(1, first)], pageCount: file.pages.count)
            } else {
                try file.write(log: [(1, first)], pageCount: file.pages.count)
            }
            let error = try file.refusal(key)
            #expect([.corrupt, .staleSidecar].contains(error?.code), "\(error)")
        }
        guard compatibility > 1 else { return }
        let found = try file.recovered(inPlace: false)
        #expect(found.rows == Self.rows && !found.report.notes.isEmpty, "\(found.report)")
    }

    @Test("A journal with an old page is not rolled back because another page, which it also holds, is torn")
    func oldPage() throws {
        var file = try Sealed()
        let former = try file.grow()
        let root = try #require((2...former.count).first { former[$0 - 1] != file.pages[$0 - 1] })
        let unchanged = try #require((2..<former.count).first { former[$0 - 1] == file.pages[$0 - 1] })
        let journal = [(root, former[root - 1]), (unchanged, former[unchanged - 1])]
        try file.write(journal: journal, pageCount: file.pages.count)
        #expect(try file.refusal()?.code == .staleSidecar)
        file.pages[unchanged - 1] = file.garbage
        try file.write(journal: journal, pageCount: file.pages.count)
        #expect(try file.refusal()?.code == .staleSidecar)
        var found = try file.recovered(inPlace: false)
        #expect(found.rows ?? 0 > Self.rows && !found.report.complete, "\(found.report)")
        try FileManager.default.removeItem(atPath: file.folder.path("new.db"))
        // The torn page alone is what a crash leaves.
        try file.write(journal: [(unchanged, former[unchanged - 1])], pageCount: file.pages.count)
        found = try file.recovered(inPlace: false)
        #expect(found.rows == 2 * Self.rows && found.report.complete, "\(found.report)")
    }

    /// A killed app's database with a log of real commits.
    private struct Killed {
        let folder: TemporaryFolder
        var path: String { folder.path("app.db") }

        init(_ first: String, inLog: String, isEncrypted: Bool = true) throws {
            (folder, live) = (try TemporaryFolder(inMemory: true), try TemporaryFolder(inMemory: true))
            let connection = try Connection(path: live.path("app.db"), mode: .create)
            defer { connection.close() }
            if isEncrypted { try connection.setKey(TestKeys.raw(), settings: CipherSettings()) }
            _ = try connection.value(String.self, "PRAGMA journal_mode = WAL")
            _ = try connection.value(Int.self, "PRAGMA wal_autocheckpoint = 0")
            try connection.executeScript(text: first)
            _ = try connection.value(Int.self, "PRAGMA wal_checkpoint(TRUNCATE)")
            try connection.executeScript(text: inLog)
            for name in ["app.db", "app.db-wal"] {
                try FileManager.default.copyItem(atPath: live.path(name), toPath: folder.path(name))
            }
        }

        private let live: TemporaryFolder

        func recovery(to output: String) throws -> DatabaseRecovery {
            try DatabaseRecovery(
                of: DatabasePaths(path), provider: TestKeys.provider(), formats: [], to: output, targetProvider: nil,
                template: nil, options: ConversionOptions())
        }

        /// Recovers the database into a new one, and returns the number of rows.
        func recovered() throws -> (report: RecoveryReport, rows: Int?) {
            let output = try TemporaryFolder()
            let report = try recovery(to: output.path("new.db")).run()
            let connection = try Connection(
                path: output.path("new.db"), mode: .readOnly, key: TestKeys.raw(), settings: CipherSettings())
            defer { connection.close() }
            return (report, try connection.value(Int.self, "SELECT count(*) FROM t"))
        }

        func inPlace() throws -> InPlaceRecovery {
            try InPlaceRecovery(
                of: DatabasePaths(path), provider: TestKeys.provider(), formats: [], options: ConversionOptions())
        }
    }

    private static let filling = """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
        INSERT INTO t SELECT i, 'row ' || i FROM n;
        """

    @Test(
        "A journal beside a log with commits is never played back, and a recovery uses the log",
        arguments: [false, true])
    func journalBesideLog(isEncrypted: Bool) throws {
        let killed = try Killed("CREATE TABLE t(a, b)", inLog: Self.filling, isEncrypted: isEncrypted)
        let pageCount = UInt8(try Data(contentsOf: URL(filePath: killed.path)).count / 4_096)
        // It has no records, and leaves the file as it is.
        let header = JournalHeader.magic + [0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, pageCount, 0, 0, 2, 0, 0, 0, 16, 0]
        try Data(header + [UInt8](repeating: 0, count: 512 - header.count)).write(
            to: URL(filePath: killed.path + "-journal"))
        let before = try FolderDigest(killed.folder.url)
        let error = try storeError {
            _ = try EncryptionUpgrade(path: killed.path, provider: TestKeys.provider()).run()
        }
        #expect(error?.code == .staleSidecar)
        #expect(try storeError { _ = try killed.inPlace().runLocked() }?.code == .staleSidecar)
        let found = try killed.recovered()
        #expect(found.rows == 300 && !found.report.complete, "\(found.report)")
        #expect(try FolderDigest(killed.folder.url) == before)
    }

    @Test("A log with another page size is refused, also by what only reads the file")
    func otherPageSize() throws {
        let file = try Sealed()
        let pageSize = file.settings.pageSize * 2
        try file.write(log: [(2, file.pages[1] + file.pages[2])], pageCount: file.pages.count, pageSize: pageSize)
        #expect(try file.refusal()?.code == .staleSidecar)
        let before = try FolderDigest(file.folder.url)
        let error = try storeError {
            _ = try Verification.run(
                at: DatabasePaths(file.path), provider: TestKeys.provider { try TestKeys.rawWithSalt() },
                formats: [file.settings], extensions: SQLExtensions(), busyTimeout: .zero)
        }
        #expect(error?.code == .staleSidecar)
        #expect(try FolderDigest(file.folder.url) == before)
    }

    @Test("A forged log is not merged while a journal beside it is rolled back")
    func forgedLogWithJournal() throws {
        let file = try Sealed()
        for log in [[(3, file.garbage)], [(1, file.pages[0])], [(2, file.pages[2])]] {
            try file.write(journal: [], pageCount: file.pages.count)
            try file.write(log: log, pageCount: file.pages.count - (log[0].0 == 1 ? 1 : 0))
            #expect(try file.refusal()?.code == .staleSidecar)
        }
    }

    @Test("A forged page after the end that a log states does not take the place of the file's own page")
    func forgedPageAfterTheEnd() throws {
        var file = try Sealed()
        try #require(file.pages.count > 3)
        // Of a file without damage, such a log is not used at all.
        file.pages[file.pages.count - 1][50] ^= 1
        try file.write(log: [(3, file.garbage), (1, file.pages[0])], pageCount: 2)
        #expect(try file.refusal() != nil)
        let found = try file.recovered(inPlace: false)
        #expect(found.rows == Self.rows && !found.report.complete, "\(found.report)")
    }

    @Test("A log that holds pages with a former key after the end of the database is used")
    func formerKeyAfterTheEnd() throws {
        let key = TestKeys.text(0x5c)
        let killed = try Killed(
            "CREATE TABLE t(a, b)",
            inLog: Self.filling + """
                CREATE TABLE w AS SELECT hex(zeroblob(9000)) AS a FROM t; DROP TABLE w; VACUUM; PRAGMA rekey = "\(key)";
                """)
        let provider = TestKeys.provider { try TestKeys.raw(0x5c) }
        let found = try Verification.run(
            at: DatabasePaths(killed.path), provider: provider, formats: [CipherSettings()])
        #expect(found.isSound, "\(found)")
        let before = try FolderDigest(killed.folder.url)
        let output = try TemporaryFolder()
        let report = try DatabaseRecovery(
            of: DatabasePaths(killed.path), provider: provider, formats: [], to: output.path("new.db"),
            targetProvider: nil, template: nil, options: ConversionOptions()
        ).run()
        #expect(report.complete && report.rows == 300, "\(report)")
        #expect(try FolderDigest(killed.folder.url) == before)
    }

    @Test(
        "A log that creates the first virtual table, or turns its whole database into one with a pointer map, is used",
        arguments: [
            ("", "CREATE TABLE t(a, b); CREATE VIRTUAL TABLE f USING fts4(x);"),
            ("CREATE TABLE t(a, b)", "CREATE VIRTUAL TABLE f USING fts4(x);"),
            ("PRAGMA auto_vacuum = FULL", "CREATE TABLE t(a, b);"),
            ("PRAGMA encoding = 'UTF-16le'", "CREATE TABLE t(a, b);"),
            ("CREATE TABLE u(a)", "CREATE TABLE t(a PRIMARY KEY, b) WITHOUT ROWID /* ( ) */;"),
        ], [false, true])
    func newKinds(scripts: (String, String), isEncrypted: Bool) throws {
        let killed = try Killed(scripts.0, inLog: scripts.1 + Self.filling, isEncrypted: isEncrypted)
        let before = try FolderDigest(killed.folder.url)
        let found = try killed.recovered()
        #expect(found.rows == 300 && found.report.complete, "\(found.report)")
        #expect(try FolderDigest(killed.folder.url) == before)
        #expect(try storeError { _ = try killed.inPlace().runLocked() } == nil)
    }

    @Test("A log whose commit states fewer pages than the database uses does not cut the file")
    func smallerSize() throws {
        for isDamaged in [false, true] {
            var file = try Sealed()
            if isDamaged { file.pages[file.pages.count - 1][50] ^= 1 }
            for pageCount in 1..<file.pages.count {
                try file.write(log: [(1, file.pages[0])], pageCount: pageCount)
                #expect(try file.refusal() != nil, "\(isDamaged) \(pageCount)")
                let found = try file.recovered(inPlace: false)
                #expect(found.rows == Self.rows && !found.report.complete, "\(isDamaged) \(pageCount)")
                try FileManager.default.removeItem(atPath: file.folder.path("new.db"))
            }
        }
    }

    @Test(
        "Neither a log nor a journal cuts a file whose readable header states fewer pages than the database uses",
        .enabled(if: Engine.current.cipherMajor >= 4))
    func smallerReadableSize() throws {
        for changes in [[:], [27: 0x55], [31: 2], [27: 0x55, 31: 2]] as [[Int: UInt8]] {
            let file = try Sealed(headerSize: 32)
            var first = file.pages[0]
            for (offset, byte) in changes { first[offset] = byte }
            for pageCount in [2, 3] {
                try file.write(log: [(1, first)], pageCount: pageCount)
                #expect(try file.refusal() != nil, "\(changes) \(pageCount)")
                var found = try file.recovered(inPlace: false)
                #expect(found.rows == Self.rows && !found.report.complete, "\(changes) \(pageCount)")
                for name in ["new.db", "app.db-wal"] {
                    try FileManager.default.removeItem(atPath: file.folder.path(name))
                }
                for journal in [[(1, first)], []] {
                    try file.write(journal: journal, pageCount: pageCount)
                    #expect(try file.refusal() != nil, "\(changes) \(pageCount)")
                    #expect(try file.refusal(TestKeys.rawWithSalt(8)) != nil, "\(changes) \(pageCount)")
                    found = try file.recovered(inPlace: false)
                    #expect(found.rows == Self.rows && !found.report.complete, "\(changes) \(pageCount)")
                    for name in ["new.db", "app.db-journal"] {
                        try FileManager.default.removeItem(atPath: file.folder.path(name))
                    }
                }
            }
        }
    }

    @Test("A journal that states fewer pages than the database uses does not cut a file whose page 1 is damaged")
    func smallerJournal() throws {
        var file = try Sealed()
        let first = file.pages[0]
        for offset in [50, file.settings.pageSize - 70] {
            file.pages[0] = first
            file.pages[0][offset] ^= 1
            for pageCount in 1..<file.pages.count {
                try file.write(journal: [(1, first)], pageCount: pageCount)
                #expect(try file.refusal() != nil, "\(offset) \(pageCount)")
            }
        }
    }

    @Test(
        "A journal is rolled back although the file is longer than its readable header states",
        .enabled(if: Engine.current.cipherMajor >= 4), arguments: [true, false])
    func longerFile(hasRecord: Bool) throws {
        let file = try Sealed(headerSize: 32)
        try file.write(
            journal: hasRecord ? [(1, file.pages[0])] : [], pageCount: file.pages.count + 3, padding: 3)
        #expect(try file.refusal(TestKeys.rawWithSalt(8))?.code == .keyDoesNotFit)
        let report = try Decryption(
            path: file.path, provider: TestKeys.provider { try TestKeys.rawWithSalt() }, formats: [file.settings],
            options: ConversionOptions()
        ).run()
        #expect(report.outcome == .decrypted && report.rows == Self.rows)
    }

    @Test(
        "A database whose key was changed in its log is verified, diagnosed and recovered with the new key",
        arguments: [1024, 4096])
    func changedKey(pageSize: Int) throws {
        let folder = try TemporaryFolder(inMemory: true)
        let path = folder.path("app.db")
        let settings = CipherSettings(pageSize: pageSize)
        try LegacyFile.write(path, key: TestKeys.raw(), settings: settings, unclosed: true) { connection in
            _ = try connection.value(String.self, "PRAGMA journal_mode = WAL")
            try connection.executeScript(
                text: """
                    PRAGMA wal_autocheckpoint = 0; CREATE TABLE t(a);
                    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600)
                    INSERT INTO t SELECT 'row ' || i FROM n;
                    """)
            _ = try connection.value(Int.self, "PRAGMA wal_checkpoint(TRUNCATE)")
            try connection.execute(SQL(text: "PRAGMA rekey = \"\(TestKeys.text(8))\""))
        }
        let provider = TestKeys.provider { try TestKeys.raw(8) }
        let found = try Verification.run(at: DatabasePaths(path), provider: provider, formats: [settings])
        #expect(found.isSound, "\(found)")
        var options = DiagnosisOptions()
        options.format = settings
        let diagnosis = try Diagnostician(DatabasePaths(path), options).run { try TestKeys.raw(8).text }
        #expect(diagnosis.causes.isEmpty && diagnosis.format == settings, "\(diagnosis.causes)")
        let report = try DatabaseRecovery(
            of: DatabasePaths(path), provider: provider, formats: [], to: folder.path("new.db"), targetProvider: nil,
            template: nil, options: ConversionOptions()
        ).run()
        #expect(report.complete && report.rows == 600, "\(report)")
    }

    @Test(
        "A log does not change the readable header of a file, except for the counters",
        .enabled(if: Engine.current.cipherMajor >= 4))
    func readableHeader() throws {
        let file = try Sealed(headerSize: 32)
        for offset in Array(0..<24) {
            for change: UInt8 in [0x01, 0x03, 0x80, 0xfd] {
                var first = file.pages[0]
                first[offset] ^= change
                try file.write(log: [(1, first)], pageCount: file.pages.count)
                #expect(try file.refusal() != nil, "byte \(offset) ^ \(change)")
            }
        }
    }

    @Test(
        "A recovery does not prefer a page that is not authentic to an earlier one that is",
        arguments: [false, true])
    func recovery(inPlace: Bool) throws {
        let file = try Sealed()
        for genuine in [[], [(1, file.pages[0])], [(3, file.pages[2])]] {
            try file.write(log: genuine + [(3, file.garbage)], pageCount: file.pages.count)
            if genuine.map(\.0) != [1], inPlace {
                // No newest version of a page is the file's, so the log belongs to another database.
                let before = try FolderDigest(file.folder.url)
                #expect(try storeError { _ = try file.recovered(inPlace: true) }?.code == .staleSidecar)
                #expect(try FolderDigest(file.folder.url) == before)
                continue
            }
            let found = try file.recovered(inPlace: inPlace)
            #expect(found.rows == Self.rows && !found.report.complete, "\(found.report)")
            for name in try file.folder.names { try FileManager.default.removeItem(atPath: file.folder.path(name)) }
        }
    }
}
