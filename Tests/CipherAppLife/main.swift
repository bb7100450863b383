internal import CipherStore
import Foundation

// An app in one of its releases, for Scripts/lives:
//
//   CipherAppLife DESCRIPTION   opens the store as the JSON file says, works on it and ends
//
// Prints a line for each event: `opened` with the report, `did NAME CHANGES ROWID` when a transaction has been
// acknowledged, `refused CODE …` if the store could not be opened, `failed NAME CODE …` if a transaction failed, and
// `closed`.

let release = try Release(contentsOf: CommandLine.arguments[1])
Death.expect(release.death)

func code(of error: any Error) -> String {
    switch error {
    case let error as StoreError: error.code.rawValue
    case let error as DatabaseError: "sqlite\(error.extendedCode)"
    default: "\(type(of: error))"
    }
}

let store: EncryptedStore
do {
    var options = EncryptedStore.Options()
    if let busyTimeout = release.busyTimeout { options.busyTimeout = .milliseconds(busyTimeout) }
    store = try await EncryptedStore.open(
        release.configuration(), directory: URL(filePath: release.directory), keyProvider: release.key.provider,
        options: options
    ) { Death.pass($0.stage.rawValue) }
} catch {
    say("refused \(code(of: error)) \("\(error)".replacing("\n", with: " "))")
    exit(3)
}
Death.pass("opened")
struct Opened: Encodable {
    let outcome: String
    let from: String?
    let to: String
    let launch: String
    let shadow: String?
    let warnings: [String]
    let withheld: Int
}
let launch =
    switch store.report.launch {
    case .firstInstall: "firstInstall"
    case .upgrade: "upgrade"
    case .unchanged: "unchanged"
    }
let opened = Opened(
    outcome: store.report.outcome.rawValue, from: store.report.migration.from?.description,
    to: store.report.migration.to.description, launch: launch, shadow: store.report.shadow?.outcome.rawValue,
    warnings: store.report.warnings, withheld: store.report.migration.withheld.count)
say("opened " + String(decoding: try JSONEncoder().encode(opened), as: UTF8.self))

do {
    for name in release.backfills {
        // Each row must be visited once. The addition shows a second visit.
        let visited = try await store.backfill(name, of: "item", batch: 3) { db, rowIDs in
            for rowID in rowIDs {
                try db.execute("UPDATE item SET visits = visits + 1 WHERE rowid = \(rowID)")
                Death.pass("visit")
            }
        }
        say("visited \(name) \(visited)")
    }
} catch {
    say("failed backfill \(code(of: error)) \("\(error)".replacing("\n", with: " "))")
    exit(5)
}
let watch = ObservedRows(store)
for (number, operation) in release.work.enumerated() {
    Death.pass("before")
    // Acts like an app that is suspended in between.
    if number % 2 == 1 {
        await store.suspend()
        Death.pass("asleep")
        store.resume()
    }
    do {
        let (changes, rowID) = try await store.write { db in
            let values: [Value] = operation.values.map { text in
                text.hasPrefix("x:") ? .blob(bytes(hexadecimal: text.dropFirst(2))) : .text(text)
            }
            try db.execute(SQL(text: operation.sql, values: values))
            Death.pass("within")
            return (
                try db.value(Int.self, "SELECT changes()") ?? 0,
                try db.value(Int64.self, "SELECT last_insert_rowid()") ?? 0
            )
        }
        Death.pass("behind")
        say("did \(operation.name) \(changes) \(rowID)")
    } catch {
        say("failed \(operation.name) \(code(of: error)) \("\(error)".replacing("\n", with: " "))")
        exit(5)
    }
}
if let failure = await watch.failure() {
    say("failed observation \(failure)")
    exit(5)
}
Death.pass("ending")
if release.ending == .exit { exit(0) }
await store.close()
Death.pass("closed")
say("closed")
