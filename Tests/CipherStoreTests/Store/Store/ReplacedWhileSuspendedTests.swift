internal import CipherErrors
internal import CipherSQLite
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

@Suite("A file replaced while the store is suspended", .timeLimit(.minutes(20)))
struct ReplacedWhileSuspendedTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func open(_ name: String = "app.db") async throws -> EncryptedStore {
        try await StoreFixture(folder, name: name).open()
    }

    /// What happens to the file while the store is suspended, and the result of the next call.
    enum Change: CaseIterable {
        case removed, replaced, otherContentInSameFile, decrypted, rekeyed

        var code: StoreError.Code {
            switch self {
            case .removed: .missingFile
            case .replaced, .decrypted: .replaced
            case .otherContentInSameFile, .rekeyed: .keyDoesNotFit
            }
        }
    }

    @Test(
        "A file that was replaced during the suspension is refused with the reason, and stays unchanged",
        arguments: Change.allCases)
    func changed(change: Change) async throws {
        let store = try await open()
        try await store.insert("ours")
        await store.suspend()
        switch change {
        case .removed: try FileManager.default.removeItem(atPath: store.path)
        case .replaced:
            try FileManager.default.copyItem(atPath: store.path, toPath: folder.path("copy"))
            try FileManager.default.moveItem(atPath: store.path, toPath: folder.path("kept"))
            try FileManager.default.moveItem(atPath: folder.path("copy"), toPath: store.path)
        case .otherContentInSameFile:
            let random = Data((0..<8_192).map { _ in UInt8.random(in: 0...255) })
            let file = try FileHandle(forWritingTo: URL(filePath: store.path))
            try file.write(contentsOf: random)
            try file.close()
        case .decrypted:
            try LegacyFile.write(folder.path("plain"), script: "CREATE TABLE chat(uid TEXT, body TEXT)")
            let file = try FileHandle(forWritingTo: URL(filePath: store.path))
            try file.truncate(atOffset: 0)
            try file.write(contentsOf: Data(contentsOf: URL(filePath: folder.path("plain"))))
            try file.close()
        case .rekeyed:
            let other = try StoreFixture(folder).connection(isEncrypted: true)
            try other.execute(SQL(text: "PRAGMA rekey = \"\(TestKeys.text(9))\""))
            other.close()
        }
        let before = try? Data(contentsOf: URL(filePath: store.path))
        store.resume()
        for _ in 0..<2 {
            #expect(try await code { try await store.bodies() } == change.code)
            #expect(try await code { try await store.insert("never") } == change.code)
        }
        await store.close()
        #expect((try? Data(contentsOf: URL(filePath: store.path))) == before)
        #expect(try !folder.names.contains("app.db-wal"))
    }

    @Test("An observation of a file that was replaced during the suspension ends with the reason")
    func changedUnderObserver() async throws {
        let store = try await open()
        var iterator = store.observe { try $0.value(Int.self, "SELECT count(*) FROM chat") ?? 0 }.makeAsyncIterator()
        #expect(try await iterator.next() == 0)
        await store.suspend()
        try FileManager.default.removeItem(atPath: store.path)
        store.resume()
        #expect(try await code { try await iterator.next() } == .missingFile)
    }
}
