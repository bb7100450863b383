package import CipherErrors
package import CipherSQLite

/// The two records of a database's version that CipherStore writes.
///
/// Both are written in one transaction, so if they differ, other code wrote one of them. Then the higher version is
/// used: no step runs again on a schema that already has its changes, and an older release refuses a database that a
/// newer release has changed.
package struct VersionRecords: Equatable {
    /// The version of the latest event that recorded a version; `nil` if CipherStore has recorded none.
    private let history: SchemaVersion?
    /// The value of `PRAGMA user_version`; `nil` if it is ignored because CipherStore has recorded no version, or a
    /// version of several numbers, which does not fit into `user_version`.
    private let userVersion: SchemaVersion?
    /// Whether the history exists without any entry, although it is always created with its first entry.
    private let isEmptied: Bool

    /// Reads both records.
    ///
    /// - Throws: ``StoreError`` with the code `recordedVersion` if the history contains an invalid version.
    package init(_ connection: Connection) throws {
        let isAdopted = try HistoryTable.isAdopted(connection)
        let latest = try HistoryTable.latestVersion(connection)
        isEmptied = try HistoryTable.isEmptied(connection)
        let counts = isEmptied || isAdopted && (latest == nil || latest?.wholeNumber != nil)
        userVersion = counts ? SchemaVersion(try connection.value(Int.self, "PRAGMA main.user_version") ?? 0) : nil
        history = isAdopted ? latest ?? userVersion : nil
    }

    /// The version of the database; `nil` if CipherStore has recorded none, so that the app's own record is used.
    package var version: SchemaVersion? { history.map { max($0, userVersion ?? $0) } }

    /// Whether CipherStore itself has recorded ``version``, so that it knows the schema.
    package var isOwn: Bool { history != nil && history == version }

    /// The value that `user_version` must be set to; `nil` if it is correct or ignored.
    package var userVersionToSet: Int? { history == nil || userVersion == version ? nil : version?.wholeNumber }

    /// The recorded version of a database whose history other code has emptied; `nil` if the history was not emptied,
    /// or nothing is recorded.
    package var versionOfEmptiedHistory: SchemaVersion? {
        guard isEmptied, let userVersion, userVersion > .zero else { return nil }
        return userVersion
    }

    /// A description of the difference between the records; `nil` if they agree.
    package var difference: String? {
        guard let history, let userVersion, history != userVersion else { return nil }
        return "user_version is \(userVersion), but the history records version \(history)"
    }

    /// The warning for the report; `nil` if both records agree.
    package var warning: String? {
        if isEmptied {
            return "other code has deleted all entries from \(HistoryTable.name), so the version is known only from "
                + "the app's own record and user_version"
        }
        return difference.map { "\($0): other code has changed one of these versions, and the higher one is used" }
    }
}

extension StoreError {
    /// Returns the error for a database that is newer than the app.
    ///
    /// - Parameter records: The two records, which show if only `user_version` is newer.
    package static func downgrade(
        from found: SchemaVersion, _ records: VersionRecords?, to known: SchemaVersion, path: String
    ) -> StoreError {
        let difference = records.flatMap { $0.isOwn ? nil : $0.difference }
        return .downgrade(
            path,
            "the database has version \(found), but this app supports versions up to \(known)"
                + (difference.map { ": \($0)" } ?? ""),
            orElse: difference.map { _ in "correct user_version if other code in the app changed it" })
    }
}
