internal import CipherErrors
internal import CipherHistory
internal import CipherSQLText
internal import CipherSQLite

extension RecordedVersion {
    /// A table with a row for each migration that an app has applied, such as the one that GRDB's `DatabaseMigrator`
    /// uses.
    ///
    /// The version is the number of migrations that are applied. The table has no order, so the list defines it: it is
    /// an error if an applied migration follows one that is missing, or if the list lacks an applied migration.
    public struct AppliedMigrations: Sendable, Equatable {
        /// The names of all migrations, in the order in which releases applied them: the first one leads to version 1.
        public var identifiers: [String]
        /// Migrations that replaced other migrations, each with the ones that it replaced.
        ///
        /// The name of such a migration in the table stands for all migrations that it replaced. It may be one of
        /// ``identifiers`` itself.
        public var merged: [String: [String]]
        /// The table's name.
        public var table: String
        /// The name of the column that contains a migration's name, as text or as a whole number.
        public var column: String

        /// Creates a table with a row for each migration; by default, GRDB's.
        public init(
            _ identifiers: [String], merged: [String: [String]] = [:], table: String = "grdb_migrations",
            column: String = "identifier"
        ) {
            self.identifiers = identifiers
            self.merged = merged
            self.table = table
            self.column = column
        }
    }
}

extension RecordedVersion.AppliedMigrations {
    /// The column of names, in the form in which columns are read row by row.
    var names: RecordedVersion.VersionColumn { .init(table: table, column: column) }

    /// The fault of the list itself, with the configuration key that contains it; `nil` if the list is valid.
    package var fault: (key: String, detail: String)? {
        guard !identifiers.isEmpty else { return ("identifiers", "the list contains no migrations") }
        var known: Set<String> = []
        for identifier in identifiers where !known.insert(identifier).inserted {
            return ("identifiers", "the list contains \"\(identifier)\" twice")
        }
        for (name, parts) in merged.sorted(by: { $0.key < $1.key }) {
            guard !parts.isEmpty else { return ("merged", "\"\(name)\" does not replace any migrations") }
            for part in parts where !known.contains(part) {
                return ("merged", "\"\(part)\", which \"\(name)\" replaces, is not in identifiers")
            }
        }
        return nil
    }

    /// Returns the number of migrations that are applied; 0 if the table does not exist, as for an app that never ran.
    ///
    /// - Throws: ``StoreError`` with the code `recordedVersion` if the applied migrations are not the first ones of the
    ///   list, with the code `downgrade` if all migrations of the list and more are applied, or with the code
    ///   `configuration` if the list has a fault.
    func read(from connection: Connection, databasePath: String) throws -> SchemaVersion {
        if let fault {
            throw StoreError(
                .configuration, path: databasePath, "recordedVersion.\(fault.key): \(fault.detail)",
                advice: "list each migration once, in the order in which releases applied them")
        }
        let (applied, unknown) = try rows(connection, databasePath)
        let count = identifiers.prefix(while: applied.contains).count
        if let later = identifiers.dropFirst(count).first(where: applied.contains) {
            throw failure(
                databasePath,
                "\(table) contains the migration \"\(later)\" but not \"\(identifiers[count])\", which comes before it")
        }
        guard unknown > 0 else { return SchemaVersion(count) }
        let others = unknown == 1 ? "1 unlisted migration" : "\(unknown) unlisted migrations"
        guard count == identifiers.count else {
            throw failure(
                databasePath,
                "\(table) does not contain the migration \"\(identifiers[count])\", but contains \(others)")
        }
        throw StoreError.downgrade(
            databasePath,
            "\(table) contains all listed migrations, up to \"\(identifiers[count - 1])\", and also \(others)",
            orElse: "add the unlisted migrations to recordedVersion.identifiers if this app supports them")
    }

    /// Returns the migrations that are applied, and the number of applied migrations that the list lacks.
    private func rows(
        _ connection: Connection, _ databasePath: String
    ) throws -> (applied: Set<String>, unknown: Int) {
        let known = Set(identifiers)
        var applied: Set<String> = []
        var unknown = 0
        try names.forEachValue(from: connection, databasePath: databasePath) { value in
            guard let name = Self.name(value) else {
                throw StoreError(
                    .recordedVersion, path: databasePath,
                    "\(names.place) contains a value that is not the name of a migration",
                    advice: "a name must be text or a whole number; check recordedVersion in the configuration")
            }
            if known.contains(name) { applied.insert(name) }
            applied.formUnion(merged[name] ?? [])
            if !known.contains(name), merged[name] == nil { unknown += 1 }
        }
        return (applied, unknown)
    }

    private static func name(_ value: Value) -> String? {
        switch value {
        case .text(let text): text
        case .integer(let number): "\(number)"
        case .real, .blob, .null: nil
        }
    }

    private func failure(_ path: String, _ detail: String) -> StoreError {
        StoreError(
            .recordedVersion, path: path, detail,
            advice: "list all migrations in recordedVersion.identifiers, in the order in which releases applied them, "
                + "or return the version from a closure (RecordedVersion.custom)", changed: .nothing)
    }
}
