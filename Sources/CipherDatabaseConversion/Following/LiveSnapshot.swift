internal import CipherErrors
internal import CipherSQLite
internal import CipherSQLiteFormat
internal import CipherSystemFiles

/// The pages of one commit of a plaintext database in WAL mode, while other connections write to it.
///
/// The snapshot is valid as long as a read transaction that sees this commit lasts: no checkpoint writes a later page
/// into the file, and the log restarts only if all of it is in the file, to which no checkpoint then writes either.
///
/// Source: SQLite, "WAL-mode File Format", sections 2.3.1 and 4.
struct LiveSnapshot {
    let pages: SnapshotPages
    /// The end of the commit's transaction in the log; `nil` if the file alone contains the commit.
    let end: LogHeader.TransactionEnd?
    /// The pages that were written since the previous snapshot; `nil` for the first one.
    let changed: Set<UInt32>?

    /// Reads the content of the log.
    ///
    /// No connection may commit meanwhile.
    ///
    /// - Parameters:
    ///   - earlier: The previous snapshot. Its transaction still lasts, so each commit since then is in the log.
    ///   - pin: A connection in a transaction on this commit.
    ///   - database: The file, which stays open as long as the snapshot exists.
    /// - Throws: ``StoreError`` with the code `corrupt` if the file has no header; ``DamagedPage`` if the log does not
    ///   contain what SQLite reports.
    init(
        after earlier: LiveSnapshot?, _ pin: Connection, _ database: DatabaseFile, _ paths: DatabasePaths
    ) throws {
        let log = try SidecarFile(paths.wal)
        let header = try log.flatMap { try LogHeader($0) }
        var offsets: [UInt32: Int64] = [:]
        var (end, changed): (LogHeader.TransactionEnd?, Set<UInt32>) = (nil, [])
        if let state = try pin.logState(), state.frameCount > 0 {
            guard let log, let header, header.salt == state.salt,
                let last = try header.end(at: state.frameCount, pageCount: state.pageCount, in: log)
            else { throw DamagedPage(1, .missing) }
            let known = earlier?.end.flatMap { $0.isIn(header) ? $0 : nil }
            if known != nil { offsets = earlier?.pages.offsets ?? [:] }
            let first = (known?.frame ?? 0) + 1
            guard first <= state.frameCount + 1,
                let written = try header.pages(of: first..<state.frameCount + 1, in: log)
            else { throw DamagedPage(1, .missing) }
            offsets.merge(written) { $1 }
            changed = Set(written.keys)
            end = last
        }
        let file = try FileHeader(database)
        guard let geometry = file.geometry else {
            throw StoreError.damaged(paths.database, "the file has no valid database header")
        }
        let whole = try Int(database.size() / Int64(geometry.pageSize))
        pages = SnapshotPages(
            geometry: geometry, pageCount: end?.pageCount ?? UInt32(clamping: min(whole, file.claimedPages ?? whole)),
            database: database, log: log, salt: header?.salt ?? [], offsets: offsets)
        self.end = end
        self.changed = earlier == nil ? nil : changed
    }

    /// Returns the pages that were written since a transaction of an earlier launch; `nil` if the log no longer
    /// contains them.
    ///
    /// - Parameter earlier: The end of that transaction.
    func pagesWritten(since earlier: LogHeader.TransactionEnd?) throws -> Set<UInt32>? {
        guard let earlier, let end, let log = pages.log, let header = try LogHeader(log),
            try header.holds(earlier, frameCount: end.frame, in: log)
        else { return nil }
        return try header.pages(of: earlier.frame + 1..<end.frame + 1, in: log).map { Set($0.keys) }
    }
}

/// The pages of a database file and of its log, each as of one commit.
struct SnapshotPages: PageSource {
    let geometry: PageGeometry
    let pageCount: UInt32
    fileprivate let database: DatabaseFile
    fileprivate let log: SidecarFile?
    /// The salt in the log's header.
    fileprivate let salt: [UInt8]
    /// The offset in the log of the newest version of each page.
    let offsets: [UInt32: Int64]

    func lend(_ page: UInt32, _ scratch: UnsafeMutableRawBufferPointer) throws -> UnsafeRawBufferPointer? {
        guard page >= 1, page <= pageCount else { return nil }
        if let log, let offset = offsets[page],
            let bytes = try log.lend(at: offset, count: geometry.pageSize, scratch),
            // When a log restarts, its new header is written first. The old content of the log was copied into the file
            // before that.
            try log.read(at: 16, count: 8) == salt
        {
            return bytes
        }
        let buffer = UnsafeMutableRawBufferPointer(rebasing: scratch[..<geometry.pageSize])
        return try database.fill(buffer, at: Int64(page - 1) * Int64(geometry.pageSize))
            ? UnsafeRawBufferPointer(buffer) : nil
    }
}
