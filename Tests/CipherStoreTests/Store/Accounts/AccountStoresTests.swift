internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherHistory
internal import CipherKeyProviders
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

@Suite("Stores of several accounts", .timeLimit(.minutes(20)))
struct AccountStoresTests {
    private let folder: TemporaryFolder
    private let configuration = Configuration.declaring(["chat": ["uid": "TEXT", "body": "TEXT"]])

    init() throws {
        folder = try TemporaryFolder()
    }

    /// Returns a separate key for each account.
    private static func key(of account: String) throws -> CipherKey {
        let byte = account.utf8.reduce(UInt8(1)) { $0 &* 31 &+ $1 }
        return try TestKeys.raw(byte)
    }

    private func accounts() -> AccountStores {
        AccountStores(configuration, directory: folder.url) { account in
            .closure { _, _ in try Self.key(of: account) }
        }
    }

    /// A legacy plaintext database of an account at a version.
    private func writeLegacy(_ account: String, version: Int = 3) throws {
        let path = folder.path(account)
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        try LegacyFile.write(
            path + "/app.db",
            script:
                "CREATE TABLE chat(uid TEXT); INSERT INTO chat VALUES ('\(account)'); PRAGMA user_version = \(version)")
    }

    private func users(_ store: EncryptedStore) async throws -> [String] {
        try await store.read { try $0.values(String.self, "SELECT uid FROM chat ORDER BY rowid") }
    }

    private func insert(_ user: String, _ store: EncryptedStore) async throws {
        try await store.write { try $0.execute("INSERT INTO chat(uid) VALUES (\(user))") }
    }

