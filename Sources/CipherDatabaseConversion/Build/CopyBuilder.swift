internal import CipherErrors
internal import CipherPageSealing
internal import CipherSQLite
internal import CipherSystemFiles

/// Builds a copy of a database with another key or without one, exact in every rowid and every character of the schema.
///
/// The copy is worthless until it is proven, so it is built without a journal and synced once, by the caller. Rows are
/// moved by `INSERT INTO … SELECT *`. SQLite implements that by transferring whole records, including index entries, if
/// both schemas agree. The schema is therefore written first, as rows of the schema table. SQLite accepts a schema that
/// it reads from there exactly as it accepts the original's, whatever functions and modules it names, loaded or not.
/// Source: SQLite, "The Schema Table" and "PRAGMA writable_schema".
struct CopyBuilder {
    /// The path of the database to copy.
    let source: String
    /// The key of the original; `nil` for a plaintext original.
    let sourceKey: FileKey?
    /// The file to build.
    let copy: NewFile
    /// The path of the file that the copy will become, for errors.
    let target: String
    /// The key of the copy; `nil` for a plaintext copy.
    let copyKey: FileKey?
    let extensions: SQLExtensions
    let header: HeaderFields
    /// How long to wait for other connections to the original.
    let busyTimeout: Duration
    /// Whether to fill the indexes from the rows instead of copying them.
    let rebuildsIndexes: Bool
    /// Whether an app may commit to the original meanwhile.
    let isBesideWriters: Bool
    let observer: UpgradeObserver

    /// A connection to the original, with the copy attached as `copy`.
    struct Begun {
        let connection: Connection
        /// The file layer that encrypts the copy's pages; `nil` if SQLCipher encrypts them.
        fileprivate let sealing: FileLayer?
    }

    /// Builds the copy, and closes the connection.
    ///
    /// The file already exists and is empty. The file is not synced.
    ///
    /// - Parameter begun: The connection, which may be in a transaction. That transaction then contains all of the
    ///   work, and later commits to the original are not in the copy.
    func build(_ begun: Begun) throws {
        do {
            let connection = begun.connection
            defer { connection.close() }
            try setLayout(connection)
            let skeleton = try connection.building {
                try CopySkeleton(connection, header: header, rebuildsIndexes: rebuildsIndexes)
            }
            try connection.forgetSchemas()
            let growth = try CopyGrowth(
                source: source, sourceKey: sourceKey, copyKey: copyKey,
                growth: skeleton.tables.reduce(0) { $0 + $1.filling.growth })
            watch(connection, growth)
            try growth.judging {
                try connection.building { try fillTables(skeleton, connection) }
                if !skeleton.indexesToFill.isEmpty {
                    try connection.forgetSchemas()
                    // All indexes share one limit, because a schema may have any number of them.
                    try connection.computingBySchema {
                        for (done, index) in skeleton.indexesToFill.enumerated() {
                            try checkRoom(forIndexes: skeleton.indexesToFill.count - done, connection)
                            try fill(index, connection)
                        }
                    }
                }
                if connection.isInTransaction { try connection.execute("COMMIT") }
            }
        }
        try begun.sealing?.check(copy.path)
    }

    private func fillTables(_ skeleton: CopySkeleton, _ connection: Connection) throws {
        for table in skeleton.tables {
            do {
                try copyRows(table, connection)
            } catch let error as DatabaseError where error.isUniqueViolation {
                // SQLite's own message names the table by its temporary name.
                throw DatabaseError(
                    extendedCode: error.extendedCode,
                    message: "table \(table.name) is damaged: more than one of its rows has the same key", path: source)
            }
            try observer.checkCancellation()
        }
        try skeleton.complete(connection)
        try copyHeader(connection)
    }

