internal import CipherErrors
internal import CipherPageOpening
internal import CipherSQLite
internal import CipherSQLiteFormat
internal import CipherSystemFiles

/// An encrypted copy of a plaintext database that follows what others write to it.
///
/// It is built and proven over one commit. Each round then copies the rows that later commits have changed, as the log's
/// pages tell, and compares them. A read transaction lasts from each round to the next, so that the log cannot begin anew in
/// between.
///
/// A process that is killed leaves the copy, with a record of the last commit that it has; a later launch has it follow from
/// there, where the log still tells what has changed since.
// Not `Sendable`: one thread's at a time.
final class FollowingCopy: CopyMadeAhead {
    private let paths: DatabasePaths
    private let keys: UpgradeKeys
    private let options: ConversionOptions
    private let aside: ResumableCopy
    /// What the copy follows; `nil` before it was built, and once the database is at rest.
    private var original: Original?
    private var report: EncryptionReport
    /// The database as the copy was when it was brought to rest; `nil` before.
    private var stateAtRest: OriginalFile.State?
    /// Whether a round ended amidst its changes, or found a difference: the copy then equals no commit.
    private(set) var isBroken = false
    /// Whether nothing was written since all of the copy was compared with the database.
    private(set) var isProven = false

    /// The database, while others write it.
    private struct Original {
        let database: DatabaseFile
        let identity: FileIdentity
        /// In a transaction on the snapshot.
        let pin: Connection
        var snapshot: LiveSnapshot
        var schema: [SchemaEntry]
        /// `nil` before the tables were read.
        var map: TreeMap?
        /// The pages that were written before the snapshot and after what the copy has.
        var missed: Set<UInt32> = []
    }

    /// - Parameters:
    ///   - aside: The file that becomes the copy.
    ///   - keys: Those of the copy.
    ///   - options: Its format is the copy's.
    init(_ aside: ResumableCopy, of paths: DatabasePaths, _ keys: UpgradeKeys, _ options: ConversionOptions) {
        self.aside = aside
        self.paths = paths
        self.keys = keys
        self.options = options
        report = EncryptionReport(.encrypted, path: paths.database)
    }

    deinit { letGo() }

    // MARK: Building

    /// Builds the copy over one commit, and proves it.
    ///
    /// - Parameter holdingWriters: Keeps others from committing.
    func build(_ observer: UpgradeObserver, holdingWriters: @escaping () throws -> any WriterHold) throws {
        guard let status = try FileSystem.status(paths.database) else { throw StoreError.missingFile(paths.database) }
        try aside.note(nil)
        try present().empty()
        _ = try ProvenCopy(
            source: paths.database, sourceKey: nil, target: paths.database, targetSettings: options.format,
            options: options,
            holdingWriters: { [self] in
                let keeper = try keepLog(holdingWriters)
                defer { keeper.close() }
                let pin = try connectReading()
                let hold = try holdingWriters()
                do {
                    try requireLog(hold)
                    letGo()
                    original = try begin(pin, status.identity)
                    return hold
                } catch {
                    pin.close()
                    hold.end()
                    throw error
                }
            },
            whenBuilt: { [self] in try note() }
        ).make(present(), keys, owner: status, observer, &report)
        guard let original else { return }
        (isProven, isBroken) = (true, false)
        let map = try TreeMap(original.snapshot, tables(original)) { try observer.checkCancellation() }
        self.original?.map = map
    }

    /// Records that the copy equals the last snapshot.
    private func note() throws { try aside.note(CopyProgress(end: original?.snapshot.end)) }

