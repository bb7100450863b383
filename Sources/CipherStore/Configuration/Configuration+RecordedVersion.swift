internal import CipherErrors
internal import CipherHistory
internal import CipherSQLText
internal import CipherSQLite
internal import CipherSchemaMigration

extension Configuration {
    /// Reads only the version that the app recorded.
    package func readOwnRecord(from connection: Connection, databasePath: String) throws -> SchemaVersion? {
        let fractions: RecordedVersion.Fractions =
            hasDottedVersions ? assumedVersion.map { .assumed($0) } ?? .refused : .asWritten
        return try recordedVersion.read(
            from: connection, databasePath: databasePath, fractions, assumed: assumedVersion)
    }

    /// Whether versions have dots, in which case 1.10 and 1.1 are different versions.
    private var hasDottedVersions: Bool {
        var versions = [version, encryption.sinceVersion].compactMap { $0 }
        if case .steps(let steps) = schema { versions += steps.updates.map(\.version) }
        return versions.contains { $0.isDotted }
    }

    /// Reads the version that the app recorded, or returns the version to assume if a database has tables and no
    /// record.
    ///
    /// - Throws: ``StoreError`` with the code `recordedVersion` if the configuration specifies where the version is
    ///   recorded, a database with tables has no such record, and no version is assumed: the database could be of any
    ///   version.
    func readRecordedVersion(from connection: Connection, databasePath: String) throws -> SchemaVersion? {
        let recorded = try readOwnRecord(from: connection, databasePath: databasePath)
        // Code that empties all tables also empties the app's record, and a record beside the database may be out of
        // date.
        if version.wholeNumber != nil, let known = try VersionRecords(connection).versionOfEmptiedHistory,
            known > recorded ?? .zero
        {
            return known
        }
        guard recorded ?? .zero == .zero, assumedVersion != nil || recorded == nil else { return recorded }
        let names = try connection.values(String.self, "SELECT name FROM main.sqlite_master WHERE type = 'table'")
        let own = names.first { name in
            let name = SQLName(name)
            return !name.isOfSQLite && !name.isOfCipherStore && !recordedVersion.tables.contains(name)
        }
        guard let own else { return recorded }
        if let assumedVersion { return assumedVersion }
        guard let place = recordedVersion.place else { return nil }
        throw StoreError.unknownVersion(
            databasePath,
            "the database contains tables, such as \(own), but no recorded version: \(place) is missing",
            first: "restore that value")
    }
}
