package import CipherDatabaseConversion
internal import CipherErrors
internal import CipherHistory
internal import CipherSQLText
package import CipherSQLite
internal import CipherSQLiteFormat
package import CipherSchemaMigration
internal import CipherSystemFiles

/// The copy in which an unfinished upgrade by the app itself was collecting the rows.
///
/// Such an upgrade fills a copy of the template beside the database, deletes the database, and renames the copy.
/// Therefore, if there is no database, the copy is complete and becomes the database. If there is a database, the copy
/// may be incomplete, and the database is current.
package struct InterruptedCopy {
    /// The database.
    let paths: DatabasePaths
    /// The copy.
    package let copy: DatabasePaths
    /// Whether the copy's name is a symbolic link.
    ///
    /// The app's upgrade creates no link, so the link's target must not be used.
    private let isLink: Bool
    private let extensions: SQLExtensions
    /// How long to wait for other connections to either file.
    private let busyTimeout: Duration
    private let version: RecordedVersion
    private let template: String
    private let leftover: SchemaTemplate.Leftover?
    /// Whether the copy's name may be that of another account's database.
    package let sharesFolder: Bool

    /// Creates a description of the copy of a template.
    ///
    /// - Parameter sharesFolder: Whether the databases of other accounts may be in the same folder.
    package init(
        _ template: SchemaTemplate, _ paths: DatabasePaths, sharesFolder: Bool = false,
        recordedVersion: RecordedVersion, extensions: SQLExtensions, busyTimeout: Duration
    ) throws {
        self.paths = paths
        copy = DatabasePaths(template.temporaryName(of: paths.name), beside: paths)
        isLink = try FileSystem.status(copy.database, followLinks: false)?.isSymbolicLink == true
        guard isLink || !SmallFile.isSame(template.file, copy.database) else {
            throw StoreError(
                .configuration, path: template.file,
                "the template has the same name as the copy that the app's own upgrade made, and CipherStore removes that "
                    + "copy",
                advice: "move the template to another folder, or set template.temporary to another name",
                changed: .nothing)
        }
        self.extensions = extensions
        self.busyTimeout = busyTimeout
        version = recordedVersion
        self.template = template.file
        leftover = template.leftover
        self.sharesFolder = sharesFolder
    }

    /// The file that is current.
    package enum Finding {
        /// The database is current, or there is no other file.
        case database
        /// The copy is current, because there is no database, or no database with tables.
        case copy
        /// The database is current and was the copy; its WAL still has the copy's name.
        case log
    }

    /// Determines which file is current, without changing anything.
    ///
    /// - Throws: ``StoreError`` that names the copy if its content cannot be determined, or with the code `migration`,
    ///   naming `template.leftover`, if the app must decide which file is current.
    package func finding(_ surface: Inspector.Surface) throws -> Finding {
        guard !isLink else { return .database }
        switch surface {
        case .opaque: return .database
        case .missing, .empty: return try findingBesideNoTables()
        case .staleSidecar: return try isLogOfDeletedDatabase() ? findingBesideNoTables() : .database
        case .plaintext: return try findingBesideDatabase()
        }
    }

    /// Returns whether only a WAL or journal is left of the database.
    ///
    /// The content of that file is in the copy, which was complete before the database was deleted.
    private func isLogOfDeletedDatabase() throws -> Bool {
        guard try FileSystem.size(paths.database) ?? 0 == 0,
            try !SidecarScan.isStale(paths, databaseIsPlaintext: true)
        else { return false }
        // If the copy is in WAL mode and has no WAL, it may have been renamed without its WAL.
        guard try FileSystem.exists(copy.database), try Inspector(copy).header().isWriteAheadLog,
            try !SidecarScan.holdsPages(copy)
        else { return true }
        return try !isLog(paths, of: copy)
    }

    /// Returns whether the WAL of one database may belong to another.
    private func isLog(_ log: DatabasePaths, of database: DatabasePaths) throws -> Bool {
        let header = try Inspector(database).header()
        guard let file = try SidecarFile(log.wal), let claims = try LogHeader(file), header.isWriteAheadLog,
            claims.pageSize == header.pageSize, try !SidecarScan.isStale(log, databaseIsPlaintext: true)
        else { return false }
        return try !LogMatch(
            paths: log,
            firstPage: {
                let file = try DatabaseFile(path: database.database)
                return (try file.read(at: 0, count: FileHeader.length), try file.size())
            }, opening: { $0 }
        ).isOther()
    }

    /// Determines which file is current if there is no database with tables.
    private func findingBesideNoTables() throws -> Finding {
        guard sharesFolder, leftover != .copy else { return try copyHoldsTables() ? .copy : .database }
        guard try leftover == nil && mayBeCopy() else { return .database }
        return try answered(
            .copy, "the database, which has no tables, or \(name), which may also be another account's database")
    }

    /// Returns whether the file with the copy's name may be the copy.
    ///
    /// The copy has tables, is plaintext, and was never opened as a store.
    package func mayBeCopy() throws -> Bool {
        guard !isLink else { return false }
        let inspector = Inspector(copy, extensions: extensions, busyTimeout: busyTimeout)
        switch try inspector.surface() {
        case .missing, .empty, .opaque: return false
        case .staleSidecar: return true
        case .plaintext:
            return try inspector.readingPlaintext { try Self.holdsTables($0) && !HistoryTable.exists($0) } ?? true
        }
    }

    /// Returns whether the copy contains tables.
    private func copyHoldsTables() throws -> Bool {
        let inspector = Inspector(copy, extensions: extensions, busyTimeout: busyTimeout)
        switch try inspector.surface() {
        case .missing, .empty: return false
        case .staleSidecar: throw inspector.staleSidecar()
        case .opaque:
            throw StoreError.damaged(
                copy.database,
                "the database is missing or has no tables, and the file that an unfinished upgrade left here is not a "
                    + "plaintext database")
        case .plaintext:
            // If a journal must be rolled back first, the copy cannot be read, but it certainly contains tables.
            return try inspector.readingPlaintext(Self.holdsTables) != false
        }
    }

    private static func holdsTables(_ connection: Connection) throws -> Bool {
        try connection.value(Bool.self, "SELECT EXISTS (SELECT 1 FROM main.sqlite_master WHERE type = 'table')") == true
    }

    /// Determines which file is current if there is a database.
    ///
    /// A database without tables has no rows, so a copy with tables is current. In WAL mode, all rows may have been in
    /// a WAL that was deleted before its database, or that was left behind when the copy was renamed.
    private func findingBesideDatabase() throws -> Finding {
        let inspector = Inspector(paths, extensions: extensions, busyTimeout: busyTimeout)
        let facts = try inspector.readingPlaintext {
            (holdsTables: try Self.holdsTables($0), isKnown: try HistoryTable.exists($0))
        }
        guard let facts, !facts.isKnown, try !SidecarScan.holdsPages(paths) else { return .database }
        let hasCopy = try FileSystem.exists(copy.database)
        if hasCopy, !facts.holdsTables { return try findingBesideNoTables() }
        guard try inspector.header().isWriteAheadLog else { return .database }
        if hasCopy {
            guard leftover != .database else { return .database }
            let isDamaged = try LostCommits.exist(copy, timeout: busyTimeout)
            guard try isDamaged || isAhead() else { return .database }
            let content =
                isDamaged
                ? "whose log is damaged and may contain additional rows"
                : "which contains all rows of the database and additional rows"
            return try answered(
                .copy, "the database (which is in WAL mode but has no write-ahead log) or \(name) (\(content))")
        }
        guard try leftover != .database && isLog(copy, of: paths) else { return .database }
        return try answered(
            .log,
            "the database alone, or the database together with \(name)-wal (the log of a copy that may have been "
                + "renamed to the database's name)")
    }

    private func answered(_ finding: Finding, _ question: String) throws -> Finding {
        guard leftover == nil else { return finding }
        throw StoreError(
            .migration, path: paths.database,
            "the app's own upgrade was interrupted, and it is unclear which file is current: \(question)",
            advice: "set template.leftover in the configuration to \"copy\" if the copy and its log are current, or to "
                + "\"database\" if the database is current"
                + (sharesFolder ? "; the setting applies to all databases that use the configuration" : ""),
            changed: .nothing)
    }

    /// Returns the note for a plan; `nil` if there is no copy.
    package func note(_ surface: Inspector.Surface) throws -> String? {
        if isLink { return linkNote }
        switch try finding(surface) {
        case .copy:
            return
                "the app's own upgrade was interrupted; when the database is next opened, CipherStore will use "
                + "\(name), which contains the data, as the database"
        case .log:
            return
                "the app's own upgrade was interrupted; when the database is next opened, CipherStore will use "
                + "\(name)-wal as the write-ahead log of the database"
        case .database:
            guard try !sharesFolder && FileSystem.exists(copy.database) else { return nil }
            return
                "the app's own upgrade left behind the file \(name); when the database is next opened, CipherStore "
                + "will remove this file if all of its tables and rows are in the database or the template"
        }
    }

    private var linkNote: String {
        "\(copy.database) is a symbolic link, which the app's own upgrade never creates; the link and its target are "
            + "left unchanged"
    }

    private var name: String { FileSystem.split(copy.database).name }

    // MARK: Without a database

    /// Renames the copy to the database's name, which must be free or that of an empty file.
    ///
    /// The caller must hold the upgrade lock.
    ///
    /// - Parameter onDamage: What to do if the log of the copy is damaged.
    /// - Returns: Warnings for the report.
    package func takeOver(_ onDamage: OnDamage) throws -> [String] {
        guard FileSystem.canWriteInFolder(paths.folder) else {
            throw StoreError.permission(
                paths.folder, "\(name) must be renamed to \(paths.name), but the folder is not writable", .write,
                changed: .nothing)
        }
        try LostCommits.keep(copy, as: paths, onDamage, timeout: busyTimeout)
        let present = try FileSystem.status(paths.database)
        guard let status = try FileSystem.status(copy.database) else { throw StoreError.madeMeanwhile(paths.database) }
        let identity = OriginalFile(copy.database, status)
        let ownership = try SoleOwnership.find(identity, timeout: busyTimeout)
        let isWriteAheadLog = try Inspector(copy).header().isWriteAheadLog
        let hold = try SourceHold(
            copy, identity, ownership, key: nil, wasWriteAheadLog: isWriteAheadLog, busyTimeout: busyTimeout,
            extensions: extensions)
        let replacesDatabase = leftover == .copy && present?.size ?? 0 > 0
        var warnings = [
            replacesDatabase
                ? "the app's own upgrade was interrupted; \(name) replaced \(paths.name), as template.leftover specifies"
                : "the app's own upgrade was interrupted after it deleted the database; \(name), which contains the "
                    + "data, was used instead"
        ]
        do {
            // A WAL or journal belongs to a database by its name, so none may be left when the name changes.
            try hold.settle()
            try hold.file.sync()
            let old = try hold.becomeOldFile()
            guard try old.isAsItWas() else { throw FileUsers.others([]).busy(copy.database) }
            warnings += try rename(over: present, busyTimeout)
            warnings += old.endAfterRenaming()
        } catch {
            _ = hold.giveBack()
            throw (error as? DatabaseError).map { StoreError($0, path: copy.database, during: .use) } ?? error
        }
        if isWriteAheadLog, let reason = Attempts.restoreWriteAheadLog(paths, nil, busyTimeout: busyTimeout) {
            warnings.append("the file is no longer in WAL mode: \(reason)")
        }
        return warnings
    }

    /// Renames the copy over the existing file.
    ///
    /// The copy is leased, so this method must not open it.
    ///
    /// - Returns: Warnings for the report.
    private func rename(over present: FileSystem.Status?, _ busyTimeout: Duration) throws -> [String] {
        let folder = try paths.openFolder()
        let status = try folder.status(paths.name)
        guard status?.identity == present?.identity, status?.size == present?.size else {
            throw StoreError.madeMeanwhile(paths.database)
        }
        var warnings: [String] = []
        if let status {
            let old = try lock(status, busyTimeout)
            // Even a journal without pages truncates a database to the length in its header.
            try removeSidecars()
            guard try old.isAsItWas() else { throw StoreError.madeMeanwhile(paths.database) }
            try folder.rename(copy.name, to: paths.name)
            // Until the folder is synced, a power loss may restore the old file under its name.
            let isDurable = (try? folder.sync()) == true
            warnings = old.end(overwriting: isDurable && status.links == 1)
        } else {
            try paths.removeSidecarsOfMissing()
            guard try folder.renameIfFree(copy.name, to: paths.name) else {
                throw StoreError.madeMeanwhile(paths.database)
            }
            _ = try? folder.sync()
        }
        return warnings
    }

    private func removeSidecars() throws {
        for path in [paths.wal, paths.sharedMemory, paths.journal] { try FileSystem.removeIfPresent(path) }
    }

    /// Locks the file that the copy replaces.
    private func lock(_ status: FileSystem.Status, _ busyTimeout: Duration) throws -> ReplacedFile {
        guard status.size > 0 else { return try ReplacedFile(empty: paths, status, timeout: busyTimeout) }
        let identity = OriginalFile(paths.database, status)
        let hold = try SourceHold(
            paths, identity, SoleOwnership.find(identity, timeout: busyTimeout), key: nil,
            wasWriteAheadLog: try Inspector(paths).header().isWriteAheadLog, busyTimeout: busyTimeout,
            extensions: extensions)
        do {
            try hold.settle()
            return try hold.becomeOldFile()
        } catch {
            _ = hold.giveBack()
            throw error
        }
    }

    /// Renames the WAL of the copy that has become the database to the database's name.
    ///
    /// The caller must hold the upgrade lock.
    ///
    /// - Returns: A note for the report.
    package func takeLog() throws -> String {
        let log = FileSystem.split(copy.wal).name
        let isDone: Bool? = try DatabaseFile(path: paths.database, access: .readWrite).whileUnused {
            try removeSidecars()
            let folder = try paths.openFolder()
            guard try folder.renameIfFree(log, to: FileSystem.split(paths.wal).name) else { return false }
            try FileSystem.removeIfPresent(copy.sharedMemory)
            _ = try? folder.sync()
            return true
        }
        guard isDone == true else { throw FileUsers.others([]).busy(paths.database) }
        return "the app's own upgrade was interrupted; \(log) was used as the write-ahead log of the database"
    }

    // MARK: Beside a database

    /// Removes the copy beside an upgraded database; otherwise the copy would stay behind in plaintext.
    ///
    /// The copy is removed only if the database or the template has all its tables, views, triggers and rows, if SQLite
    /// reads everything in its log, and if it cannot be another account's database.
    ///
    /// - Parameter open: Opens the upgraded database for reading and writing.
    /// - Returns: A note for the report; `nil` if there is nothing to report.
    package func sweep(_ open: () throws -> Connection) throws -> String? {
        guard !isLink else { return linkNote }
        guard try FileSystem.size(copy.database) ?? 0 > 0 else {
            guard try SidecarScan.holdsPages(copy) else { return nil }
            return "\(copy.wal), left by an upgrade of the app, is in plaintext and was not removed"
        }
        let reason: String
        do {
            if sharesFolder { return try mayBeCopy() ? ambiguityNote : nil }
            let difference = try difference(open)
            if difference == nil, try remove() {
                return "the file \(name), left by an upgrade of the app, was removed"
            }
            reason = difference ?? "another connection has the file open"
        } catch {
            reason = "the file could not be compared with the database: \(StoreError.reason(error))"
        }
        return "\(copy.database), left by an upgrade of the app, is in plaintext and was not removed: \(reason)"
    }

    private var ambiguityNote: String {
        "\(copy.database) is in plaintext and was not removed: it may have been left by an upgrade of the app, or may be "
            + "another account's database"
    }

    /// Returns what shows that the file has another origin, or that it has rows that the database lacks; `nil` if
    /// nothing does.
    private func difference(_ open: () throws -> Connection) throws -> String? {
        let inspector = Inspector(copy, extensions: extensions, busyTimeout: busyTimeout)
        switch try inspector.surface() {
        case .missing, .empty: return "the file is empty"
        case .staleSidecar: throw inspector.staleSidecar()
        case .opaque: throw inspector.keyDoesNotFit()
        case .plaintext: break
        }
        guard try !LostCommits.exist(copy, timeout: busyTimeout) else { return LostCommits.finding }
        let connection = try open()
        defer { connection.close() }
        try connection.attachPlaintext(copy.database, as: Self.schema)
        try connection.attachPlaintext(template, as: Self.templateSchema, isReadOnly: true)
        if let object = try otherObject(connection) {
            return "neither the template nor the database has the file's \(object)"
        }
        let tables = try tables(connection)
        guard !tables.isEmpty else { return "the file contains no tables" }
        let lacking = try tables.first { name in
            // Rows of the template are not the user's.
            let others = try ["main", Self.templateSchema].map { try RowComparison.Table(name, in: $0, connection) }
            return try !rows(of: .init(name, in: Self.schema, connection), name).isContained(in: others, connection)
        }
        return lacking.map { "the table \($0) in the file contains rows that the database lacks" }
    }

    /// Returns a table, view or trigger of the file that neither the template nor the database has.
    ///
    /// The app made the copy from an earlier template, whose objects may be left only in the database.
    private func otherObject(_ connection: Connection) throws -> String? {
        try connection.value(
            String.self,
            """
            SELECT type || ' ' || name FROM interrupted.sqlite_master AS object
            WHERE type IN ('table', 'view', 'trigger') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND NOT EXISTS (
                SELECT 1 FROM (
                    SELECT type, name FROM template.sqlite_master UNION ALL SELECT type, name FROM main.sqlite_master
                ) AS other WHERE other.type = object.type AND other.name = object.name COLLATE NOCASE
            ) LIMIT 1
            """)
    }

    private static let schema = "interrupted"
    private static let templateSchema = "template"

    /// Returns the tables of the copy.
    private func tables(_ connection: Connection) throws -> [String] {
        try connection.values(
            String.self,
            """
            SELECT name FROM interrupted.sqlite_master WHERE type = 'table' AND coalesce(rootpage, 0) <> 0
            AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name
            """)
    }

    private func rows(of table: RowComparison.Table, _ name: String) -> RowComparison {
        var rows = RowComparison(table: table)
        guard version.tables.contains(SQLName(name)) else { return rows }
        // The record of the version is newer in one of the files.
        rows.condition = " WHERE 0"
        if case .table(let column) = version, !column.condition.isEmpty {
            rows.condition = " WHERE NOT coalesce((\(column.terms)), 0)"
        }
        return rows
    }

    /// Returns whether the copy has every row of a database that CipherStore has not yet upgraded, and more of the
    /// user's rows.
    ///
    /// If the copy cannot be read, it is incomplete.
    private func isAhead() throws -> Bool {
        guard try Inspector(copy, extensions: extensions, busyTimeout: busyTimeout).surface() == .plaintext else {
            return false
        }
        do {
            // These connections leave no files beside either database.
            return try ReadOnlyAccess.withConnection(
                copy, nil, extensions, busyTimeout: busyTimeout, isAlone: false
            ) { _ in
                try ReadOnlyAccess.withConnection(
                    paths, nil, extensions, busyTimeout: busyTimeout, isAlone: false
                ) { connection in
                    try connection.attachPlaintext(copy.database, as: Self.schema, isReadOnly: true)
                    try connection.attachPlaintext(template, as: Self.templateSchema, isReadOnly: true)
                    return try isAhead(connection)
                }
            }
        } catch is DatabaseError {
            return false
        }
    }

    private func isAhead(_ connection: Connection) throws -> Bool {
        var hasMore = false
        for name in try tables(connection) {
            let present = try RowComparison.Table(name, in: "main", connection)
            // The rows of a new table did not come from the database.
            guard !present.columns.isEmpty else { continue }
            let copied = try RowComparison.Table(name, in: Self.schema, connection)
            let names = Set(present.columns.map(SQLName.init))
            let common = copied.columns.filter { names.contains(SQLName($0)) }
            guard !common.isEmpty else { continue }
            let own = RowComparison.Table(name, columns: common, in: "main")
            let other = RowComparison.Table(name, columns: common, in: Self.schema)
            guard try rows(of: own, name).isContained(in: [other], connection) else { return false }
            let seeds = try RowComparison.Table(name, in: Self.templateSchema, connection)
            if !hasMore { hasMore = try !rows(of: other, name).isContained(in: [own, seeds], connection) }
        }
        return hasMore
    }

    /// Removes the copy, and returns `false` if another connection has it open.
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