    /// Goes on with a copy that an earlier launch left; the next round brings it up to date.
    ///
    /// Where the log no longer tells what has changed since, only the comparison of all of it shows whether it is.
    ///
    /// - Throws: ``SchemaChanged`` where the schema is another one by now; what reading the copy throws.
    func resume(
        _ progress: CopyProgress, _ observer: UpgradeObserver, holdingWriters: () throws -> any WriterHold
    ) throws {
        guard let status = try FileSystem.status(paths.database) else { throw StoreError.missingFile(paths.database) }
        let keeper = try keepLog(holdingWriters)
        defer { keeper.close() }
        let (pin, writer) = (try connectReading(), try connectWriting())
        defer { writer.close() }
        do {
            let hold = try holdingWriters()
            defer { hold.end() }
            try requireLog(hold)
            var begun = try begin(pin, status.identity)
            guard try hasSchemaOfOriginal(writer) else { throw SchemaChanged() }
            hold.end()
            begun.missed = try begun.snapshot.pagesWritten(since: progress.end) ?? []
            begun.map = try TreeMap(begun.snapshot, tables(begun), writtenSince: begun.missed) {
                try observer.checkCancellation()
            }
            original = begun
            report.bytesAfter = try present().size()
        } catch {
            pin.close()
            throw error
        }
    }

    private func hasSchemaOfOriginal(_ writer: Connection) throws -> Bool {
        let entries = ["original", "main"].map {
            SQL(text: "SELECT rowid, type, name, tbl_name, sql FROM \($0).sqlite_master")
        }
        return try [(entries[0], entries[1]), (entries[1], entries[0])].allSatisfy { one, other in
            try writer.value(Int.self, "SELECT count(*) FROM (\(one) EXCEPT \(other))") == 0
        }
    }

    private func requireLog(_ hold: any WriterHold) throws {
        guard !hold.isWriteAheadLog else { return }
        throw StoreError(
            .configuration, path: paths.database,
            "the database is not in WAL mode, so that nothing tells what changes while it is copied",
            advice: "leave `encryption.when` at beforeOpening here", changed: .nothing)
    }

    /// Has the log hold a commit that is not in the file, so that it cannot begin anew while a later transaction lasts, and
    /// tells the next launch what has changed since.
    ///
    /// The app's connection is asked for first: it puts the database into WAL mode.
    ///
    /// - Returns: In a transaction, which is to last until the later one has begun.
    private func keepLog(_ holdingWriters: () throws -> any WriterHold) throws -> Connection {
        let hold = try holdingWriters()
        defer { hold.end() }
        try requireLog(hold)
        hold.end()
        let keeper = try connectReading()
        do {
            try keeper.pinSnapshot()
            var profile = ConnectionProfile.settling(try Connection.size(paths.database)).with(
                extensions: options.extensions)
            profile.checkpointsByItself = false
            let writer = try profile.open(paths.database, busyTimeout: options.busyTimeout)
            defer { writer.close() }
            try writer.transaction(.immediate) {
                // A number of the header, written as it is: a commit of one page that changes nothing.
                let version = try writer.value(Int.self, "PRAGMA user_version") ?? 0
                try writer.execute(SQL(text: "PRAGMA user_version = \(String(version))"))
            }
            return keeper
        } catch {
            keeper.close()
            throw error
        }
    }

    private func begin(_ pin: Connection, _ identity: FileIdentity) throws -> Original {
        try pin.pinSnapshot()
        let database = try DatabaseFile(path: paths.database)
        try requireSame(identity)
        let snapshot = try LiveSnapshot(after: nil, pin, database, paths)
        return Original(
            database: database, identity: identity, pin: pin, snapshot: snapshot, schema: try Self.schema(snapshot))
    }

    /// A path is opened again in each round, and may lead to another file by then.
    ///
    /// - Throws: ``StoreError`` with `replaced`: who reads and writes the former file does not come to the other one.
    private func requireSame(_ identity: FileIdentity) throws {
        guard try FileSystem.status(paths.database)?.identity != identity else { return }
        throw StoreError(
            .replaced, path: paths.database, "another file took the database's place while it was being copied",
            advice: "close the store and open it again", changed: .nothing)
    }

    private static func schema(_ snapshot: LiveSnapshot) throws -> [SchemaEntry] {
        try SchemaEntry.all(in: snapshot.pages) { throw $0 }
    }

