package import CipherErrors
package import CipherSQLite

/// What a database says of its version in the two places in which CipherStore records it.
///
/// Both are written in one transaction, so where they differ other code wrote one of them. Then the higher one counts:
/// no step runs twice on a schema that has it, and a database that a newer release has changed is refused by an older
/// one.
package struct VersionRecords: Equatable {
    /// The version of the latest event that recorded one; `nil` if CipherStore has recorded none.
    private let history: SchemaVersion?
    /// `PRAGMA user_version`; `nil` if it does not count: CipherStore has recorded no version, or one of several
    /// numbers, which does not fit there.
    private let userVersion: SchemaVersion?
    /// Whether the history is there and holds no entry, though it is made with its first one.
    private let isEmptied: Bool

    /// Reads both.
    ///
    /// - Throws: ``StoreError`` with `recordedVersion` if the history holds a version that is none.
    package init(_ connection: Connection) throws {
        let isAdopted = try HistoryTable.isAdopted(connection)
        let latest = try HistoryTable.latestVersion(connection)
        isEmptied = try HistoryTable.isEmptied(connection)
        let counts = isEmptied || isAdopted && (latest == nil || latest?.wholeNumber != nil)
        userVersion = counts ? SchemaVersion(try connection.value(Int.self, "PRAGMA main.user_version") ?? 0) : nil
        history = isAdopted ? latest ?? userVersion : nil
    }

    /// The version that counts; `nil` if CipherStore has recorded none, so that the app's own record does.
    package var version: SchemaVersion? { history.map { max($0, userVersion ?? $0) } }

    /// Whether CipherStore has recorded the version that counts, so that it knows the schema.
    package var isOwn: Bool { history != nil && history == version }

    /// What `user_version` must be set to; `nil` if it is right or does not count.
    package var userVersionToSet: Int? { history == nil || userVersion == version ? nil : version?.wholeNumber }

    /// What is recorded of a database whose history other code has emptied; `nil` if none was, or nothing is.
    package var versionOfEmptiedHistory: SchemaVersion? {
        guard isEmptied, let userVersion, userVersion > .zero else { return nil }
        return userVersion
    }

    /// What differs, in words; `nil` if nothing does.
    package var difference: String? {
        guard let history, let userVersion, history != userVersion else { return nil }
        return "user_version is \(userVersion), but the history recorded \(history)"
    }

    /// What the report must say; `nil` if both agree.
    package var warning: String? {
        if isEmptied {
            return "\(HistoryTable.name) has no entries any more: other code has emptied it, so the "
                + "version is known only from the app and user_version"
        }
        return difference.map { "\($0): other code has changed one of them, and the higher one counts" }
    }
}

extension StoreError {
    /// The refusal of a database that is newer than the app.
    ///
    /// - Parameter records: Tell where `user_version` alone says so.
    package static func downgrade(
        from found: SchemaVersion, _ records: VersionRecords?, to known: SchemaVersion, path: String
    ) -> StoreError {
        let difference = records.flatMap { $0.isOwn ? nil : $0.difference }
        return .downgrade(
            path,
            "the database has version \(found), and this app supports versions up to \(known)"
                + (difference.map { ": \($0)" } ?? ""),
            orElse: difference.map { _ in "correct user_version if other code of the app writes it" })
    }
}
