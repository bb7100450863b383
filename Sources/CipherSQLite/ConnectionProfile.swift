/// What the ways of opening a database differ in.
///
/// Each way is a named profile below, so that one table shows what a connection may do and whom it believes.
package struct ConnectionProfile {
    /// What a file that no one has vouched for may make its reader do.
    package enum Trust {
        /// The schema is this process's own.
        case own
        /// Functions in the schema that are not innocuous may not run.
        case schemaIsForeign
        /// The same, and no value may be longer than such a file can hold; the size is in bytes, with the log.
        case fileIsForeign(size: Int64)
    }

    /// Where a string may stand in double quotes, as old SQL has it.
    package enum DoubleQuotedStrings {
        /// As the engine was built.
        case asBuilt
        /// Nowhere but in the schema that the file has.
        case refused
        /// In statements.
        case inStatements
        /// In statements and in new definitions.
        case everywhere
    }

    package var mode: Connection.Mode
    package var key: (key: CipherKey, format: CipherSettings)?
    package var trust: Trust
    package var doubleQuotedStrings: DoubleQuotedStrings
    /// Whether SQL that can damage the file is refused.
    package var isDefensive: Bool
    /// Whether a commit may checkpoint, which is not safe beside other writers: see ``Checkpointer``.
    package var checkpointsByItself = true
    package var extensions = SQLExtensions()
    /// The size of the page cache in KiB; `nil` for the engine's own.
    package var cacheSize: Int?

    /// The file is read and not changed: it may be anybody's.
    package static func inspecting(_ fileSize: Int64) -> Self {
        Self(.readOnly, .fileIsForeign(size: fileSize), .everywhere, isDefensive: true)
    }

    /// The file is brought to rest, and no one else may have it meanwhile.
    package static func settling(_ fileSize: Int64) -> Self {
        Self(.readWrite, .fileIsForeign(size: fileSize), .refused, isDefensive: true)
    }

    /// The file is the source of a copy.
    ///
    /// Not defensive: the copy's schema is written as rows, and tables that belong to modules are filled as any other.
    /// Not for reading only: SQLite leaves the CHECK constraints of such a file out of its picture of the schema, takes its
    /// tables for other than their copies, and copies row by row instead of record by record.
    package static func building(_ fileSize: Int64) -> Self {
        Self(.readWrite, .fileIsForeign(size: fileSize), .refused, isDefensive: false)
    }

    /// The copy and the original are compared.
    package static func proving(_ fileSize: Int64) -> Self {
        var profile = Self(.readOnly, .fileIsForeign(size: fileSize), .refused, isDefensive: true)
        profile.cacheSize = 2_000
        return profile
    }

    /// The schema of the file is planned or changed.
    package static var migrating: Self {
        var profile = Self(.readWrite, .schemaIsForeign, .everywhere, isDefensive: false)
        // What a migration asks of a table, copies and counts is then read and authenticated once for most.
        profile.cacheSize = 16_000
        // Others may have the file open.
        profile.checkpointsByItself = false
        return profile
    }

    /// An app reads and writes.
    ///
    /// Its statements, views and triggers may have strings in double quotes, and no new definition.
    package static var storing: Self {
        Self(.readWrite, .schemaIsForeign, .inStatements, isDefensive: true)
    }

    /// A database of this process's own, such as one that is tried on.
    package static var scratch: Self { Self(.create, .own, .everywhere, isDefensive: false) }

    /// A file is opened for what is no question of its content: its key, its journal, its journal mode.
    package static func plain(_ mode: Connection.Mode) -> Self { Self(mode, .own, .asBuilt, isDefensive: false) }

    private init(
        _ mode: Connection.Mode, _ trust: Trust, _ doubleQuotedStrings: DoubleQuotedStrings, isDefensive: Bool
    ) {
        self.mode = mode
        self.trust = trust
        self.doubleQuotedStrings = doubleQuotedStrings
        self.isDefensive = isDefensive
    }

    /// The same under a key, with an app's extensions.
    package func with(
        key: CipherKey? = nil, format: CipherSettings = CipherSettings(), extensions: SQLExtensions = SQLExtensions()
    ) -> Self {
        var profile = self
        profile.key = key.map { ($0, format) }
        profile.extensions = extensions
        return profile
    }

    /// Opens a file and sets the connection up.
    ///
    /// Whether the key fits is not known before something is read.
    ///
    /// - Parameters:
    ///   - layer: Leads to the file; `nil` for one that opens the path and follows no link in its place.
    ///   - leavesIndex, ignoresLog: As ``Connection`` takes them.
    package func open(
        _ path: String, busyTimeout: Duration = .seconds(5), leavesIndex: Bool = false, ignoresLog: Bool = false,
        through layer: FileLayer? = nil
    ) throws -> Connection {
        let connection = try Connection(
            path: path, mode: mode, busyTimeout: busyTimeout, leavesIndex: leavesIndex, ignoresLog: ignoresLog,
            through: layer ?? FileLayer(guarding: path))
        do {
            try apply(to: connection)
        } catch {
            connection.close()
            throw error
        }
        return connection
    }

    private var isOfForeignFile: Bool {
        if case .fileIsForeign = trust { true } else { false }
    }

    /// Sets a connection up.
    package func apply(to connection: Connection) throws {
        switch doubleQuotedStrings {
        case .asBuilt: break
        case .refused: connection.refuseDoubleQuotedStrings()
        case .inStatements: connection.allowDoubleQuotedStrings(inDefinitions: false)
        case .everywhere: connection.allowDoubleQuotedStrings()
        }
        switch trust {
        case .own: break
        case .schemaIsForeign: connection.distrustSchema()
        case .fileIsForeign(let size): connection.distrust(fileSize: size)
        }
        if isDefensive { connection.beDefensive() }
        if !checkpointsByItself { try connection.stopAutomaticCheckpoints() }
        if let key { try connection.setKey(key.key, settings: key.format) }
        try connection.register(isOfForeignFile ? extensions.callableBySchema : extensions)
        if let cacheSize { try connection.execute(SQL(text: "PRAGMA cache_size = -\(cacheSize)")) }
    }
}