    /// Checks the free space for the indexes that are still empty, and for the sorted entries of one of them.
    ///
    /// What the copy still lacks of the original's content is in these indexes. The largest of them is at least as
    /// large as their average, and its entries are also in a temporary file while SQLite sorts them. A damaged index
    /// may be smaller than the one that is built; if the disk is then full, the statement fails.
    private func checkRoom(forIndexes count: Int, _ connection: Connection) throws {
        func content(_ schema: String) throws -> Int64 {
            let counts = try ["page_count", "freelist_count"].map {
                try connection.value(Int64.self, SQL(text: "PRAGMA \(schema).\($0)")) ?? 0
            }
            return try (counts[0] - counts[1]) * connection.pageSize(of: schema)
        }
        let rest = max(0, try content("main") - content("copy"))
        try DatabasePaths(target, seenIn: nil).checkRoom(
            for: rest + rest / Int64(count), largest: 0, "building the indexes of the copy needs")
    }

    private static let dropIndex = "drop the index before the upgrade and create it again afterwards"

    private func fill(_ index: CopySkeleton.Index, _ connection: Connection) throws {
        let fill: SQL = "REINDEX copy.\(index.name)"
        do {
            // Everything else that an index needs was checked when the schema was read.
            _ = try Statement(fill, on: connection)
        } catch let error as DatabaseError where error.extendedCode == DatabaseError.generic {
            let name = error.unregistered?.description ?? "an app-defined function"
            throw StoreError(
                .missingFunction, path: source,
                "the index \(index.name) calls \(name), which is not registered",
                advice: "register the function in the configuration's `functions`, or \(Self.dropIndex)",
                changed: .nothing, underlying: error)
        }
        do {
            try connection.execute(fill)
        } catch let error as DatabaseError where error.isConstraintViolation {
            throw try DuplicateKeys(index, connection).error(source, error)
        } catch let error as DatabaseError where error.isTooBig || error.code == DatabaseError.generic {
            throw StoreError(
                .corrupt, path: source, "the index \(index.name) cannot be computed",
                advice: Self.dropIndex, changed: .nothing, underlying: error)
        }
    }

    /// Opens the original, with the copy attached as `copy`.
    ///
    /// The order matters: only the main file of a connection can be opened in any cipher format.
    func begin() throws -> Begun {
        let sealing = try copyKey.flatMap { copyKey in
            guard FileLayer.canSeal(copyKey.settings) else { return nil as FileLayer? }
            // If the other thread could not be started, this thread encrypts the pages.
            let file = isBesideWriters ? copy.content.writingEarly : copy.content
            return try FileLayer(sealing: file, key: copyKey.key) { body in
                (try? DetachedThread.start("seal", body)) != nil
            }
        }
        let connection = try ConnectionProfile.building(Connection.size(source)).with(sourceKey, extensions)
            .open(source, busyTimeout: busyTimeout, through: layer())
        do {
            try attachCopy(connection, sealing)
        } catch {
            connection.close()
            throw error
        }
        return Begun(connection: connection, sealing: sealing)
    }

    /// Returns the layer for the original; it may be in a folder that cannot be written to, so files for sorting are in
    /// the copy's folder.
    private func layer() throws -> FileLayer {
        try FileLayer(guarding: source, readsAhead: true) { [copy] in try? copy.folder.createNameless() }
    }

    private func attachCopy(_ connection: Connection, _ sealing: FileLayer?) throws {
        // The encoding of the original is known once its schema has been read, and the copy adopts it.
        try connection.proveReadable()
        guard try connection.value(Int64.self, "PRAGMA main.page_count") != 0 else {
            throw StoreError.damaged(source, "the file became empty while it was being read")
        }
        try connection.attachEmpty(
            try sealing ?? copy.layer(), as: "copy",
            // The page size is SQLCipher's, with reserved space after the content for the HMAC and initialization
            // vector.
            pages: sealing.map { _ in (PageSealer.pageSize, PageSealer.reservedSize) })
        if let copyKey, sealing == nil {
            try connection.setKey(copyKey.key, settings: copyKey.settings, schema: "copy")
        }
        // Without secure_delete, a page that becomes free is never written. The result is a hole, which SQLCipher's
        // check of all pages mistakes for a forged page.
        for pragma in [
            "copy.journal_mode = OFF", "copy.synchronous = OFF", "copy.locking_mode = EXCLUSIVE",
            "copy.cache_size = -8000", "copy.secure_delete = ON", "foreign_keys = OFF", "recursive_triggers = OFF",
            "ignore_check_constraints = ON", "writable_schema = ON",
        ] {
            try connection.execute(SQL(text: "PRAGMA \(pragma)"))
        }
    }

