internal import CipherErrors
internal import CipherSQLite
internal import CipherStoreTestKit
import Foundation
import Testing

/// The descriptions that Foundation returns for the library's errors.
struct ErrorTextTests {
    private static let errors: [any Error & CustomStringConvertible] = [
        DatabaseError(extendedCode: 2067, message: "UNIQUE constraint failed: t.v", sql: "INSERT", path: "/a/b"),
        StoreError(.busy, path: "/a/b", "somebody has it", advice: "wait"), StoreError(.closed, "it was closed"),
        KeyError.empty, KeyError.byteOrderMark, MigrationVerificationError(failures: []),
    ]

    @Test("An error has the same description in Foundation as in Swift", arguments: 0..<6)
    func localizedDescription(number: Int) {
        let error = Self.errors[number]
        #expect(error.localizedDescription == error.description)
        #expect((error as any Error).localizedDescription == error.description)
    }
}
