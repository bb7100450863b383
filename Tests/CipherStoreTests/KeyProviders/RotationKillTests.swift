internal import CipherErrors
internal import CipherHistory
internal import CipherKeyProviders
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// A key change on opening, killed at every stage and at every relevant system call.
///
/// One of the keys always opens the file, no key is dropped while the file still needs it, and the next opening
/// finishes.
struct RotationKillTests {
    private static let subject = TestProgram.built("CipherCrashSubject")

    /// An encrypted database with rows only in its log, under the key in `old`.
    private func folder() throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        try folder.write(TestKeys.text() + "\n", to: "old")
        let file = try OpeningFixture.file(version: 23, encryptedWith: TestKeys.raw())
        for name in try file.folder.names {
            try FileManager.default.copyItem(atPath: file.folder.path(name), toPath: folder.path(name))
        }
        return folder
    }

    /// Returns which of the kept keys open a copy of the file with every row.
    private func opening(_ folder: TemporaryFolder) throws -> [String] {
        try ["old", "new"].filter { name in
            guard FileManager.default.fileExists(atPath: folder.path(name)) else { return false }
            let look = try TemporaryFolder()
            for file in try folder.names where file.hasPrefix("app.db") {
                try FileManager.default.copyItem(atPath: folder.path(file), toPath: look.path(file))
            }
            do {
                // Opens the copy as the next launch does, including the rollback of a journal.
                let opened = try OpeningFixture.open(
                    look, Configuration(databaseName: "app.db", version: 23), provider: .file(folder.path(name)))
                let key = try FileKeyProvider(path: folder.path(name)).key(for: .existing, database: opened.path)
                let rows = try OpeningFixture.rows(LegacyFile(copying: opened.path), key: key)
                return rows == OpeningFixture.allRows
            } catch let error as StoreError where error.code == .keyDoesNotFit {
                return false
            }
        }
    }

    private func checkFinished(_ folder: TemporaryFolder, sourceLocation: SourceLocation = #_sourceLocation) throws {
        #expect(try opening(folder) == ["new"], sourceLocation: sourceLocation)
        #expect(try !folder.names.contains("old"), sourceLocation: sourceLocation)
        #expect(
            try folder.names.filter { $0.contains("-upgrade") || $0.hasSuffix("-attempt") } == [],
            sourceLocation: sourceLocation)
    }

    @Test(
        "After a kill at any stage the file opens with a key that is kept, and the next opening finishes the rotation",
        .enabled(if: subject.isThere),
        arguments: ["asked", "quiescing", "building", "proving", "swapping", "done", "dropped"])
    func stages(stage: String) throws {
        let folder = try folder()
        #expect(try Self.subject.run(["rotate", folder.path(""), stage]).wasKilled)
        let isChanged = ["done", "dropped"].contains(stage)
        #expect(try opening(folder) == [isChanged ? "new" : "old"])
        #expect(try folder.names.contains("old") == (stage != "dropped"))
        #expect(try Self.subject.run(["rotate", folder.path("")]).output == (isChanged ? "opened" : "rekeyed"))
        try checkFinished(folder)
    }

    @Test(
        "After a kill at any rename or unlink the file opens, and the next opening finishes the rotation",
        .enabled(if: subject.isThere && TestProgram.strace.isThere), arguments: [LinuxCalls.swap, "unlink", "unlinkat"])
    func calls(call: String) throws {
        var number = 0
        while number < 100 {
            number += 1
            let folder = try folder()
            let killed = try TestProgram.strace.run([
                "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(call)", "-e",
                "inject=\(call):signal=SIGKILL:when=\(number)", Self.subject.path, "rotate", folder.path(""),
            ])
            #expect(try opening(folder).count == 1, "\(call) \(number)")
            guard killed.wasKilled else { break }
            let next = try Self.subject.run(["rotate", folder.path("")]).output
            #expect(["rekeyed", "opened"].contains(next), "\(call) \(number): \(next)")
            try checkFinished(folder)
        }
        // The call was made at least once, and nothing killed the last run.
        #expect((2..<100).contains(number))
    }
}