    private func tables(_ original: Original) throws -> [TreeMap.Table] {
        let pages = original.snapshot.pages
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: pages.geometry.pageSize, alignment: 16)
        defer { memory.deallocate() }
        var tables: [TreeMap.Table] = []
        try original.pin.forEachRow(
            "SELECT name, rootpage FROM sqlite_master WHERE type = 'table' AND rootpage > 0 ORDER BY rowid"
        ) { row in
            let root = UInt32(clamping: try row.get(Int64.self, at: 1))
            guard let bytes = try pages.lend(root, memory) else { throw DamagedPage(root, .missing) }
            let isTable = try TreePage(bytes, number: root, pages.geometry).kind.isTable
            tables.append(TreeMap.Table(name: try row.get(at: 0), root: root, isKeyed: !isTable))
        }
        return tables
    }

    // MARK: Following

    /// What a round did.
    struct Round {
        /// How many pages had been written since the one before.
        let pages: Int
    }

    /// The schema of the database was changed, or its pages were moved: the copy must be built anew.
    struct SchemaChanged: Error {}

    /// More was written since the last round than may be copied now; the copy is as it was.
    struct TooMuchLeft: Error {}

    /// Copies what was committed since the last round, and compares it.
    ///
    /// - Parameters:
    ///   - proving: Whether all of the copy is compared with all of the database afterwards.
    ///   - most: How many pages may have been written since the last round.
    ///   - isResumable: Whether it is recorded that the copy has what was committed.
    ///   - holdingWriters: Keeps others from committing for a moment.
    ///   - whileHeld: Runs at that moment.
    /// - Throws: ``SchemaChanged``; ``TooMuchLeft``; ``StoreError``, with `proofFailed` where the copy differs.
    func follow(
        proving: Bool, atMost most: Int = .max, isResumable: Bool = true, _ observer: UpgradeObserver,
        holdingWriters: () throws -> any WriterHold, whileHeld: () throws -> Void = {}
    ) throws -> Round {
        guard let former = original else { throw SchemaChanged() }
        let pin = try connectReading()
        do {
            let writer = try connectWriting()
            defer { writer.close() }
            writer.setProgressHandler(every: 20_000) { !observer.isCancelled }
            var reading = ProofConnection(
                path: paths.database, key: nil, settings: options.format, extensions: options.extensions,
                busyTimeout: options.busyTimeout)
            let comparing = try reading.open { observer.isCancelled }
            defer { comparing.close() }
            let hold = try holdingWriters()
            defer { hold.end() }
            try pin.pinSnapshot()
            try comparing.pinSnapshot()
            try writer.execute("BEGIN")
            _ = try writer.value(Int.self, "SELECT count(*) FROM original.sqlite_master")
            if proving { reading = try reading.pinning() }
            defer { reading.end() }
            try requireSame(former.identity)
            // A value that was committed since they were opened may be longer than the file was, and than the copy is.
            let size = try Connection.size(paths.database)
            for connection in [writer, comparing] { connection.distrust(fileSize: size) }
            let snapshot = try Self.damageIsChange {
                try LiveSnapshot(after: former.snapshot, pin, former.database, paths)
            }
            let written = former.missed.union(snapshot.changed ?? [])
            guard written.count <= most else { throw TooMuchLeft() }
            try whileHeld()
            hold.end()
            let map = try apply(written, of: snapshot, former, writer, comparing, observer)
            original = Original(
                database: former.database, identity: former.identity, pin: pin, snapshot: snapshot,
                schema: former.schema, map: map)
            former.pin.close()
            if proving { try proveAll(reading, observer) }
            self.isProven = proving || isProven && written.isEmpty
            isBroken = false
            if isResumable { try note() }
            return Round(pages: written.count)
        } catch {
            if original?.pin !== pin { pin.close() }
            throw error
        }
    }

    /// Copies and compares the rows of the pages that were written.
    ///
    /// - Returns: The map as it is now.
    private func apply(
        _ written: Set<UInt32>, of snapshot: LiveSnapshot, _ former: Original, _ writer: Connection,
        _ comparing: Connection, _ observer: UpgradeObserver
    ) throws -> TreeMap {
        isBroken = true
        guard var map = former.map else { throw SchemaChanged() }
        // First: where the trees have moved, the map does not lead to them.
        if map.holdsSchema(written) {
            let isSame = try Self.damageIsChange { try Self.schema(snapshot) == former.schema }
            guard isSame, try hasLayoutOfCopy(writer) else { throw SchemaChanged() }
        }
        let changes = Self.inOrder(try Self.damageIsChange { try map.follow(snapshot, written) }, map)
        if !written.isEmpty { try aside.note(nil) }
        do {
            report.rows += try RangeCopy(connection: writer).copy(changes)
        } catch {
            // It interrupts the statement.
            try observer.checkCancellation()
            throw error
        }
        try copyHeader(writer)
        try writer.execute("COMMIT")
        writer.close()
        let copied = try proofOfCopy(try keys.proving.wait()).open { observer.isCancelled }
        defer { copied.close() }
        try RangeProof(pair: ConnectionPair(original: comparing, copy: copied)).run(
            changes, checkCancellation: observer.checkCancellation)
        try compareHeaders(comparing, copied)
        return map
    }

    /// What does not fit the map is another database by now; what is damaged the next build tells.
    private static func damageIsChange<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch is DamagedPage {
            throw SchemaChanged()
        }
    }

    /// SQLite writes its own count of rowids by itself while other tables are filled: it is compared whenever another table
    /// has changed, and last.
    private static func inOrder(_ changes: [TreeMap.Change], _ map: TreeMap) -> [TreeMap.Change] {
        guard !changes.isEmpty, let counts = map.tables.first(where: { $0.name == "sqlite_sequence" }) else {
            return changes
        }
        return changes.filter { $0.table != counts } + [TreeMap.Change(table: counts, ranges: [TreeMap.RowIDs()])]
    }

    private static let headerFields = ["user_version", "application_id", "schema_version"]

    private func copyHeader(_ writer: Connection) throws {
        for name in Self.headerFields {
            let wanted = try writer.value(Int.self, SQL(text: "PRAGMA original.\(name)")) ?? 0
            guard try writer.value(Int.self, SQL(text: "PRAGMA main.\(name)")) != wanted else { continue }
            try writer.execute(SQL(text: "PRAGMA main.\(name) = \(String(wanted))"))
        }
    }

    /// What only a copy that is built anew takes on.
    private static let layoutFields = ["auto_vacuum", "default_cache_size"]

    private func hasLayoutOfCopy(_ writer: Connection) throws -> Bool {
        try Self.layoutFields.allSatisfy { name in
            try writer.value(Int.self, SQL(text: "PRAGMA original.\(name)"))
                == writer.value(Int.self, SQL(text: "PRAGMA main.\(name)"))
        }
    }

    private func compareHeaders(_ original: Connection, _ copy: Connection) throws {
        for name in Self.headerFields + Self.layoutFields {
            let pragma = SQL(text: "PRAGMA \(name)")
            guard try original.value(Int.self, pragma) == copy.value(Int.self, pragma) else {
                throw StoreError.proof(paths.database, "\(name) differs")
            }
        }
    }

    private func proofOfCopy(_ key: CipherKey) throws -> ProofConnection {
        ProofConnection(
            path: paths.database, key: key, settings: options.format, extensions: options.extensions,
            copy: try present())
    }

    private func proveAll(_ reading: ProofConnection, _ observer: UpgradeObserver) throws {
        try present().sync()
        let proof = CopyProof(
            original: reading, copy: try proofOfCopy(keys.again),
            copyWithDerivedKey: try proofOfCopy(keys.proving.wait()),
            hasRebuiltIndexes: !report.rebuiltIndexes.isEmpty, reader: options.proof, observer: observer)
        let proven = try proof.run()
        report.tables = proven.tables
        report.rows = proven.rows
    }

    private func connectReading() throws -> Connection {
        var profile = ConnectionProfile.inspecting(try Connection.size(paths.database)).with(
            extensions: options.extensions)
        profile.checkpointsByItself = false
        return try profile.open(paths.database, busyTimeout: options.busyTimeout)
    }

    private func connectWriting() throws -> Connection {
        let file = try present()
        var profile = ConnectionProfile.building(try file.size()).with(try keys.building.wait(), options.extensions)
        profile.checkpointsByItself = false
        let connection = try profile.open(file.path, busyTimeout: options.busyTimeout, through: file.layer())
        do {
            try connection.attachPlaintext(paths.database, as: "original")
            for pragma in [
                "main.journal_mode = OFF", "main.synchronous = OFF", "main.secure_delete = ON", "foreign_keys = OFF",
                "recursive_triggers = OFF", "ignore_check_constraints = ON",
            ] {
                try connection.execute(SQL(text: "PRAGMA \(pragma)"))
            }
        } catch {
            connection.close()
            throw error
        }
        return connection
    }

    // MARK: At rest

    /// Copies what was committed last, and leaves WAL mode, so that the file alone is the database.
    ///
    /// No other connection of this process is open to it. A connection has the database open from before the last round until
    /// it has it locked: nobody's last close can remove the log in between, and it tells whether anybody has committed.
    ///
    /// - Parameters:
    ///   - timeout: How long to wait for each lock: the app's calls wait meanwhile.
    ///   - most: How many pages may have been written since the last round.
    /// - Throws: ``SchemaChanged``; ``TooMuchLeft``; ``StoreError`` with `busy` where another process has the file open or wrote it.
    func settle(waiting timeout: Duration, atMost most: Int, _ observer: UpgradeObserver) throws {
        var profile = try ConnectionProfile.settling(Connection.size(paths.database)).with(
            extensions: options.extensions)
        profile.checkpointsByItself = false
        let leaving = try profile.open(paths.database, busyTimeout: timeout)
        defer { leaving.close() }
        try leaving.proveReadable()
        var version: Int?
        _ = try follow(proving: false, atMost: most, isResumable: false, observer) {
            try LockedWriter(paths.database, nil, extensions: options.extensions, busyTimeout: timeout)
        } whileHeld: {
            version = try leaving.value(Int.self, "PRAGMA data_version")
        }
        try sync()
        letGo()
        try leaving.execute("PRAGMA locking_mode = EXCLUSIVE")
        // Takes the lock of the file that no other connection shares, and keeps it.
        let isUnchanged = try leaving.transaction(.immediate) {
            try leaving.value(Int.self, "PRAGMA data_version") == version
        }
        guard isUnchanged else {
            throw StoreError.busy(
                paths.database, "another program wrote the database at the last moment", retry: .now)
        }
        guard try leaving.value(String.self, "PRAGMA journal_mode = DELETE") == "delete",
            let status = try FileSystem.status(paths.database)
        else {
            throw StoreError.busy(
                paths.database, "another connection, of this process or another, uses the database",
                retry: .afterClosing)
        }
        let file = try DatabaseFile(path: paths.database)
        defer { file.close() }
        stateAtRest = try OriginalFile(paths.database, status).state(
            start: file.read(at: 0, count: OriginalFile.State.length))
    }

    func finish(from database: DatabaseFile, _ observer: UpgradeObserver) throws -> FinishedCopy? {
        guard let stateAtRest, let status = try FileSystem.status(paths.database),
            try OriginalFile(paths.database, status).state(
                start: database.read(at: 0, count: OriginalFile.State.length))
                == stateAtRest
        else {
            throw StoreError.busy(
                paths.database, "another program wrote the database at the last moment", retry: .now)
        }
        return FinishedCopy(
            key: try keys.building.wait(), tables: report.tables, rows: report.rows,
            rebuiltIndexes: report.rebuiltIndexes, warnings: report.warnings)
    }

    /// Makes the copy durable.
    func sync() throws { try present().sync() }

    var record: AttemptRecord? { aside.record }

    func takeFile() throws -> NewFile { try aside.takeFile() }

    private func present() throws -> NewFile { try aside.present() }

    /// Removes the copy, unless it has taken the database's place.
    func discard() {
        letGo()
        aside.discard()
    }

    /// Ends the transaction on the last round's commit.
    private func letGo() {
        original?.pin.close()
        original?.database.close()
        original = nil
    }
}
