internal import CipherDatabaseConversion
internal import CipherHistory
internal import CipherSQLite
internal import CipherStore
internal import CipherSystemFiles
import CipherTestSupport
import Foundation
import Testing

/// Inspecting the files of a killed writer changes nothing, not even the index of the log.
struct ReadOnlyAccessTests {
    private static let subject = TestProgram.built("CipherCrashSubject")
    private static var isPossible: Bool { subject.isThere && Engine.current.readsLogWithoutIndex }

    @Test("An inspection waits for other connections for as long as specified", arguments: [true, false])
    func busyTimeout(isEncrypted: Bool) throws {
        let file = try OpeningFixture.file(version: 23, encryptedWith: isEncrypted ? TestKeys.raw() : nil)
        var options = ConversionOptions()
        options.busyTimeout = .seconds(47)
        let found = try DatabaseReader(options.inspector(DatabasePaths(file.path)))
            .read(provider: TestKeys.provider(), formats: [CipherSettings()]) { connection, _ in connection.busyTimeout
            }
        #expect(found == .seconds(47))
    }

    @Test(
        "An inspection does not write the index of a killed writer's log", .enabled(if: isPossible),
        arguments: ["plaintext", "encrypted"], [false, true])
    func index(form: String, isDamaged: Bool) throws {
        let folder = try TemporaryFolder()
        let path = folder.path("app.db")
        #expect(try Self.subject.run(["make", path, form]).status == 0)
        try #require(try folder.names == ["app.db", "app.db-shm", "app.db-wal"])
        if isDamaged {
            try Data(repeating: 7, count: 32_768).write(to: folder.url.appending(path: "app.db-shm"))
        }
        let before = try FolderDigest(folder.url)

        let inspection = try Inspector(path: path).inspect(provider: TestKeys.provider(), formats: [CipherSettings()])
        #expect(inspection.version == 23)
        #expect(try FolderDigest(folder.url) == before)

        let rows = try DatabaseReader(path: path).read(provider: TestKeys.provider(), formats: [CipherSettings()]) {
            connection, _ in try connection.value(Int.self, "SELECT count(*) FROM chat")
        }
        #expect(rows == 40)
        #expect(try FolderDigest(folder.url) == before)

        let configuration = Configuration(
            databaseName: "app.db", version: 30, encryption: .init(isEnabled: form == "encrypted"))
        let plan = try StoreOpening(
            configuration: configuration, directory: folder.url.path(percentEncoded: false),
            provider: TestKeys.provider()
        ).plan(isAlone: true)
        #expect(plan.step == (form == "encrypted" ? .open : .openPlaintext))
        #expect(try FolderDigest(folder.url) == before)
    }

    @Test("A database whose log was cut off after its header is read", .enabled(if: isPossible))
    func logWithoutFrames() throws {
        let folder = try TemporaryFolder()
        let path = folder.path("app.db")
        #expect(try Self.subject.run(["make", path, "plaintext"]).status == 0)
        let log = try FileHandle(forWritingTo: URL(filePath: path + "-wal"))
        try log.truncate(atOffset: 32)
        try log.close()
        #expect(try Inspector(path: path).inspect(provider: nil, formats: []).state == .plaintext)
    }

    #if !os(iOS) && !os(tvOS) && !os(watchOS)
        @Test("An inspection leaves nothing beside a read-only file in WAL mode")
        func unwritable() async {
            // Runs in a separate process, because the user ID belongs to the whole process.
            await #expect(processExitsWith: .success) {
                for isEncrypted in [false, true] {
                    for emptyLog in [false, true] {
                        let folder = try TemporaryFolder()
                        let path = folder.path("app.db")
                        let connection = try Connection(
                            URL(filePath: path), mode: .create, key: isEncrypted ? TestKeys.raw() : nil)
                        try connection.executeScript(
                            """
                            PRAGMA journal_mode = WAL; CREATE TABLE t(a); INSERT INTO t VALUES(1);
                            PRAGMA user_version = 3
                            """)
                        connection.close()
                        if emptyLog { try Data().write(to: URL(filePath: path + "-wal")) }
                        for name in try folder.names {
                            try #require(chmod(folder.path(name), 0o444) == 0)
                            if geteuid() == 0 { try #require(chown(folder.path(name), 65534, 65534) == 0) }
                        }
                        if geteuid() == 0 { try #require(chmod(folder.path(""), 0o777) == 0) }
                        let before = try FolderDigest(folder.url)
                        try FileSystemTests.unprivileged {
                            try #require(!FileSystem.canWrite(path) && FileSystem.canWriteInFolder(folder.path("")))
                            let inspection = try Inspector(path: path)
                                .inspect(provider: TestKeys.provider(), formats: [CipherSettings()])
                            #expect(inspection.version == 3)
                            #expect(inspection.journalMode == "wal")
                            let rows = try DatabaseReader(path: path)
                                .read(provider: TestKeys.provider(), formats: [CipherSettings()]) { connection, _ in
                                    try connection.value(Int.self, "SELECT count(*) FROM t")
                                }
                            #expect(rows == 1)
                        }
                        #expect(try FolderDigest(folder.url) == before)
                    }
                }
            }
        }
    #endif
}
