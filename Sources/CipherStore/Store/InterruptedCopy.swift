import CipherSQLite

/// The copy in which an app's own upgrade was collecting the rows, where that upgrade did not end.
///
/// It fills a copy of the template beside the database, deletes the database, and renames the copy. So without a
/// database the copy is whole: it is the database. Beside a database it may be half filled, and the database counts.
struct InterruptedCopy {
    /// The database.
    let paths: DatabasePaths
    /// The copy.
    let copy: DatabasePaths
    /// Whether its name is a symbolic link's: the app's upgrade makes none, so what it leads to is not ours to take.
    private let isLink: Bool
    private let collations: [Collation]
    private let version: RecordedVersion
    private let template: String

    /// Returns `nil` where the schema comes from elsewhere than a template.
    init?(_ configuration: Configuration, _ paths: DatabasePaths) throws {
        guard case .template(let template) = configuration.schema else { return nil }
        self.paths = paths
        copy = DatabasePaths(template.temporaryName(of: configuration.databaseName), beside: paths)
        isLink = try FileSystem.status(copy.database, followLinks: false)?.isSymbolicLink == true
        collations = configuration.collations
        version = configuration.recordedVersion
        self.template = template.file
    }

    /// Whether the copy is the database: there is no other, and it holds tables.
    ///
    /// - Throws: ``StoreError`` that names the copy, where nobody can say what it holds.
    func isDatabase(_ surface: Inspector.Surface) throws -> Bool {
        guard !isLink, surface == .missing || surface == .empty else { return false }
        let inspector = Inspector(copy, collations: collations)
        switch try inspector.surface() {
        case .missing, .empty: return false
        case .staleSidecar: throw inspector.staleSidecar()
        case .opaque:
            throw StoreError(
                .corrupt, path: copy.database,
                "the database is missing, and what an upgrade that did not end left here is no plaintext database",
                advice: "restore the database from a backup; nothing was changed")
        case .plaintext:
            let tables = try inspector.readingPlaintext {
                try $0.value(Int.self, "SELECT count(*) FROM sqlite_master WHERE type = 'table'")
            }
            // With a journal to roll back first it cannot be read, and it certainly holds something.
            return tables != 0
        }
    }

    /// What a plan should say of it; `nil` where there is none.
    func note(_ surface: Inspector.Surface) throws -> String? {
        if isLink { return linkNote }
        if try isDatabase(surface) {
            return "an upgrade of the app's own did not end: \(name) holds the rows and would become the database"
        }
        guard try FileSystem.exists(copy.database) else { return nil }
        return
            "an upgrade of the app's own left \(name): it would be removed once the database is shown to have all its rows"
    }

    private var linkNote: String {
        "\(copy.database) is a symbolic link, which no upgrade of the app's makes: it and what it leads to are left alone"
    }

    private var name: String { FileSystem.split(copy.database).name }

    // MARK: Without a database

    /// Gives the copy the database's name, which must be free or that of an empty file.
    ///
    /// The upgrade lock is held. Returns what is to be told.
    func takeOver(busyTimeout: Int32) throws -> [String] {
        guard FileSystem.canWriteInFolder(paths.folder) else {
            throw StoreError(
                .permission, path: paths.folder,
                "\(name) is to become the database, and the folder cannot be written",
                advice: "give this user the permission to write it; nothing was changed")
        }
        guard let status = try FileSystem.status(copy.database) else { throw madeMeanwhile() }
        let identity = OriginalFile(copy.database, status)
        let ownership = try SoleOwnership.find(identity, timeout: busyTimeout)
        let isWriteAheadLog = try Inspector(copy).header().isWriteAheadLog
        let hold = try SourceHold(
            copy, identity, ownership, key: nil, wasWriteAheadLog: isWriteAheadLog, busyTimeout: busyTimeout,
            collations: collations)
        var warnings = [
            "an upgrade of the app's own had not ended: \(name), which holds the rows, was taken for the database that "
                + "it had deleted"
        ]
        do {
            // A log or journal goes by the name of its database, so none may be left when the name changes.
            try hold.settle()
            try hold.file.sync()
            let old = try hold.becomeOldFile()
            guard try old.isAsItWas() else { throw FileUsers.others([]).busy(copy.database) }
            warnings += try rename(busyTimeout)
            warnings += old.endAfterRenaming()
        } catch {
            _ = hold.giveBack()
            throw (error as? DatabaseError).map { StoreError.reading($0, path: copy.database) } ?? error
        }
        if isWriteAheadLog, let reason = Attempts.restoreWriteAheadLog(paths, nil, busyTimeout: busyTimeout) {
            warnings.append("the file is not in WAL mode any more: \(reason)")
        }
        return warnings
    }

