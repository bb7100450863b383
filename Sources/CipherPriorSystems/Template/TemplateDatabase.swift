internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherHistory
internal import CipherSQLText
internal import CipherSQLite
internal import CipherSchemaMigration

/// The database that an app ships as a model for the user's database; it is only read through SQLite and never written.
struct TemplateDatabase {
    let path: String
    private let extensions: SQLExtensions

    init(path: String, extensions: SQLExtensions) {
        self.path = path
        self.extensions = extensions
    }

    /// The content of the template, except rows.
    struct Content {
        /// The tables, without SQLite's own, CipherStore's, and those in which virtual tables store their data.
        var tables: [Table] = []
        /// The names and texts of the indexes, views and triggers.
        var objects: [(name: String, sql: String)] = []
        /// The version that the template itself records.
        var version: SchemaVersion?
    }

    /// A table of the template.
    struct Table {
        let name: String
        let sql: String
        /// Whether the table has rows to add; a virtual table has no such rows.
        let holdsRows: Bool
    }

    /// Calls `body` with a read-only connection to the template.
    ///
    /// - Throws: ``StoreError`` that names the template if it is missing, encrypted, empty or damaged.
    func read<Result>(_ body: (Connection) throws -> Result) throws -> Result {
        let inspector = Inspector(try DatabasePaths(path), extensions: extensions)
        switch try inspector.surface() {
        case .missing:
            throw StoreError(
                .missingFile, path: path, "there is no template at this path", advice: "check template.file",
                changed: .nothing)
        case .empty: throw failure("the template file is empty")
        case .opaque: throw failure("the template is encrypted or is not a database; it must be a plaintext database")
        case .staleSidecar: throw inspector.staleSidecar()
        case .plaintext: break
        }
        guard let result = try inspector.readingPlaintext(body) else { throw inspector.needsRecovery() }
        return result
    }

    /// Reads the content of the template, except rows.
    ///
    /// - Parameters:
    ///   - record: The place where the version is recorded, in the template as in the user's database.
    ///   - wanted: The version that the template should have.
    func content(record: RecordedVersion, wanted: SchemaVersion) throws -> Content {
        // Assumptions about users' databases do not apply to the template, which the app can correct.
        let fractions: RecordedVersion.Fractions = wanted.isDotted ? .refused : .asWritten
        return try content(record, fractions)
    }

    private func content(_ record: RecordedVersion, _ fractions: RecordedVersion.Fractions) throws -> Content {
        try read { connection in
            var content = try readObjects(connection)
            guard !content.tables.isEmpty else { throw failure("the template contains no tables") }
            switch record {
            case .userVersion, .migrations:
                // The version is 0 if the author of the template recorded nothing.
                let version = try record.read(from: connection, databasePath: path, fractions)
                content.version = version == .zero ? nil : version
            case .table(let column):
                guard let version = try record.read(from: connection, databasePath: path, fractions) else {
                    throw StoreError(
                        .recordedVersion, path: path,
                        "the template records no version in \(column.table).\(column.column)",
                        advice: "record the template's version there, or correct recordedVersion in the configuration")
                }
                content.version = version
            case .stepRecords, .propertyList, .custom: break
            }
            return content
        }
    }

    /// Checks every page, before rows are copied from the template.
    func checkPages() throws {
        let isIntact = try read { try $0.value(String.self, "PRAGMA quick_check(1)") } == "ok"
        let losesCommits = try LostCommits.exist(DatabasePaths(path))
        guard isIntact, !losesCommits else {
            throw StoreError(
                .corrupt, path: path,
                "the template is damaged\(losesCommits ? ": \(LostCommits.finding)" : "")",
                advice: "reinstall the app", changed: .nothing)
        }
    }

    private func readObjects(_ connection: Connection) throws -> Content {
        var content = Content()
        var tables: [(name: String, sql: String, isVirtual: Bool)] = []
        try connection.forEachRow(
            """
            SELECT type = 'table', name, sql, coalesce(rootpage, 0) = 0 FROM main.sqlite_master
            WHERE sql IS NOT NULL ORDER BY rowid
            """
        ) { row in
            let name = try row.get(String.self, at: 1)
            guard !SQLName(name).isOfSQLite, !SQLName(name).isOfCipherStore else { return }
            if try row.get(Bool.self, at: 0) {
                tables.append((name, try row.get(at: 2), try row.get(at: 3)))
            } else {
                content.objects.append((name, try row.get(at: 2)))
            }
        }
        let shadows = tables.filter(\.isVirtual).map { $0.name + "_" }
        for table in tables where !shadows.contains(where: { SQLName(table.name).hasPrefix($0) }) {
            let holdsRows =
                try !table.isVirtual
                && connection.value(Bool.self, "SELECT EXISTS (SELECT 1 FROM main.\(identifier: table.name))") == true
            content.tables.append(Table(name: table.name, sql: table.sql, holdsRows: holdsRows))
        }
        return content
    }

    func failure(_ detail: String) -> StoreError {
        StoreError(
            .configuration, path: path, detail,
            advice: "set template.file to the database that the app ships", changed: .nothing)
    }
}
