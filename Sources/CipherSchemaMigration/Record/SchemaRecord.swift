internal import CipherErrors
package import CipherHistory
internal import CipherPlatform
internal import CipherSQLText
package import CipherSQLite

/// One step of a source that consists of steps.
package struct SchemaStep: Sendable, Equatable, Codable {
    /// The version to which the step leads.
    package var version: SchemaVersion
    /// The step's human-readable name, such as `sql_update_3.plist`.
    package var name: String
    /// The checksum of what the step does, regardless of the formatting of its SQL.
    package var checksum: String

    /// Creates a step with a given checksum.
    package init(version: SchemaVersion, name: String, checksum: String) {
        self.version = version
        self.name = name
        self.checksum = checksum
    }

    /// Creates a step that runs SQL.
    package init(version: SchemaVersion, name: String, sql: [String]) {
        var sum = Checksum()
        for statement in sql { sum.add(NormalizedSQL(statement).text) }
        self.init(version: version, name: name, checksum: sum.text)
    }
}

/// The record of a schema in the history: its objects, and the steps that led to it.
package struct SchemaRecord: Sendable, Codable {
    package var schema: SchemaDescription
    package var steps: [SchemaStep]

    package init(schema: SchemaDescription, steps: [SchemaStep]) {
        self.schema = schema
        self.steps = steps
    }

    /// Returns the record of the latest event that recorded a schema; `nil` if there is no such event.
    ///
    /// - Throws: ``StoreError`` with the code `migration` if the record cannot be read.
    package static func latest(_ connection: Connection) throws -> (id: Int64, record: SchemaRecord)? {
        guard let (id, text) = try HistoryTable.latestRecord(connection) else { return nil }
        do {
            return (id, try SchemaRecord(json: text))
        } catch is DecodingError {
            throw StoreError(
                .migration, path: connection.path,
                "the schema recorded in entry \(id) of the history cannot be read",
                advice: "repair the history", changed: .nothing)
        }
    }

    /// Decodes a record that ``json()`` returned.
    ///
    /// - Throws: `DecodingError` for any other text.
    package init(json: String) throws {
        self = try JSONDecoder().decode(SchemaRecord.self, from: Data(json.utf8))
    }

    /// Returns the record as one JSON object; equal records have equal text.
    package func json() throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(self), as: UTF8.self)
    }
}
