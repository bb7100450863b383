internal import CipherErrors
internal import CipherPageOpening
internal import CipherSQLite
internal import CipherSQLiteFormat
internal import CipherSystemFiles

/// An encrypted copy of a plaintext database that follows the changes that other connections make to the database.
///
/// The copy is built and proven from one commit. Each round then copies the rows that later commits have changed, which
/// it finds from the pages in the log, and compares them. A read transaction lasts from each round to the next, so that
/// the log cannot restart in between.
///
/// A process that is killed leaves the copy with a record of the last commit that it contains. A later launch continues
/// from that commit, if the log still contains everything that has changed since.
// Not `Sendable`: used by one thread at a time.
final class FollowingCopy: CopyMadeAhead {
    let paths: DatabasePaths
    let keys: UpgradeKeys
    let options: ConversionOptions
    private let aside: ResumableCopy
    /// The database that the copy follows; `nil` before the copy is built, and once the database is at rest.
    private var original: Original?
    var report: EncryptionReport
    /// The state of the database when it was brought to rest; `nil` before that.
    var stateAtRest: OriginalFile.State?
    /// Whether a round ended in the middle of its changes, or found a difference.
    ///
    /// The copy then matches no commit.
    private(set) var isBroken = false
    /// Whether nothing has been written since the whole copy was compared with the database.
    private(set) var isProven = false
    /// The result of the latest such comparison; `nil` before there was one.
    ///
    /// Every row that was written since then was compared, too.
    private(set) var proven: CopyProof.Outcome?

    /// Whether a transaction on the last round's commit has the database open.
    var isFollowing: Bool { original != nil }

    private(set) var losses = PossibleLosses()

    /// The damage to the original's indexes, if any was found; the copy's indexes are then filled from its rows.
    private var rebuilt: RebuiltIndexes?

    /// The state of the database while other connections write to it.
    private struct Original {
        let database: DatabaseFile
        let identity: FileIdentity
        /// A connection in a transaction on the snapshot.
        let pin: Connection
        var snapshot: LiveSnapshot
        var schema: [SchemaEntry]
        /// The map of the tables' pages; `nil` before the tables have been read.
        var map: TreeMap?
        /// The pages that were written after the copy's last commit and before the snapshot.
        var missed: Set<UInt32> = []
    }

    /// - Parameters:
    ///   - aside: The file that will become the copy.
    ///   - keys: The keys of the copy.
    ///   - options: The options of the run. Their format is that of the copy.
    init(_ aside: ResumableCopy, of paths: DatabasePaths, _ keys: UpgradeKeys, _ options: ConversionOptions) {
        self.aside = aside
        self.paths = paths
        self.keys = keys
        self.options = options
        report = EncryptionReport(.encrypted, path: paths.database)
    }

    deinit { letGo() }

    // MARK: Building

    /// Builds the copy from one commit; a later round proves it.
    ///
    /// - Parameter holdingWriters: Prevents other connections from committing.
    func build(_ observer: UpgradeObserver, holdingWriters: @escaping () throws -> any WriterHold) throws {
        guard let status = try FileSystem.status(paths.database) else { throw StoreError.missingFile(paths.database) }
        try aside.note(nil)
        try present().empty()
        let unread = try ProvenCopy(
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
        ).makeUnproven(present(), keys, owner: status, rebuildsIndexes: rebuilt != nil, observer)
        if let unread { rebuilt = unread }
        guard let original else { return }
        (isProven, isBroken, proven) = (false, false, nil)
        let map = try TreeMap(original.snapshot, tables(original)) { try observer.checkCancellation() }
        self.original?.map = map
    }

    /// Has the next build fill the indexes from the rows.
    func rebuildIndexes(because found: CopyProof.DamagedIndexes) { rebuilt = RebuiltIndexes(found) }

    /// Records that the copy equals the last snapshot.
    private func note() throws { try aside.note(CopyProgress(end: original?.snapshot.end)) }

