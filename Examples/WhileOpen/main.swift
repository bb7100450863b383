// A chat app that shows and receives messages while its legacy database is encrypted.
//
// Usage: WhileOpen [MESSAGES] [--record FILE]

import CipherStore
import Foundation
import Support

let arguments = CommandLine.arguments.dropFirst()
let messages = arguments.first.flatMap { Int($0) } ?? 20_000
let recording = arguments.firstIndex(of: "--record").map { arguments[$0 + 1] }

let example = try Example("encryption while the app is running")
let file = try example.legacy(
    "chat.db",
    """
    CREATE TABLE chat(id INTEGER PRIMARY KEY, sender TEXT, body TEXT);
    CREATE INDEX chat_by_sender ON chat(sender);
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(messages))
    INSERT INTO chat(sender, body)
    SELECT 'user ' || (i % 50), 'secret number ' || i || ' ' || hex(randomblob(150)) FROM n;
    PRAGMA user_version = 1;
    """)
try example.expect("secret number 1 ", readable: true, in: "chat.db")

var encryption = Configuration.Encryption()
encryption.when = .whileOpen
let configuration = Configuration(databaseName: "chat.db", version: 1, encryption: encryption)
let store = try await EncryptedStore.open(configuration, directory: example.folder, keyProvider: example.keys)
guard let conversion = store.conversion else { throw Example.Failure("the store has nothing to encrypt") }
let app = ChatApp(store, conversion, file: file, window: try Window(recording: recording))
try await app.work(untilEncrypted: messages)

let rows = try await store.read { try $0.value(Int.self, "SELECT count(*) FROM chat") }
try example.expect(rows == messages + app.received, "\(rows ?? 0) rows, not \(messages) + \(app.received)")
await store.close()
try example.expect("secret number 1 ", readable: false, in: "chat.db")
try example.end()
