import CipherTestSupport
import Foundation
import Testing

/// New key files that the command-line tool makes.
@Suite struct KeygenTests {
    private static let tool = TestProgram.built("cipherstore")
    private static var isPossible: Bool { tool.isThere && TestProgram.strace.isThere }

    @Test(
        "A kill at any moment leaves the complete key file or nothing", .enabled(if: isPossible),
        arguments: ["openat", "fchmod", "fremovexattr", "write", "fsync", "linkat", "unlinkat"])
    func kill(call: String) throws {
        let folder = try TemporaryFolder()
        var number = 0
        while number < 100 {
            number += 1
            let run = try TestProgram.strace.run([
                "-f", "-qq", "-o", "/dev/null", "-P", folder.path("").replacing(/\/$/, with: ""), "-e", "trace=\(call)",
                "-e", "inject=\(call):signal=SIGKILL:when=\(number)", Self.tool.path, "keygen", folder.path("key"),
            ])
            guard run.wasKilled else { break }
            #expect(try others(folder) == [], "\(call) \(number)")
            if try folder.names.contains("key") {
                let text = try String(contentsOfFile: folder.path("key"), encoding: .utf8)
                #expect(text.wholeMatch(of: /x'[0-9a-f]{64}'\n/) != nil)
                try FileManager.default.removeItem(atPath: folder.path("key"))
            }
        }
        #expect((1..<100).contains(number))
        #expect(try folder.names.contains("key") && others(folder) == [])
    }

    /// Returns what is in the folder besides the key, and besides what may remain on a system without nameless files.
    private func others(_ folder: TemporaryFolder) throws -> [String] {
        try folder.names.filter { $0 != "key" && (LinuxCalls.areUsed || !$0.hasPrefix(".cipherstore-key-")) }
    }
}