    /// Continues with a copy left by an earlier launch.
    ///
    /// The next round brings it up to date.
    ///
    /// If the log no longer contains the changes since the copy's last commit, only a full comparison shows whether the
    /// copy is up to date.
    ///
    /// - Throws: ``SchemaChanged`` if the schema has changed meanwhile; any error from reading the copy.
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
            "the database is not in WAL mode, so changes made while it is being copied cannot be detected",
            advice: "set `encryption.when` to `beforeOpening` for this database", changed: .nothing)
    }

    /// Adds a commit that is in the log but not in the file.
    ///
    /// The log then cannot restart while a later transaction lasts, and the next launch can read from the log what has
    /// changed since that commit.
    ///
    /// The app's connection is requested first, because it puts the database into WAL mode.
    ///
    /// - Returns: A connection in a transaction, which must last until the later transaction has begun.
    private func keepLog(_ holdingWriters: () throws -> any WriterHold) throws -> Connection {
        let hold = try holdingWriters()
        defer { hold.end() }
        try requireLog(hold)
        let keeper = try connectReading()
        do {
            try keeper.pinSnapshot()
            try hold.endWithCommit()
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

    /// Checks that the path still leads to the same file.
    ///
    /// The file is opened again in each round.
    ///
    /// - Throws: ``StoreError`` with the code `replaced`, because the store reads and writes the former file.
    private func requireSame(_ identity: FileIdentity) throws {
        guard try FileSystem.status(paths.database)?.identity != identity else { return }
        throw StoreError(
            .replaced, path: paths.database, "another file replaced the database while it was being copied",
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

    /// The result of a round.
    struct Round {
        /// The number of pages that were written since the previous round.
        let pages: Int
    }

    /// The schema of the database has changed, or its pages have moved, so the copy must be rebuilt.
    struct SchemaChanged: Error {}

    /// More was written since the last round than may be copied now; the copy is unchanged.
    struct TooMuchLeft: Error {}

    /// Copies what was committed since the last round, and compares it.
    ///
    /// - Parameters:
    ///   - proving: Whether to compare the whole copy with the whole database afterwards.
    ///   - most: The maximum number of pages that may have been written since the last round.
    ///   - isResumable: Whether to record that the copy contains these commits.
    ///   - holdingWriters: Briefly prevents other connections from committing.
    ///   - whileHeld: Runs while other connections are prevented from committing.
    /// - Throws: ``SchemaChanged``; ``TooMuchLeft``; ``StoreError``, with the code `proofFailed` if the copy differs.
    func follow(
        proving: Bool, atMost most: Int = .max, isResumable: Bool = true, _ observer: UpgradeObserver,
        holdingWriters: () throws -> any WriterHold, whileHeld: () throws -> Void = {}
    ) throws -> Round {
        guard let former = original else { throw SchemaChanged() }
        try requireSame(former.identity)
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
            // A value that was committed since the connections were opened may be longer than the file was then.
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
            // A launch that ends during the long comparison leaves a copy with which the next one continues.
            if isResumable { try note() }
            if proving { try proveAll(reading, observer) }
            self.isProven = proving || isProven && written.isEmpty
            isBroken = false
            return Round(pages: written.count)
        } catch {
            if original?.pin !== pin { pin.close() }
            throw error
        }
    }

    /// Copies and compares the rows of the pages that were written.
    ///
    /// - Returns: The current map.
    private func apply(
        _ written: Set<UInt32>, of snapshot: LiveSnapshot, _ former: Original, _ writer: Connection,
        _ comparing: Connection, _ observer: UpgradeObserver
    ) throws -> TreeMap {
        isBroken = true
        guard var map = former.map else { throw SchemaChanged() }
        // The schema is checked first: if the trees have moved, the map is invalid.
        if map.holdsSchema(written) {
            let isSame = try Self.damageIsChange { try Self.schema(snapshot) == former.schema }
            guard isSame, try CopiedHeader.hasLayout(writer) else { throw SchemaChanged() }
        }
        let changes = Self.inOrder(try Self.damageIsChange { try map.follow(snapshot, written) }, map)
        if !written.isEmpty { try aside.note(nil) }
        do {
            report.rows += try RangeCopy(connection: writer).copy(changes)
        } catch {
            // A cancellation interrupts the statement.
            try observer.checkCancellation()
            throw error
        }
        try CopiedHeader.copy(writer)
        try writer.execute("COMMIT")
        writer.close()
        let copied = try proofOfCopy(try keys.proving.wait()).open { observer.isCancelled }
        defer { copied.close() }
        try RangeProof(pair: ConnectionPair(original: comparing, copy: copied)).run(
            changes, checkCancellation: observer.checkCancellation)
        try CopiedHeader.compare(comparing, copied, of: paths.database)
        return map
    }

    /// Treats pages that do not fit the map as a change.
    ///
    /// If the database is damaged, the next build reports that.
    private static func damageIsChange<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch is DamagedPage {
            throw SchemaChanged()
        }
    }

    /// Puts the table `sqlite_sequence` last, and adds it whenever another table has changed, because SQLite itself
    /// updates it while other tables are filled.
    private static func inOrder(_ changes: [TreeMap.Change], _ map: TreeMap) -> [TreeMap.Change] {
        guard !changes.isEmpty, let counts = map.tables.first(where: { $0.name == "sqlite_sequence" }) else {
            return changes
        }
        return changes.filter { $0.table != counts } + [TreeMap.Change(table: counts, ranges: [TreeMap.RowIDs()])]
    }

    private func proofOfCopy(_ key: CipherKey) throws -> ProofConnection {
        ProofConnection(
            path: paths.database, key: key, settings: options.format, extensions: options.extensions,
            copy: try present())
    }

    private func proveAll(_ reading: ProofConnection, _ observer: UpgradeObserver) throws {
        try sync()
        var proof = CopyProof(
            original: reading, copy: try proofOfCopy(keys.again),
            copyWithDerivedKey: try proofOfCopy(keys.proving.wait()), hasRebuiltIndexes: rebuilt != nil,
            reader: options.proof, observer: observer)
        proof.checksOriginal = options.onDamage == .refuse
        let proven: CopyProof.Outcome
        do {
            proven = try proof.run()
        } catch let damage as CopyProof.DamagedIndexes where options.onDamage == .refuse {
            throw ProvenCopy.refusal(
                of: paths.database, damage.complaints, in: damage.indexes,
                losses: try possibleLosses(reading, onlyPartial: false, observer))
        }
        losses = try possibleLosses(
            reading, onlyPartial: rebuilt == nil && proven.healedIndexes.isEmpty, observer)
        if options.onDamage == .refuse { try proven.refuseDamage(of: paths.database, losses: losses) }
        // The store has the file open, so it cannot be recovered now.
        if let reason = losses.reasonForRecovery(options.onDamage) { throw StoreError.damaged(paths.database, reason) }
        report.warnings = []
        report.add(proven, losses, rebuilt)
        report.bytesAfter = try present().size()
        self.proven = proven
    }

    /// Searches the last round's commit for rows that the copy lacks.
    private func possibleLosses(
        _ reading: ProofConnection, onlyPartial: Bool, _ observer: UpgradeObserver
    ) throws -> PossibleLosses {
        let connection = try reading.open { observer.isCancelled }
        defer { connection.close() }
        return try PossibleLosses.find(in: connection, of: paths.database, onlyPartial: onlyPartial) {
            original?.snapshot.pages
        }
    }

    private func connectReading() throws -> Connection {
        try ConnectionProfile.following(Connection.size(paths.database)).with(extensions: options.extensions)
            .open(paths.database, busyTimeout: options.busyTimeout)
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

    // MARK: The file

    /// Makes the copy durable.
    ///
    /// A failed sync is final: the system may have discarded the pages that it could not write, and report success the
    /// next time. A later launch must not continue with the copy.
    func sync() throws {
        do {
            try present().sync()
        } catch {
            try? aside.note(nil)
            throw error
        }
    }

    var record: AttemptRecord? { aside.record }

    func takeFile() throws -> NewFile { try aside.takeFile() }

    private func present() throws -> NewFile { try aside.present() }

    /// Removes the copy, unless it has replaced the database.
    func discard() {
        letGo()
        aside.discard()
    }

    /// Ends the transaction on the last round's commit.
    func letGo() {
        original?.pin.close()
        original?.database.close()
        original = nil
    }
}
