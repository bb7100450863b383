// What the app and its widget share: both targets compile this file.

import CipherStore
import Foundation

struct Message: Codable, Equatable, Identifiable, Sendable {
    var id: Int64?
    var sender: String
    var body: String
}

enum Chat {
    /// The app group of both targets, whose folder contains the database.
    static let group = "group.com.example.chat"

    /// The key in the keychain.
    ///
    /// Both targets need the same keychain access group as the first in their list.
    static let key = KeychainKeyProvider.keychain("com.example.chat.database", createIfMissing: true)

    static let configuration = Configuration(
        databaseName: "chat.db", version: 1,
        schema: .tables([
            DeclaredTable(
                name: "message",
                columns: [
                    .init(name: "id", definition: "INTEGER PRIMARY KEY"),
                    .init(name: "sender", definition: "TEXT NOT NULL"),
                    .init(name: "body", definition: "TEXT NOT NULL"),
                ])
        ]))

    static func folder() throws -> URL {
        guard let folder = FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: group) else {
            throw CocoaError(.fileNoSuchFile)
        }
        return folder
    }

    /// Returns the newest messages, the newest first.
    static func messages(_ limit: Int) -> @Sendable (Connection) throws -> [Message] {
        { db in try db.rows("SELECT * FROM message ORDER BY id DESC LIMIT \(limit)") }
    }
}
