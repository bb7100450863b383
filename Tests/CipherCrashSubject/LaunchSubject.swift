internal import CipherStore
internal import CipherSystemFiles
import CipherTestSupport
import Foundation

/// A complete launch: encrypt, migrate, open.
enum LaunchSubject {
    /// The version of the app, one above the version of the file that ``Subject`` makes.
    static let version = 24

    /// Adds a column, and a constraint that requires a rebuild of a table.
    private static let tables = [
        DeclaredTable(
            name: "chat",
            columns: [
                DeclaredTable.Column(name: "id", definition: "INTEGER PRIMARY KEY AUTOINCREMENT"),
                DeclaredTable.Column(name: "body", definition: "TEXT NOT NULL"),
                DeclaredTable.Column(name: "content", definition: "BLOB"),
                DeclaredTable.Column(name: "draft", definition: "TEXT DEFAULT 'none'"),
            ], indexes: [DeclaredTable.Index(name: "chat_by_body", columns: ["body"])])
    ]

    /// Opens the store as an app does at its launch, reads, and returns what the opening did.
    ///
    /// - Parameter change: `rekey` for an app that now has another key, `decrypt` for one that has turned encryption
    ///   off, `use` for one that then works with the store, `change-key` for one that changes its key while it writes,
    ///   `encrypt-open` for one whose store is encrypted while it writes, `recover` for one that recovers a damaged
    ///   file.
    static func run(_ path: String, change: String?) async throws -> String {
        let file = URL(filePath: path)
        let isOff = change == "decrypt"
        let rotation = KeyRotation(
            from: TestKeys.provider(), to: TestKeys.provider { try Subject.newKey() }, whenDone: { _ in })
        var encryption = Configuration.Encryption(
            isEnabled: !isOff, sinceVersion: SchemaVersion(version), whenDisabled: isOff ? .decrypt : .refuse)
        encryption.onDamage = change == "recover" ? .recover : .rebuildIndexes
        encryption.when = change == "encrypt-open" ? .whileOpen : .beforeOpening
        var options = EncryptedStore.Options()
        // If a lock could not be released, each call waits for it.
        if change == "encrypt-open" { options.busyTimeout = .milliseconds(500) }
        let settings = options
        func open(_ provider: any KeyProvider) async throws -> EncryptedStore {
            try await EncryptedStore.open(
                Configuration(
                    databaseName: file.lastPathComponent, version: SchemaVersion(version), encryption: encryption,
                    schema: .tables(tables)),
                directory: file.deletingLastPathComponent(), keyProvider: provider, options: settings)
        }
        let store: EncryptedStore
        var isChanged = false
        do {
            store = try await open(change == "rekey" ? rotation : TestKeys.provider())
        } catch let error as StoreError where error.code == .keyDoesNotFit && change == "change-key" {
            // An earlier run has changed the key.
            store = try await open(rotation)
            isChanged = true
        }
        let rows: Int?
        do {
            if change == "use" { try await use(store) }
            if change == "change-key", !isChanged { try await changeKey(store) }
            if change == "encrypt-open" { try await OpenEncryptionSubject.use(store) }
            rows = try await store.read { try $0.value(Int.self, "SELECT count(*) FROM chat WHERE draft = 'none'") }
        } catch let error as DatabaseError {
            // An error in the app's own SQL has SQLite's error type.
            await store.close()
            throw Failure(text: "read: \(error)", status: 2)
        } catch {
            await store.close()
            throw error
        }
        await store.close()
        guard rows == Subject.rows else {
            throw Failure(text: "rows are missing: \(rows ?? 0)", status: 1)
        }
        return (["launched"] + store.report.warnings.filter { !Subject.isExpected($0) }).joined(separator: "; ")
    }

    /// Observes, writes, makes a backup meanwhile, is suspended and resumes; every row is as before at each commit.
    private static func use(_ store: EncryptedStore) async throws {
        // Not `Equatable`, so that an equal value is reported again.
        struct Count: Sendable { let rows: Int? }
        var counts = store.observe { Count(rows: try $0.value(Int.self, "SELECT count(*) FROM chat")) }
            .makeAsyncIterator()
        let copy = URL(filePath: FileName.sibling("copy.db", of: store.path))
        for round in 0..<2 {
            _ = try await counts.next()
            async let backup: Void = {
                // An earlier run may have made the backup.
                guard round == 0, try !FileSystem.exists(copy.path(percentEncoded: false)) else { return }
                try await store.backup(to: copy)
            }()
            try await store.write { db in
                try db.execute("UPDATE chat SET body = body || 'x' WHERE id % 2 = 0")
                try db.execute("UPDATE chat SET body = substr(body, 1, length(body) - 1) WHERE id % 2 = 0")
            }
            guard try await counts.next()?.rows == Subject.rows else {
                throw Failure(text: "the observer missed a commit", status: 1)
            }
            try await backup
            await store.suspend()
            store.resume()
            try await store.write { try $0.execute("UPDATE chat SET draft = draft") }
        }
    }

    /// Changes the key, and writes while the pages are copied and again when the copy is finished.
    ///
    /// Every row is as before at each commit.
    private static func changeKey(_ store: EncryptedStore) async throws {
        @Sendable func write() throws {
            try store.writeBlocking { db in
                try db.execute("UPDATE chat SET body = body || 'x' WHERE id % 2 = 0")
                try db.execute("UPDATE chat SET body = substr(body, 1, length(body) - 1) WHERE id % 2 = 0")
            }
        }
        try write()
        let report = try await store.changeKey(to: TestKeys.provider { try Subject.newKey() }) { progress in
            // A failed write is the app's failure; the key change continues.
            if progress.stage == .building, progress.fraction < 0.9 { try? write() }
        }
        guard report.outcome == .rekeyed else { throw Failure(text: "the key was not changed", status: 1) }
        try await store.write { try $0.execute("UPDATE chat SET draft = draft") }
    }
}
