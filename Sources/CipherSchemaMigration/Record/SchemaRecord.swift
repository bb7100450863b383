internal import CipherErrors
package import CipherHistory
internal import CipherSQLText
package import CipherSQLite

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// One step of a source that consists of steps.
package struct SchemaStep: Sendable, Equatable, Codable {
    /// The version to which it leads.
    package var version: SchemaVersion
    /// What people call it, such as `sql_update_3.plist`.
    package var name: String
    /// Of what it does, without regard to the formatting of its SQL.
    package var checksum: String

    /// A step with a checksum of its own making.
    package init(version: SchemaVersion, name: String, checksum: String) {
        self.version = version
        self.name = name
        self.checksum = checksum
    }

    /// A step that runs SQL.
    package init(version: SchemaVersion, name: String, sql: [String]) {
        var sum = Checksum()
        for statement in sql { sum.add(NormalizedSQL(statement).text) }
        self.init(version: version, name: name, checksum: sum.text)
    }
}

/// What the history keeps of a schema: its objects, and the steps that led to it.
package struct SchemaRecord: Sendable, Codable {
    package var schema: SchemaDescription
    package var steps: [SchemaStep]

    package init(schema: SchemaDescription, steps: [SchemaStep]) {
        self.schema = schema
        self.steps = steps
    }

    /// The record that the latest recording event left; `nil` if none is recorded.
    ///
    /// - Throws: ``StoreError`` with `migration` if what is recorded cannot be read.
    package static func latest(_ connection: Connection) throws -> (id: Int64, record: SchemaRecord)? {
        guard let (id, text) = try HistoryTable.latestRecord(connection) else { return nil }
        do {
            return (id, try SchemaRecord(json: text))
        } catch is DecodingError {
            throw StoreError(
                .migration, path: connection.path,
                "the schema that entry \(id) of the history recorded cannot be read",
                advice: "repair the history", changed: .nothing)
        }
    }

    /// Reads what ``json()`` gave.
    ///
    /// - Throws: `DecodingError` for anything else.
    package init(json: String) throws {
        self = try JSONDecoder().decode(SchemaRecord.self, from: Data(json.utf8))
    }

    /// The record as one JSON object, the same for the same record.
    package func json() throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(self), as: UTF8.self)
    }
}
