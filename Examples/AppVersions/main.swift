// An app that ran one script for each app version, with several accounts on one device.

import CipherStore
import Foundation
import StoreSupport
import Support

let example = try Example("app versions and accounts")
// One account has used the app since 1.2.0; the other has never been on this device.
try example.legacy(
    "ana/account.db",
    """
    CREATE TABLE tb_clientstage (id TEXT, tableno TEXT, version TEXT);
    INSERT INTO tb_clientstage VALUES ('1', '0', '1.2.0');
    CREATE TABLE contact (id INTEGER PRIMARY KEY, name TEXT NOT NULL, phone TEXT);
    INSERT INTO contact VALUES (2, 'Mia', NULL), (6, 'Jo', '555-0199');
    CREATE TABLE outbox (id INTEGER PRIMARY KEY, body TEXT, sent INTEGER NOT NULL DEFAULT 0);
    """)

var configuration = try Configuration(contentsOf: example.config("AppVersions/AppVersions.json"))
configuration.launch.firstInstall = { db in
    try db.execute("INSERT INTO contact(name) VALUES ('Support')")
}
let keys = example.keys
let accounts = AccountStores(configuration, directory: example.folder) { _ in keys }  // an app has a key for each

let ana = try await accounts.switch(to: "ana")
example.tell(ana.report)
let phones = try await ana.read { try $0.values(String.self, "SELECT name || ' ' || phone FROM contact ORDER BY id") }
try example.expect(phones == ["Mia ", "Jo 555-0199"], "the contacts: \(phones)")
guard case .upgrade(let from, let to) = ana.report.launch, from == SchemaVersion("1.2.0"), to == SchemaVersion("1.10.0")
else {
    throw Example.Failure("the launch must be an upgrade from 1.2.0 to 1.10.0: \(ana.report.launch)")
}

let bo = try await accounts.switch(to: "bo")
example.tell(bo.report)
try example.expect(bo.report.launch == .firstInstall, "switching to a new account counts as a first install")
let names = try await bo.read { try $0.values(String.self, "SELECT name FROM contact") }
try example.expect(names == ["Support"], "what the hook wrote: \(names)")
await accounts.closeAll()
try example.end()
