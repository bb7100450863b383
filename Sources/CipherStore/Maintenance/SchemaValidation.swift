internal import CipherCatalog
internal import CipherErrors
internal import CipherHistory
internal import CipherSQLText
internal import CipherSQLite
public import CipherSchemaMigration

/// A comparison of a database's schema with the one recorded in its history.
public struct SchemaValidation: Sendable, Encodable {
    /// The path of the database, with symbolic links resolved.
    public let path: String
    /// The differences between schema objects.
    public let differences: [SchemaMismatch]
    /// Other differences: versions and steps.
    public let complaints: [String]
    /// Remarks that are not drift.
    public let notes: [String]

    /// Whether the database matches the record.
    public var isValid: Bool { differences.isEmpty && complaints.isEmpty }

    /// All differences, as sentences.
    public var sentences: [String] { differences.map { $0.sentence(unexpected: "not recorded") } + complaints }

    private enum CodingKeys: String, CodingKey { case path, isValid, differences, complaints, notes }

    /// Writes the validation for machine output.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(path, forKey: .path)
        try container.encode(isValid, forKey: .isValid)
        try container.encode(differences, forKey: .differences)
        try container.encode(complaints, forKey: .complaints)
        try container.encode(notes, forKey: .notes)
    }
}

extension StoreOpening {
    /// Compares the schema with the recorded one, without changing anything.
    ///
    /// - Throws: ``StoreError`` if the file cannot be read; its code is `migration` if no schema is recorded.
    package func validate() throws -> SchemaValidation {
        try reading { try validation($0) }
    }

    func validation(_ connection: Connection) throws -> SchemaValidation {
        guard try HistoryTable.isAdopted(connection) else { throw notAdopted() }
        guard let (_, record) = try SchemaRecord.latest(connection) else {
            throw StoreError(
                .migration, path: path, "an older release of CipherStore recorded a version but no schema",
                advice: "use repair to record the current schema")
        }
        return SchemaValidation(
            path: path, differences: try SchemaDescription(of: connection).differences(from: record.schema),
            complaints: try versionComplaints(connection)
                + stepComplaints(record.steps, try resolver.recordedVersion(connection) ?? .zero),
            notes: try notes(connection) + danglingNotes(connection))
    }

    func notAdopted() -> StoreError {
        StoreError(
            .migration, path: path, "CipherStore has not recorded a schema in this database",
            advice: "migrate the database, or use baseline to record the version of its schema")
    }

    private func versionComplaints(_ connection: Connection) throws -> [String] {
        let records = try VersionRecords(connection)
        let found = records.version ?? .zero
        var complaints = records.difference.map { [$0] } ?? []
        let wanted = configuration.version
        if found > wanted {
            complaints.append(
                "the database has version \(found), but the configuration supports versions up to \(wanted)")
        }
        return complaints
    }

    private func stepComplaints(_ applied: [SchemaStep], _ version: SchemaVersion) throws -> [String] {
        let known = try configuration.schemaSource.recordedSteps
        // If there are no steps, the configuration now uses a different kind of schema source.
        guard !known.isEmpty else { return [] }
        let changed = applied.compactMap { step -> String? in
            guard let same = known.first(where: { $0.version == step.version }) else {
                return "step \(step.version) (\(step.name)) was applied, but is no longer in the configuration"
            }
            return same.checksum == step.checksum
                ? nil : "step \(step.version) (\(step.name)) was changed after it was applied"
        }
        let added = known.filter { step in
            step.version <= version && !applied.contains { $0.version == step.version }
        }
        return changed
            + added.map {
                "step \($0.version) (\($0.name)) was added after this database had already reached "
                    + "version \(version), so it was never applied"
            }
    }

    private func notes(_ connection: Connection) throws -> [String] {
        let found = try resolver.recordedVersion(connection) ?? .zero
        let wanted = configuration.version
        let pending = "the migration to version \(wanted) is pending; the database has version \(found)"
        return (found < wanted ? [pending] : [])
            + (try BackfillTable.entries(connection)).filter { !$0.isFinished }.map { entry in
                "the backfill \(entry.name) of \(entry.table) \(entry.failure == nil ? "is unfinished" : "failed"); "
                    + "\(entry.done) \(entry.done == 1 ? "row has" : "rows have") been processed"
            }
    }

    /// Returns notes about objects that refer to missing objects and already did so in the recorded schema.
    private func danglingNotes(_ connection: Connection) throws -> [String] {
        let state = try DatabaseState(of: connection, countsRows: false) { nil }
        let names = Set((state.tables.map(\.name) + state.objects.map(\.name)).map(SQLName.init))
        let keys = state.tables.flatMap { table in
            Set(table.references).subtracting(names).map {
                "a foreign key of \(table.name) refers to \($0.text), which does not exist"
            }
        }
        return try keys.sorted()
            + DanglingObjects(in: connection, state, isChanged: false).descriptions
    }
}
