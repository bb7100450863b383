internal import CipherErrors
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

struct PlanTrialTests {
    private static func file(_ script: String) throws -> LegacyFile {
        try OpeningFixture.file(version: 20, extra: script)
    }

    private static func configuration(_ tables: [DeclaredTable]) -> Configuration {
        var configuration = OpeningFixture.configuration()
        configuration.schema = .tables(tables)
        return configuration
    }

    private static let widened = DeclaredTable(
        name: "t", columns: [.init(name: "a", definition: "TEXT"), .init(name: "b", definition: "TEXT")])

    @Test("A plan that would break a view is refused with the view's name before the file is encrypted or changed")
    func refusesBrokenView() throws {
        let file = try Self.file("CREATE TABLE u(b TEXT); CREATE VIEW v AS SELECT b FROM t, u")
        let before = try FolderDigest(file.folder.url, ignoring: ["-shm"])
        let error = #expect(throws: StoreError.self) {
            try OpeningFixture.open(file.folder, Self.configuration([Self.widened]))
        }
        #expect(error?.code == .migration)
        #expect(error?.detail.contains("the view v") == true, "\(error?.description ?? "")")
        #expect(error?.advice.contains("nothing was changed") == true)
        #expect(try FolderDigest(file.folder.url, ignoring: ["-shm"]) == before)
    }

    @Test("A plan is not refused because of objects that were already broken")
    func bearsOldFaults() throws {
        let file = try Self.file(
            "CREATE VIEW v AS SELECT * FROM gone; CREATE TRIGGER r AFTER DELETE ON t BEGIN DELETE FROM gone; END")
        #expect(try OpeningFixture.open(file.folder, Self.configuration([Self.widened])).report.outcome == .encrypted)
    }
}