    /// Returns what is to be told.
    private func rename(_ busyTimeout: Int32) throws -> [String] {
        guard try !SidecarScan.holdsPages(paths) else { throw Inspector(paths).staleSidecar() }
        // A journal without pages still cuts a database to the length that it tells of.
        for path in [paths.wal, paths.sharedMemory, paths.journal] { try FileSystem.removeIfPresent(path) }
        let folder = try paths.openFolder()
        var warnings: [String] = []
        if let status = try folder.status(paths.name) {
            let old = try OldFile(empty: paths, status, timeout: busyTimeout)
            guard try old.isAsItWas() else { throw madeMeanwhile() }
            try folder.rename(copy.name, to: paths.name)
            // A power loss may bring the empty file's name back, until the folder is synced.
            let isDurable = (try? folder.sync()) == true
            warnings = old.end(spoiling: isDurable && status.links == 1)
        } else {
            guard try folder.renameIfFree(copy.name, to: paths.name) else { throw madeMeanwhile() }
            _ = try? folder.sync()
        }
        return warnings
    }

    private func madeMeanwhile() -> StoreError {
        StoreError(
            .busy, path: paths.database, "another program made the file at the same moment",
            advice: "try again; nothing was changed")
    }

    // MARK: Beside a database

    /// Removes the copy beside an upgraded database, which it would otherwise outlive in plaintext.
    ///
    /// Only where the database is shown to have every row of it. Returns what is to be told.
    ///
    /// - Parameter open: Opens the upgraded database for reading and writing.
    func sweep(_ open: () throws -> Connection) throws -> String? {
        guard !isLink else { return linkNote }
        guard try FileSystem.exists(copy.database) else { return nil }
        let reason: String
        do {
            let lacking = try tableLacking(open)
            if lacking == nil, try remove() { return "\(name), which an upgrade of the app's own left, was removed" }
            reason =
                lacking.map { "rows of its table \($0) are not in the database" } ?? "another connection has it open"
        } catch {
            reason = "it could not be compared with the database: \(StoreError.reason(error))"
        }
        return "\(copy.database), which an upgrade of the app's own left, is still there and readable: \(reason)"
    }

    /// A table of the copy with rows that the database lacks.
    private func tableLacking(_ open: () throws -> Connection) throws -> String? {
        let inspector = Inspector(copy, collations: collations)
        switch try inspector.surface() {
        case .missing, .empty: return nil
        case .staleSidecar: throw inspector.staleSidecar()
        case .opaque: throw inspector.keyDoesNotFit()
        case .plaintext: break
        }
        let connection = try open()
        defer { connection.close() }
        try connection.attachPlaintext(copy.database, as: Self.schema)
        try connection.attachPlaintext(template, as: Self.templateSchema, isReadOnly: true)
        let tables = try connection.values(
            String.self,
            """
            SELECT name FROM interrupted.sqlite_master WHERE type = 'table' AND coalesce(rootpage, 0) <> 0
            AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name
            """)
        return try tables.first { try !contains($0, connection) }
    }

    private static let schema = "interrupted"
    private static let templateSchema = "template"

    /// Rows of the template are none of the user's.
    private func contains(_ table: String, _ connection: Connection) throws -> Bool {
        var rows = RowComparison(table: try .init(table, in: Self.schema, connection))
        if case .table(let column) = version, SQLName(column.table) == SQLName(table) {
            // The record of the version is newer in the database.
            rows.condition = column.condition.isEmpty ? " WHERE 0" : " WHERE NOT coalesce((\(column.terms)), 0)"
        }
        return try rows.isContained(
            in: try ["main", Self.templateSchema].map { try .init(table, in: $0, connection) }, connection)
    }

    /// Returns whether nobody had it open.
    private func remove() throws -> Bool {
        let isDone: Bool? = try DatabaseFile(path: copy.database, access: .readWrite).whileUnused {
            for path in [copy.database, copy.wal, copy.sharedMemory, copy.journal] {
                try FileSystem.removeIfPresent(path)
            }
            return true
        }
        return isDone == true
    }
}
