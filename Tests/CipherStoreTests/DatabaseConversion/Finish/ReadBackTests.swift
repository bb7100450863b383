internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherSQLite
import CipherTestSupport
import Testing

/// What a migration writes to the proven copy, on a disk that may lose writes.
struct ReadBackTests {
    private func upgrade(
        _ file: LegacyFile, finishing: @escaping (Connection) throws -> Void
    ) throws -> EncryptionReport {
        let upgrade = try EncryptionUpgrade(path: file.path, provider: TestKeys.provider())
        return try upgrade.options.withLockedFile(upgrade.paths) { inspector, _ in
            try upgrade.encrypt(inspector, finishing: finishing).report
        }
    }

    @Test("A copy without the migration's writes does not replace the database", arguments: ["WAL", "DELETE"])
    func forgotten(journal: String) throws {
        let file = try OpeningFixture.file(version: 23, journal: journal)
        let before = try file.originalDump()
        let error = try #require(throws: StoreError.self) {
            try upgrade(file) { connection in
                let copy = try DatabaseFile(path: connection.path, access: .readWrite)
                let proven = try copy.read(at: 0, count: Int(copy.size()))
                try connection.execute("UPDATE t SET a = 'changed'")
                try copy.write(proven, at: 0)
            }
        }
        #expect(error.code == .proofFailed)
        #expect(error.path == file.path)
        // The log was merged before the copy was built. Otherwise the file is unchanged, and in its journal mode.
        #expect(try file.dump(key: nil) == before)
        #expect(try file.read(key: nil) { try $0.value(String.self, "PRAGMA journal_mode") } == journal.lowercased())
        #expect(try file.folder.names.filter { $0.contains("upgrade") || $0.contains("attempt") }.isEmpty)
    }

    @Test("A copy with all of the migration's writes replaces the database")
    func kept() throws {
        let file = try OpeningFixture.file(version: 23)
        let report = try upgrade(file) { try $0.execute("UPDATE t SET a = 'changed'") }
        #expect(report.outcome == .encrypted)
        #expect(
            try OpeningFixture.rows(file, key: TestKeys.raw()) == ["-4 changed", "9 changed", "77 changed"])
    }
}
