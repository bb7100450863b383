import CipherTestSupport
import Foundation
import Testing

/// Upgrades of damaged or malicious files in separate processes; `Scripts/fuzz` tests many more.
struct HostileFileTests {
    private static let mutator = TestProgram.built("CipherMutator")
    private static var isPossible: Bool { mutator.isThere }

    @Test("A malicious file is upgraded completely or refused, within the time limit", .enabled(if: isPossible))
    func harm() throws {
        let result = try Self.mutator.run(["hostile", "fast"])
        #expect(result.status == 0, "\(result.output)")
        #expect(result.output.contains("a view that never ends"))
    }

    @Test(
        "Upgrading a damaged file ends with equal rows, or a typed error and no change", .enabled(if: isPossible),
        arguments: [1, 25, 60])
    func damage(first: Int) throws {
        let result = try Self.mutator.run(["some", "\(first)", "20"])
        #expect(result.status == 0, "\(result.output)")
        #expect(result.output.contains("count"))
    }

    @Test("Files that once caused a failure no longer do", .enabled(if: isPossible))
    func regressions() throws {
        let corpus = Repository.hostileFiles
        let names = try FileManager.default.contentsOfDirectory(atPath: corpus.path(percentEncoded: false))
            .filter { !$0.hasSuffix(".md") }
        #expect(!names.isEmpty)
        for name in names.sorted() {
            let result = try Self.mutator.run(["judge", corpus.appending(path: name).path(percentEncoded: false)])
            #expect(result.status == 0, "\(name): \(result.output)")
        }
    }
}
