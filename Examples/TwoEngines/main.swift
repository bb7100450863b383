// A process with two libraries, plain SQLite and SQLCipher. Their functions have the same names, and the link order
// decides which of them are called. Scripts/examples links the program in both orders.
//
// Usage: two-engines encrypted|refused

import AppPlainSQLite
import CipherDatabaseConversion
import Foundation
import Support

let wanted = CommandLine.arguments.dropFirst().first ?? "encrypted"
let example = try Example("plain SQLite and SQLCipher in one process")
// This call keeps plain SQLite in the process, as the other parts of an app would.
precondition(sqlite3_libversion_number() > 0)
let file = try example.legacy("app.db", "CREATE TABLE note(body TEXT); INSERT INTO note VALUES ('Ana');")
let outcome: String
do {
    outcome = try await DatabaseConverter.encrypt(file, keyProvider: example.keys).outcome.rawValue
} catch let error as StoreError where error.code == .plainSQLite {
    print("   \(error)")
    outcome = "refused"
}
try example.expect("Ana", readable: outcome == "refused", in: "app.db")
try example.end()
try example.expect(outcome == wanted, "\(outcome) instead of \(wanted)")
