internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherKeyProviders
internal import CipherSQLite
internal import CipherStore
internal import CipherSystemFiles
import CipherTestSupport
import Foundation
import Testing

/// Stores on a legacy database that is encrypted while they are open.
struct OpenEncryptionFixture {
    let folder: TemporaryFolder
    let fixture: StoreFixture

    init() throws {
        folder = try TemporaryFolder()
        var fixture = StoreFixture(folder)
        fixture.configuration.encryption.when = .whileOpen
        self.fixture = fixture
    }

    /// A legacy database of a thousand pages.
    ///
    /// - Parameter first: A script that runs in the empty database.
    func writeLegacy(after first: String = "") throws {
        try LegacyFile.write(
            fixture.path,
            script: first + """
                CREATE TABLE chat(uid TEXT, body TEXT); INSERT INTO chat VALUES ('ana', 'old');
                CREATE TABLE big(id INTEGER PRIMARY KEY, body BLOB); CREATE INDEX big_body ON big(body);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
                INSERT INTO big(body) SELECT randomblob(9000) FROM n;
                PRAGMA user_version = 3;
                """)
    }

    /// Opens a store whose conversion waits before its first copy, until the gate is passed.
    func openHeld(
        _ provider: any KeyProvider = TestKeys.provider(), after first: String = "",
        _ change: (inout StoreFixture) -> Void = { _ in }
    ) async throws -> (store: EncryptedStore, conversion: StoreConversion, gate: Gate) {
        try writeLegacy(after: first)
        var fixture = fixture
        change(&fixture)
        let (gate, held) = (Gate(), Gate())
        fixture.options.events = { [tell = fixture.options.events] event in
            tell?(event)
            guard case .stage(.building) = event.kind, held.count == 0 else { return }
            held.arrive()
            gate.block()
        }
        let store = try await fixture.open(provider)
        #expect(store.report.outcome == .openedPlaintext)
        await held.wait()
        return (store, try #require(store.conversion), gate)
    }

    /// Checks that the store reads and writes, and that the file has the right form and is alone in its folder.
    func check(
        _ store: EncryptedStore, isEncrypted: Bool, bodies: [String], sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        #expect(try await store.bodies() == bodies, sourceLocation: sourceLocation)
        try await store.insert("after")
        let mode = try await store.read { try $0.value(String.self, "PRAGMA journal_mode") }
        #expect(mode == "wal", sourceLocation: sourceLocation)
        await store.close()
        #expect(try folder.names == ["app.db"], sourceLocation: sourceLocation)
        let start = try DatabaseFile(path: fixture.path).read(at: 0, count: 6)
        #expect((start != Array("SQLite".utf8)) == isEncrypted, sourceLocation: sourceLocation)
        // In every case, the next launch encrypts the file with every row.
        var next = fixture
        next.configuration.encryption.when = .beforeOpening
        let again = try await next.open()
        #expect(again.report.outcome == (isEncrypted ? .opened : .encrypted), sourceLocation: sourceLocation)
        #expect(try await again.bodies() == bodies + ["after"], sourceLocation: sourceLocation)
        await again.close()
    }

    func isSuspended(_ store: EncryptedStore) async throws -> Bool {
        do {
            _ = try await store.bodies()
            return false
        } catch let error as StoreError where error.code == .suspended {
            return true
        }
    }
}

/// A value that closures on several threads share.
final class SharedValue<Value: Sendable>: @unchecked Sendable {
    // Read and written only under `lock`.
    private var kept: Value
    private let lock = NSLock()

    init(_ value: Value) { kept = value }

    var value: Value { lock.withLock { kept } }

    func change(_ body: (inout Value) -> Void) { lock.withLock { body(&kept) } }
}
