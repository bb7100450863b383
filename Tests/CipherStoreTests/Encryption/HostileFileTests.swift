import Foundation
import TestSupport
import Testing

/// Files that are damaged, or made to harm, upgraded in processes of their own; `Scripts/fuzz` does so with many more.
struct HostileFileTests {
    private static let mutator = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
        .appending(path: "Mutator").path(percentEncoded: false)
    private static var isPossible: Bool { FileManager.default.isExecutableFile(atPath: mutator) }
    private static let corpus = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Hostile")

    private func run(_ arguments: [String]) throws -> (output: String, status: Int32) {
        let process = Process()
        let pipe = Pipe()
        process.executableURL = URL(filePath: Self.mutator)
        process.arguments = arguments
        process.standardOutput = pipe
        process.standardError = FileHandle.nullDevice
        try process.run()
        let data = try pipe.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return (String(decoding: data, as: UTF8.self), process.terminationStatus)
    }

    @Test("A file that was made to harm is upgraded whole or refused, in time", .enabled(if: isPossible))
    func harm() throws {
        let result = try run(["hostile", "fast"])
        #expect(result.status == 0, "\(result.output)")
        #expect(result.output.contains("a view that never ends"))
    }

    @Test(
        "Damage ends in equal rows or in a typed error with the file as it was", .enabled(if: isPossible),
        arguments: [1, 25, 60])
    func damage(first: Int) throws {
        let result = try run(["some", "\(first)", "20"])
        #expect(result.status == 0, "\(result.output)")
        #expect(result.output.contains("count"))
    }

    @Test("What once failed does not fail again", .enabled(if: isPossible))
    func regressions() throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: Self.corpus.path(percentEncoded: false))
            .filter { !$0.hasSuffix(".md") }
        #expect(!names.isEmpty)
        for name in names.sorted() {
            let result = try run(["judge", Self.corpus.appending(path: name).path(percentEncoded: false)])
            #expect(result.status == 0, "\(name): \(result.output)")
        }
    }
}