    @Test("A second account is a separate first install, with its own file, version and key")
    func secondAccount() async throws {
        try writeLegacy("anna")
        let accounts = accounts()
        let anna = try await accounts.switch(to: "anna")
        #expect(anna.report.outcome == .encrypted)
        #expect(anna.report.migration.from == 3)
        let ben = try await accounts.switch(to: "Ben/..")
        #expect(ben.report.outcome == .created)
        #expect(!ben.report.isUpdate)
        #expect(try await users(ben).isEmpty)
        #expect(try folder.names == ["%42en%2F..", "anna"])
        await accounts.closeAll()
        let again = self.accounts()
        #expect(try await users(again.open("anna")) == ["anna"])
        await again.closeAll()
        let key = try Self.key(of: "Ben/..")
        #expect(throws: DatabaseError.self) {
            try Connection(
                path: folder.path("anna/app.db"), mode: .readOnly, key: key, settings: CipherSettings())
        }
    }

    @Test("Switching closes one account and opens the next, and the same account stays open")
    func switching() async throws {
        let accounts = accounts()
        let anna = try await accounts.switch(to: "anna")
        #expect(try await accounts.switch(to: "anna") === anna)
        let ben = try await accounts.switch(to: "ben")
        #expect(await accounts.current == "ben")
        #expect(try await failure(StoreError.self) { try await users(anna) }.code == .closed)
        #expect(try await users(ben).isEmpty)
        let annaAgain = try await accounts.switch(to: "anna")
        #expect(annaAgain !== anna)
        #expect(annaAgain.report.outcome == .opened)
        await accounts.close("anna")
        #expect(await accounts.current == nil)
        await accounts.closeAll()
    }

    @Test("Simultaneous switches run one after another, and leave one account open")
    func switchesAtOnce() async throws {
        let accounts = accounts()
        let names = ["a", "b", "c", "d"]
        try await withThrowingTaskGroup(of: Void.self) { group in
            for name in names + names { group.addTask { _ = try await accounts.switch(to: name) } }
            try await group.waitForAll()
        }
        let current = try #require(await accounts.current)
        #expect(names.contains(current))
        #expect(try await users(accounts.open(current)).isEmpty)
        await accounts.closeAll()
    }

    @Test("A failed switch leaves no account current, and the next one works")
    func failedSwitch() async throws {
        try writeLegacy("new", version: 99)
        let accounts = accounts()
        _ = try await accounts.switch(to: "anna")
        #expect(try await failure(StoreError.self) { try await accounts.switch(to: "new") }.code == .downgrade)
        #expect(await accounts.current == nil)
        #expect(try await accounts.switch(to: "anna").report.outcome == .opened)
        await accounts.closeAll()
    }

    @Test("An account is upgraded while another is in use, and two are upgraded at once")
    func upgradesAtOnce() async throws {
        for account in ["ben", "carla"] { try writeLegacy(account) }
        let accounts = accounts()
        let anna = try await accounts.switch(to: "anna")
        let (both, used) = (Gate(), Gate())
        // Each upgrade waits until the other has begun and the account in use was written.
        let began = Begun()
        let progress: @Sendable (String) -> (UpgradeProgress) -> Void = { account in
            { _ in
                guard began.insert(account) else { return }
                both.arrive()
                both.block(until: 2)
                used.block()
            }
        }
        async let ben = accounts.open("ben", progress: { progress("ben")($0) })
        async let carla = accounts.open("carla", progress: { progress("carla")($0) })
        // If the test ends early, as at its time limit, no upgrade waits forever.
        defer {
            for _ in 1...2 { both.arrive() }
            used.arrive()
        }
        await both.wait(until: 2)
        try await insert("anna", anna)
        used.arrive()
        let stores = try await (ben, carla)
        #expect(stores.0.report.outcome == .encrypted)
        #expect(stores.1.report.outcome == .encrypted)
        #expect(try await users(anna) == ["anna"])
        #expect(try await users(stores.0) == ["ben"])
        #expect(try await users(stores.1) == ["carla"])
        await accounts.closeAll()
    }

    /// The accounts whose upgrade has begun.
    private final class Begun: @unchecked Sendable {
        // Read and written only under `lock`.
        private var accounts: Set<String> = []
        private let lock = NSLock()

        /// Records an account, and returns whether it is the first time.
        func insert(_ account: String) -> Bool { lock.withLock { accounts.insert(account).inserted } }
    }

    @Test("Simultaneous calls for one account share its store, and a store closed elsewhere is opened again")
    func sharedStore() async throws {
        let accounts = accounts()
        async let first = accounts.open("anna")
        async let second = accounts.open("anna")
        let (one, two) = try await (first, second)
        #expect(one === two)
        await one.close()
        let three = try await accounts.open("anna")
        #expect(three !== one)
        #expect(try await users(three).isEmpty)
        await accounts.closeAll()
    }

    @Test("A canceled opening ends if no other call waits for it, and continues for those that do")
    func cancelledOpening() async throws {
        for isShared in [false, true] {
            let account = isShared ? "shared" : "alone"
            try writeLegacy(account)
            let accounts = accounts()
            let (began, released) = (Gate(), Gate())
            let first = Task {
                try await accounts.open(
                    account,
                    progress: { _ in
                        began.arrive()
                        released.block()
                    })
            }
            await began.wait()
            let second = isShared ? Task { try await accounts.open(account) } : nil
            while isShared, await accounts.waiting(for: account) < 2 { await Task.yield() }
            first.cancel()
            while await accounts.waiting(for: account) > (isShared ? 1 : 0) { await Task.yield() }
            released.arrive()
            if let second {
                #expect(try await users(second.value) == [account])
                #expect(try await first.value === second.value)
            } else {
                await #expect(throws: CancellationError.self) { try await first.value }
                let bytes = try Data(contentsOf: URL(filePath: folder.path("alone/app.db")))
                #expect(bytes.starts(with: Data("SQLite".utf8)))
            }
            await accounts.closeAll()
        }
    }

    @Test("Removing an account removes its files and its folder, and the account then starts anew")
    func removal() async throws {
        let accounts = accounts()
        try await insert("anna", accounts.open("anna"))
        try await insert("ben", accounts.switch(to: "ben"))
        for name in ["app.db-damaged", "app.db-damaged-wal", "app.db-damaged-2"] {
            try folder.write("rows of ben's", to: "ben/\(name)")
        }
        try await accounts.remove("ben")
        try await accounts.remove("never there")
        #expect(await accounts.current == nil)
        #expect(try folder.names == ["anna"])
        let ben = try await accounts.open("ben")
        #expect(ben.report.outcome == .created)
        #expect(try await users(ben).isEmpty)
        #expect(try await users(accounts.open("anna")) == ["anna"])
        await accounts.closeAll()
        try folder.write("the app's", to: "ben/notes.txt")
        try await accounts.remove("ben")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path("ben")) == ["notes.txt"])
    }

    @Test("Removing an account removes the copies of interrupted conversions, whatever the attempt record says")
    func removesUnfinishedFiles() async throws {
        let accounts = accounts()
        try await insert("anna", accounts.open("anna"))
        for name in ["app.db-upgrade-0123456789abcdef", "app.db-plaintext-0123456789abcdef"] {
            try folder.write("rows of anna's", to: "anna/\(name)")
        }
        try folder.write("the app's", to: "anna/app.db-upgrade-notes")
        try await accounts.remove("anna")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path("anna")) == ["app.db-upgrade-notes"])
    }

    @Test("Removing an account removes the copy that the app's own unfinished upgrade left")
    func removesInterruptedCopy() async throws {
        let template = try template()
        let accounts = AccountStores(
            Configuration(
                databaseName: "app.db", version: 1, recordedVersion: .userVersion,
                schema: .template(SchemaTemplate(file: template.path))),
            directory: folder.url
        ) { account in .closure { _, _ in try Self.key(of: account) } }
        try await insert("anna", accounts.open("anna"))
        for name in ["appTemp.db", "appTemp.db-journal"] { try folder.write("rows of anna's", to: "anna/\(name)") }
        try await accounts.remove("anna")
        #expect(try folder.names == [])
    }

    /// Accounts whose databases are in one folder, and whose upgrades by the app itself copied a template.
    private func accountsInOneFolder(
        _ template: LegacyFile, leftover: SchemaTemplate.Leftover? = nil
    ) -> AccountStores {
        let directory = folder.url
        return AccountStores(
            Configuration(
                databaseName: "app.db", version: 1, recordedVersion: .userVersion,
                schema: .template(SchemaTemplate(file: template.path, leftover: leftover))),
            location: { directory.appending(path: "\($0).db") },
            keyProvider: { account in .closure { _, _ in try Self.key(of: account) } })
    }

    private func template() throws -> LegacyFile {
        try LegacyFile { try $0.executeScript(text: "CREATE TABLE chat(uid TEXT); PRAGMA user_version = 1") }
    }

    /// A legacy plaintext database in the folder of all accounts.
    private func writeLegacyInOneFolder(_ account: String) throws {
        try LegacyFile.write(
            folder.path("\(account).db"),
            script: "CREATE TABLE chat(uid TEXT); INSERT INTO chat VALUES ('a row'); PRAGMA user_version = 1")
    }

    @Test("An account without a database does not get another account's file that has the name of its copy")
    func doesNotUseFileOfOtherAccount() async throws {
        let template = try template()
        try writeLegacyInOneFolder("annaTemp")
        let accounts = accountsInOneFolder(template)
        let error = try await failure(StoreError.self) { try await accounts.open("anna") }
        #expect(error.code == .migration && error.detail.contains("annaTemp.db"), "\(error)")
        #expect(error.advice.contains("template.leftover"), "\(error)")
        #expect(error.advice.contains("applies to all databases"), "\(error)")
        #expect(try folder.names == ["annaTemp.db"])
        let deciding = accountsInOneFolder(template, leftover: .database)
        #expect(try await users(deciding.open("anna")).isEmpty)
        #expect(try await users(deciding.open("annaTemp")) == ["a row"])
        await deciding.closeAll()
        #expect(try await accounts.open("anna").report.warnings.besidesLeases == [])
        await accounts.closeAll()
    }

    @Test("With template.leftover, an account without a database gets the copy that the app's own upgrade left")
    func usesDeclaredCopy() async throws {
        let template = try template()
        try writeLegacyInOneFolder("annaTemp")
        let accounts = accountsInOneFolder(template, leftover: .copy)
        #expect(try await users(accounts.open("anna")) == ["a row"])
        await accounts.closeAll()
        #expect(try !folder.names.contains("annaTemp.db"))
        try writeLegacyInOneFolder("annaTemp")
        let error = try await failure(StoreError.self) { try await accounts.remove("anna") }
        #expect(error.code == .nameTaken && error.path?.hasSuffix("annaTemp.db") == true, "\(error)")
        #expect(try folder.names == ["annaTemp.db"])
    }

    @Test("With template.leftover, another account's store that has the name of an account's copy is left alone")
    func doesNotRemoveStoreOfOtherAccount() async throws {
        let template = try template()
        for account in ["anna", "annaTemp"] { try writeLegacyInOneFolder(account) }
        let accounts = accountsInOneFolder(template, leftover: .copy)
        #expect(try await users(accounts.open("annaTemp")) == ["a row"])
        let warnings = try await accounts.open("anna").report.warnings
        #expect(!warnings.contains { $0.contains("annaTemp.db") }, "\(warnings)")
        try await accounts.remove("anna")
        #expect(try folder.names.contains("annaTemp.db"))
        await accounts.closeAll()
        #expect(try await users(accounts.open("annaTemp")) == ["a row"])
        await accounts.closeAll()
    }

    @Test(
        "Another account's file that has the name of an account's copy is kept, although the account has its rows",
        arguments: [nil, SchemaTemplate.Leftover.copy, .database])
    func doesNotRemoveFileOfOtherAccount(leftover: SchemaTemplate.Leftover?) async throws {
        let template = try template()
        for account in ["anna", "annaTemp"] { try writeLegacyInOneFolder(account) }
        let accounts = accountsInOneFolder(template, leftover: leftover)
        let warnings = try await accounts.open("anna").report.warnings
        #expect(warnings.contains { $0.contains("annaTemp.db") }, "\(warnings)")
        #expect(try await users(accounts.open("annaTemp")) == ["a row"])
        await accounts.closeAll()
    }

    @Test("The removal of an account reports a file that may be the account's copy or another account's database")
    func removalReportsAmbiguousFile() async throws {
        let template = try template()
        for account in ["anna", "annaTemp"] { try writeLegacyInOneFolder(account) }
        let accounts = accountsInOneFolder(template)
        let error = try await failure(StoreError.self) { try await accounts.remove("anna") }
        #expect(error.code == .nameTaken && error.path?.hasSuffix("annaTemp.db") == true, "\(error)")
        #expect(try folder.names == ["annaTemp.db"])
        #expect(try await users(accounts.open("annaTemp")) == ["a row"])
        await accounts.closeAll()
        try await accounts.remove("anna")
        #expect(try await users(accounts.open("annaTemp")) == ["a row"])
        await accounts.closeAll()
    }

    @Test("An account's file that is a link to a file reserved for another database is refused")
    func linkToReservedName() async throws {
        let directory = folder.url
        let accounts = AccountStores(
            configuration, location: { directory.appending(path: $0) },
            keyProvider: { account in .closure { _, _ in try Self.key(of: "any") } })
        try folder.write("", to: "bob-plaintext")
        try FileManager.default.createSymbolicLink(
            atPath: folder.path("anna"), withDestinationPath: folder.path("bob-plaintext"))
        #expect(try await failure(StoreError.self) { try await accounts.open("anna") }.code == .misuse)
        #expect(try await failure(StoreError.self) { try await accounts.remove("anna") }.code == .misuse)
        #expect(try folder.names == ["anna", "bob-plaintext"])
    }

    @Test("An account whose folder is a link can be removed repeatedly")
    func removalThroughFolderLink() async throws {
        let real = try TemporaryFolder()
        try FileManager.default.createSymbolicLink(
            atPath: folder.path("anna"), withDestinationPath: real.url.path(percentEncoded: false))
        let accounts = accounts()
        try await insert("anna", accounts.open("anna"))
        for _ in 0..<2 {
            try await accounts.remove("anna")
            #expect(try real.names == [])
        }
        #expect(try folder.names == ["anna"])
    }

    @Test(
        "An account cannot have a file name that is reserved for the files of another database",
        arguments: ["bob-plaintext", "bob-damaged-2", "bob-wal", "bob-attempt", "bob-upgrade-0123456789abcdef"])
    func reservedNames(_ name: String) async throws {
        let directory = folder.url
        let accounts = AccountStores(
            configuration, location: { directory.appending(path: $0) },
            keyProvider: { account in .closure { _, _ in try Self.key(of: "any") } })
        #expect(try await failure(StoreError.self) { try await accounts.open(name) }.code == .misuse)
        #expect(try await failure(StoreError.self) { try await accounts.remove(name) }.code == .misuse)
        try await insert("bob", accounts.open("bob"))
        await accounts.closeAll()
    }

    @Test("An account that another connection has open is not removed")
    func removalInUse() async throws {
        let accounts = accounts()
        try await insert("anna", accounts.open("anna"))
        let other = try Connection(
            path: folder.path("anna/app.db"), mode: .readWrite, key: Self.key(of: "anna"), settings: CipherSettings())
        defer { other.close() }
        #expect(try other.value(Int.self, "SELECT count(*) FROM chat") == 1)
        #expect(try await failure(StoreError.self) { try await accounts.remove("anna") }.code == .busy)
        #expect(try await users(accounts.open("anna")) == ["anna"])
        await accounts.closeAll()
    }

    @Test("Accounts can have the files that the app chooses, but two accounts cannot share one")
    func ownLocations() async throws {
        let directory = folder.url
        let accounts = AccountStores(
            configuration,
            location: { directory.appending(path: $0.hasPrefix("same") ? "same.db" : "\($0).db") },
            keyProvider: { account in .closure { _, _ in try Self.key(of: "any") } })
        try await insert("anna", accounts.open("anna"))
        try await insert("same", accounts.open("same 1"))
        #expect(try await failure(StoreError.self) { try await accounts.open("same 2") }.code == .misuse)
        #expect(try await users(accounts.open("same 1")) == ["same"])
        await accounts.closeAll()
        #expect(try folder.names == ["anna.db", "same.db"])
        try await accounts.remove("same 1")
        #expect(try folder.names == ["anna.db"])
    }

    // MARK: Suspension

    @Test("Suspending all accounts suspends each one, after any current opening, and opens none until they are resumed")
    func suspension() async throws {
        try writeLegacy("ben")
        let accounts = accounts()
        let anna = try await accounts.switch(to: "anna")
        let (began, released) = (Gate(), Gate())
        let opening = Task {
            try await accounts.open(
                "ben",
                progress: { _ in
                    began.arrive()
                    released.block()
                })
        }
        await began.wait()
        let suspended = Task { await accounts.suspendAll() }
        while (try? await users(anna)) != nil { await Task.yield() }
        #expect(try await failure(StoreError.self) { try await accounts.open("carla") }.code == .suspended)
        #expect(try await failure(StoreError.self) { try await accounts.switch(to: "carla") }.code == .suspended)
        #expect(await accounts.current == "anna")
        released.arrive()
        await suspended.value
        let ben = try await opening.value
        #expect(try await accounts.open("ben") === ben)
        for store in [anna, ben] {
            #expect(try await failure(StoreError.self) { try await users(store) }.code == .suspended)
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path("anna")) == ["app.db"])
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path("ben")) == ["app.db"])
        await accounts.resumeAll()
        #expect(try await users(ben) == ["ben"])
        #expect(try await users(anna).isEmpty)
        #expect(try await users(accounts.open("carla")).isEmpty)
        await accounts.closeAll()
    }

    @Test("A time limit cancels the openings of accounts, which start again after the suspension")
    func suspensionLimit() async throws {
        try writeLegacy("ben")
        let accounts = accounts()
        let (began, released) = (Gate(), Gate())
        let opening = Task {
            try await accounts.open(
                "ben",
                progress: { _ in
                    began.arrive()
                    released.block()
                })
        }
        await began.wait()
        let suspended = Task { await accounts.suspendAll(interruptingAfter: .zero) }
        // The opening is already canceled, and detects this as soon as its closure continues.
        while await !accounts.isCancelled("ben") { await Task.yield() }
        released.arrive()
        await suspended.value
        #expect(try await failure(StoreError.self) { try await opening.value }.code == .suspended)
        let bytes = try Data(contentsOf: URL(filePath: folder.path("ben/app.db")))
        #expect(bytes.starts(with: Data("SQLite".utf8)))
        await accounts.resumeAll()
        #expect(try await users(accounts.open("ben")) == ["ben"])
        await accounts.closeAll()
    }
}
