internal import CipherSQLite
import CipherTestSupport
import Testing

/// Other code in the process has changed SQLCipher's defaults.
struct ForeignDefaultsTests {
    private static let subject = TestProgram.built("CipherCrashSubject")

    private static let pragmas =
        ["cipher_default_kdf_iter = 4000", "cipher_default_use_hmac = OFF", "cipher_hmac_salt_mask = \"x'5c'\""]
        + [1024, 8192].map { "cipher_default_page_size = \($0)" }
        + (Engine.current.defaultCompatibility < 4
            ? []
            : [
                "cipher_default_plaintext_header_size = 32", "cipher_default_hmac_algorithm = HMAC_SHA1",
                "cipher_default_kdf_algorithm = PBKDF2_HMAC_SHA1", "cipher_default_compatibility = 1",
                "cipher_default_compatibility = 3", "cipher_memory_security = ON",
            ])

    private func run(_ arguments: [String], after pragma: String? = nil) throws -> String {
        let environment = pragma.map { ["FIRST_PRAGMA=\($0)"] } ?? []
        let ending = try TestProgram(path: "/usr/bin/env").run(environment + [Self.subject.path] + arguments)
        #expect(ending.status == 0, "\(arguments): \(ending.output) \(ending.errors)")
        return ending.output
    }

    @Test("Files are encrypted, opened, rekeyed and decrypted as always", arguments: pragmas)
    func operations(pragma: String) throws {
        let folder = try TemporaryFolder()
        let path = folder.path("app.db")
        _ = try run(["make", path, "plaintext"])
        #expect(try run(["encrypt", path], after: pragma) == "encrypted")
        #expect(try run(["check", path]) == "encrypted wal")
        #expect(try run(["check", path], after: pragma) == "encrypted wal")
        #expect(try run(["recover-copy", path], after: pragma) == "recovered")
        #expect(try run(["check", folder.path("copy.db")]).hasPrefix("encrypted "))
        #expect(try run(["rekey", path], after: pragma) == "rekeyed")
        #expect(try run(["check", path]) == "rekeyed wal")
        _ = try run(["make", folder.path("other.db"), "encrypted"])
        #expect(try run(["decrypt", folder.path("other.db")], after: pragma) == "decrypted")
        #expect(try run(["check", folder.path("other.db")]) == "plaintext wal")
    }
}