    /// Sets the properties that a file adopts with its first page.
    private func setLayout(_ connection: Connection) throws {
        let autoVacuum = try connection.value(Int.self, "PRAGMA main.auto_vacuum") ?? 0
        try connection.execute(SQL(text: "PRAGMA copy.auto_vacuum = \(String(autoVacuum))"))
        if (1..<4).contains(header.schemaFormat) { try connection.useLegacyFileFormat() }
    }

    private func copyRows(_ table: CopySkeleton.Table, _ connection: Connection) throws {
        if table.isSequence { try connection.execute("DELETE FROM copy.\(table.target)") }
        guard let columns = table.filling.columns else {
            try connection.standingInForAbsentFunctions {
                try connection.execute("INSERT INTO copy.\(table.target) SELECT * FROM main.\(table.name)")
            }
            return
        }
        let targets = table.filling.targets
        let selected = columns.prefix(Self.widestResult).joined(by: ", ")
        let list = SQL(text: targets.prefix(Self.widestResult).joined(separator: ", "))
        try connection.execute(
            "INSERT INTO copy.\(table.target)(\(list)) SELECT \(selected) FROM main.\(table.name) \(table.filling.source)"
        )
        // Together with the rowid, a table with the maximum number of columns is wider than a result may be.
        for (column, target) in zip(columns, targets).dropFirst(Self.widestResult) {
            let (target, rowid) = (SQL(text: target), columns[0])
            try connection.execute(
                """
                UPDATE copy.\(table.target) SET \(target) =
                    (SELECT \(column) FROM main.\(table.name) AS old WHERE \(rowid) = \(table.target).rowid)
                """)
        }
    }

    /// SQLite's limit for the number of columns of a result, unless SQLite was built with a different one.
    ///
    /// Source: SQLite, "Implementation Limits", section 2.
    private static let widestResult = 2_000

    /// Copies the header fields that SQL can set.
    ///
    /// The schema cookie is last, because other changes raise it.
    private func copyHeader(_ connection: Connection) throws {
        if header.defaultCacheSize != 0 {
            try connection.execute(SQL(text: "PRAGMA copy.default_cache_size = \(String(header.defaultCacheSize))"))
        }
        for name in ["user_version", "application_id", "schema_version"] {
            let value = try connection.value(Int.self, SQL(text: "PRAGMA main.\(name)")) ?? 0
            try connection.execute(SQL(text: "PRAGMA copy.\(name) = \(String(value))"))
        }
    }

    /// Reports the copy's growth as the progress.
    ///
    /// If the upgrade is canceled, the running statement stops.
    private func watch(_ connection: Connection, _ growth: CopyGrowth) {
        let copy = copy
        let observer = observer
        let stride: Int32 = 20_000
        connection.setProgressHandler(every: stride) {
            // If the size cannot be read, the copy continues, but its progress is not reported.
            guard let size = try? copy.size() else { return !observer.isCancelled }
            observer.update(bytes: size)
            return !observer.isCancelled && growth.isBearable(size, steps: stride)
        }
    }
}

extension Connection {
    /// Runs `body` in a transaction: in the current transaction if the original is pinned.
    ///
    /// A failure is not rolled back, because the copy is then worthless.
    fileprivate func building<Result>(_ body: () throws -> Result) throws -> Result {
        let isPinned = isInTransaction
        if !isPinned { try execute("BEGIN") }
        let result = try body()
        try checkAuthenticity()
        if !isPinned { try execute("COMMIT") }
        return result
    }
}
