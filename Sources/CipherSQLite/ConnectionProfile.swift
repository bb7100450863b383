/// The settings in which the ways of opening a database differ.
///
/// Each way is a named profile below, so that one table shows what a connection may do and what it trusts.
package struct ConnectionProfile {
    /// The degree to which a file is trusted, which limits what it can make its reader do.
    package enum Trust {
        /// The schema is this process's own.
        case own
        /// Functions in the schema may run only if they are innocuous.
        case schemaIsForeign
        /// The same as ``schemaIsForeign``, and no value may be longer than a file of this size can store; the size is
        /// in bytes and includes the log.
        case fileIsForeign(size: Int64)
    }

    /// The places in which a string may be in double quotes, as in old SQL.
    package enum DoubleQuotedStrings {
        /// The places that are the engine's compile-time default.
        case asBuilt
        /// Only in the schema that the file already has.
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
    /// Whether a commit may checkpoint, which is not safe if other connections write: see ``Checkpointer``.
    package var checkpointsByItself = true
    package var extensions = SQLExtensions()
    /// Whether the functions are bounded although the file is trusted in other respects.
    private var runsForeignExpressions = false
    /// The size of the page cache in KiB; `nil` for the engine's default.
    package var cacheSize: Int?
    /// Whether sorters and temporary tables may leave the memory, for encrypted files without a name.
    ///
    /// With this setting, SQLite also keeps the journals of statements and savepoints in files, and SQLCipher cannot
    /// always read page 1 of an encrypted database from such a journal. Connections with a journal therefore use
    /// ``Connection/sortingInFiles(_:)`` instead.
    package var sortsInFiles = false

    /// The profile for a file that is read and not changed; the file may come from an untrusted source.
    package static func inspecting(_ fileSize: Int64) -> Self {
        Self(.readOnly, .fileIsForeign(size: fileSize), .everywhere, isDefensive: true)
    }

    /// The profile for recovering a file's log or journal, while no other connection may have the file open.
    package static func settling(_ fileSize: Int64) -> Self {
        Self(.readWrite, .fileIsForeign(size: fileSize), .refused, isDefensive: true)
    }

    /// The profile for a file that other connections are writing to.
    ///
    /// It can write even if its connection only reads, because that connection may be the last one to be closed. SQLite
    /// then merges the log into the file. After a read-only connection, a later recovery would stop at the first frame
    /// that was committed without a checksum.
    package static func following(_ fileSize: Int64) -> Self {
        // Values that are committed meanwhile may be longer than the file is now.
        var profile = settling(max(fileSize, 2 << 20) * 8)
        profile.checkpointsByItself = false
        return profile
    }

    /// The profile for a file that is the source of a copy.
    ///
    /// It is not defensive, because the copy's schema is written as rows, and tables that belong to modules are filled
    /// like any other. It is not read-only, because SQLite would then leave the CHECK constraints out of its
    /// representation of the schema, treat the file's tables as different from their copies, and copy row by row
    /// instead of record by record.
    package static func building(_ fileSize: Int64) -> Self {
        // The plain definition that a table of 2,000 columns has meanwhile is longer than a small file.
        var profile = Self(.readWrite, .fileIsForeign(size: fileSize + (128 << 10)), .refused, isDefensive: false)
        // The copy has no journal.
        profile.sortsInFiles = true
        // A file's header may ask for a cache of any size, and a sorter may become as large as the cache.
        profile.cacheSize = 2_000
        return profile
    }

    /// The profile for filling a new database with the rows and the schema of a damaged file.
    package static func recovering(_ fileSize: Int64) -> Self {
        Self(.create, .fileIsForeign(size: fileSize), .everywhere, isDefensive: false)
    }

    /// The profile for comparing the copy with the original.
    package static func proving(_ fileSize: Int64) -> Self {
        var profile = Self(.readOnly, .fileIsForeign(size: fileSize), .refused, isDefensive: true)
        profile.cacheSize = 2_000
        return profile
    }

    /// The profile for planning or changing the schema of a file.
    package static var migrating: Self {
        var profile = Self(.readWrite, .schemaIsForeign, .everywhere, isDefensive: false)
        // With this cache, most pages that a migration queries, copies and counts are read and authenticated only once.
        profile.cacheSize = 16_000
        // Other connections may have the file open.
        profile.checkpointsByItself = false
        profile.runsForeignExpressions = true
        return profile
    }

    /// The profile for an app that reads and writes.
    ///
    /// The app's statements, views and triggers may contain strings in double quotes, but new definitions may not.
    package static var storing: Self {
        Self(.readWrite, .schemaIsForeign, .inStatements, isDefensive: true)
    }

    /// The profile for checking an app's database, whose constraints and indexes may still be those of a legacy file
    /// from elsewhere.
    package static var checking: Self {
        var profile = storing
        profile.runsForeignExpressions = true
        return profile
    }

    /// The profile for a database of this process's own, such as a scratch database.
    package static var scratch: Self { Self(.create, .own, .everywhere, isDefensive: false) }

    /// The profile for opening a file to access something other than its rows: its key, its journal, its journal mode.
    package static func plain(_ mode: Connection.Mode) -> Self { Self(mode, .own, .asBuilt, isDefensive: false) }

    private init(
        _ mode: Connection.Mode, _ trust: Trust, _ doubleQuotedStrings: DoubleQuotedStrings, isDefensive: Bool
    ) {
        self.mode = mode
        self.trust = trust
        self.doubleQuotedStrings = doubleQuotedStrings
        self.isDefensive = isDefensive
    }

    /// Returns the same profile with a key and an app's extensions.
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
    /// Whether the key fits is known only after the first read.
    ///
    /// - Parameters:
    ///   - layer: The file layer for the file; `nil` for a layer that opens the path without following a symbolic link
    ///     at its end.
    ///   - leavesIndex, ignoresLog: As in ``Connection``'s initializer.
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

    /// Whether the schema may not call functions that take unlimited time or memory.
    private var boundsFunctions: Bool { isOfForeignFile || runsForeignExpressions }

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
        if boundsFunctions { try connection.boundFunctions() }
        if !checkpointsByItself { try connection.stopAutomaticCheckpoints() }
        if mode != .readOnly {
            // Only Apple's systems have a sync that empties the disk's own cache; elsewhere this does nothing.
            try connection.execute("PRAGMA fullfsync = ON")
            try connection.execute("PRAGMA checkpoint_fullfsync = ON")
        }
        if let key { try connection.setKey(key.key, settings: key.format) }
        try connection.register(isOfForeignFile ? extensions.callableBySchema : extensions)
        if let cacheSize { try connection.execute(SQL(text: "PRAGMA cache_size = -\(cacheSize)")) }
        if sortsInFiles { try connection.execute("PRAGMA temp_store = FILE") }
    }
}
