import CipherSQLite

/// Builds the encrypted copy of a plaintext database, exact to the rowid and the letter of the schema.
///
/// The copy is scrap until it is proven, so it is built without a journal and synced once, by the caller. Rows are moved by
/// `INSERT INTO … SELECT *`, which SQLite does by transferring whole records, index entries included, where both schemas
/// agree; the schema is therefore put in place first, as rows of the schema table. Read from there it is taken as the
/// original's is: to the letter, with whatever functions and modules it names, loaded or not.
/// Source: SQLite, "The Schema Table" and "PRAGMA writable_schema".
struct CopyBuilder {
    let source: String
    let copy: String
    let key: CipherKey
    let settings: CipherSettings
    let collations: [Collation]
    let header: FileHeader
    let observer: UpgradeObserver

    /// Builds the copy.
    ///
    /// The file exists already, empty; it is not synced.
    func build() throws {
        let sourceFile = try DatabaseFile(path: source)
        var skeleton: CopySkeleton?
        try withConnection { connection in
            try setLayout(connection)
            skeleton = try CopySkeleton(connection, source: sourceFile, header: header)
        }
        guard let skeleton else { return }
        // A new connection reads the schema from its rows.
        try withConnection { connection in
            try watch(connection)
            try connection.execute("BEGIN")
            for table in skeleton.tables {
                try copyRows(table, connection)
                try observer.checkCancellation()
            }
            try skeleton.complete(connection)
            try copyHeader(connection)
            try connection.execute("COMMIT")
        }
        guard !skeleton.indexesToFill.isEmpty else { return }
        try withConnection { connection in
            try watch(connection)
            for index in skeleton.indexesToFill { try fill(index, connection) }
        }
    }

    private func fill(_ index: String, _ connection: Connection) throws {
        do {
            try connection.execute(SQL(text: "REINDEX main.\(SQL.quoted(identifier: index))"))
        } catch let error as DatabaseError where error.namesAbsentFunction {
            throw StoreError(
                .missingFunction, path: source,
                "the index \(index) on a generated column computes with a function that only the app has",
                advice: "drop the index before the upgrade and make it again afterwards; nothing was changed",
                underlying: error)
        }
    }

    private func withConnection(_ body: (Connection) throws -> Void) throws {
        let sealing = SealingFileSystem.canWrite(settings) ? try SealingFileSystem(key: key) : nil
        let connection = try Connection(path: copy, mode: .readWrite, sealingThrough: sealing)
        do {
            defer { connection.close() }
            if sealing == nil { try connection.setKey(key, settings: settings) }
            try prepare(connection)
            try body(connection)
        }
        try sealing?.checkWritten(copy)
    }

    private func prepare(_ connection: Connection) throws {
        connection.allowDoubleQuotedStrings()
        connection.distrustSchema()
        for collation in collations { try connection.register(collation) }
        // Without secure_delete a page that becomes free is never written: a hole, which SQLCipher's check of all pages
        // takes for a forged one.
        for pragma in [
            "journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE", "cache_size = -8000",
            "secure_delete = ON", "foreign_keys = OFF", "recursive_triggers = OFF", "ignore_check_constraints = ON",
        ] {
            try connection.execute(SQL(text: "PRAGMA \(pragma)"))
        }
        let encoding = try encodingOfSource()
        try connection.execute(SQL(text: "PRAGMA encoding = \(SQL.quoted(text: encoding))"))
        try connection.attachPlaintext(source, as: "legacy")
        try connection.execute("PRAGMA writable_schema = ON")
    }

    /// An attached file must have the encoding of the main one, so it is asked for beforehand.
    private func encodingOfSource() throws -> String {
        let connection = try Connection(path: source, mode: .readOnly)
        defer { connection.close() }
        return try connection.value(String.self, "PRAGMA encoding") ?? "UTF-8"
    }

    /// What a file takes on with its first page.
    private func setLayout(_ connection: Connection) throws {
        let autoVacuum = try connection.value(Int.self, "PRAGMA legacy.auto_vacuum") ?? 0
        try connection.execute(SQL(text: "PRAGMA main.auto_vacuum = \(String(autoVacuum))"))
        if (1..<4).contains(header.schemaFormat) { try connection.useLegacyFileFormat() }
    }

    private func copyRows(_ table: CopySkeleton.Table, _ connection: Connection) throws {
        let name = SQL.quoted(identifier: table.name)
        if table.isSequence { try connection.execute(SQL(text: "DELETE FROM main.\(name)")) }
        guard let columns = table.namedColumns else {
            try connection.standingInForAbsentFunctions {
                try connection.execute(SQL(text: "INSERT INTO main.\(name) SELECT * FROM legacy.\(name)"))
            }
            return
        }
        let list = columns.prefix(Self.widestResult).joined(separator: ", ")
        try connection.execute(
            SQL(text: "INSERT INTO main.\(name)(\(list)) SELECT \(list) FROM legacy.\(name) NOT INDEXED"))
        // With the rowid, a table of as many columns as SQLite allows is wider than a result may be.
        for column in columns.dropFirst(Self.widestResult) {
            try connection.execute(
                SQL(
                    text: """
                        UPDATE main.\(name) SET \(column) =
                            (SELECT old.\(column) FROM legacy.\(name) AS old WHERE old.\(columns[0]) = \(name).\(columns[0]))
                        """))
        }
    }

    /// SQLite's limit, unless it was built with another.
    ///
    /// Source: SQLite, "Implementation Limits", section 2.
    private static let widestResult = 2_000

    /// Numbers of the header that SQL can reach.
    ///
    /// The schema's cookie is last, for other changes raise it.
    private func copyHeader(_ connection: Connection) throws {
        if header.defaultCacheSize != 0 {
            try connection.execute(SQL(text: "PRAGMA main.default_cache_size = \(String(header.defaultCacheSize))"))
        }
        for name in ["user_version", "application_id", "schema_version"] {
            let value = try connection.value(Int.self, SQL(text: "PRAGMA legacy.\(name)")) ?? 0
            try connection.execute(SQL(text: "PRAGMA main.\(name) = \(String(value))"))
        }
    }

    /// The copy's growth is the progress; a cancelled upgrade ends the running statement.
    private func watch(_ connection: Connection) throws {
        let copy = copy
        let observer = observer
        connection.setProgressHandler(every: 20_000) {
            // A size that cannot be had is only a progress not shown.
            if let size = try? FileSystem.size(copy) { observer.update(bytes: size) }
            return !observer.isCancelled
        }
    }
}
