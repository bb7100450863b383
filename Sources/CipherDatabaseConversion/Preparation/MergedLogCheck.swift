internal import CipherErrors
internal import CipherSQLite
internal import CipherSQLiteFormat

/// Checks a database together with its log, before a checkpoint merges them.
///
/// If a log belongs to another copy and ``LogMatch`` cannot detect that, the merged trees usually contradict each
/// other. If the file alone has no such contradiction, the log is refused.
struct MergedLogCheck {
    let paths: DatabasePaths
    /// The key of the file; `nil` for a plaintext file.
    let key: FileKey?
    let extensions: SQLExtensions
    let busyTimeout: Duration

    /// Refuses a log that damages the file, before anything is written.
    ///
    /// - Parameter connection: A connection that reads the file with its log.
    /// - Throws: ``StoreError`` with the code `staleSidecar`, or `corrupt` if a page in the log of an encrypted file is
    ///   not authentic.
    func check(_ connection: Connection) throws {
        guard let log = try SidecarFile(paths.wal), let header = try LogHeader(log),
            try header.pagesAtCommit(in: log) > 0
        else { return }
        if let key { try LogAuthenticity(paths: paths, key: key).check(header, log) }
        guard try !isSound(header, log, connection), case let together = try faults(connection), !together.isEmpty
        else { return }
        let file = try ConnectionProfile.inspecting(Connection.size(paths.database)).with(key, extensions)
            .open(paths.database, busyTimeout: busyTimeout, ignoresLog: true)
        defer { file.close() }
        guard let alone = try? faults(file), let fault = together.subtracting(alone).min() else { return }
        throw StoreError.staleSidecar(
            paths,
            "the file is intact without its -wal, but damaged when the -wal is applied (\(fault)): the -wal is "
                + "damaged, or belongs to another copy of the file", "-wal")
    }

    /// Returns whether the page reader finds no fault, which takes a fraction of the time of SQLite's check.
    ///
    /// If the result is `false`, SQLite must check the file.
    ///
    /// - Parameter connection: A connection in a transaction, or the only connection that writes.
    private func isSound(_ header: LogHeader, _ log: SidecarFile, _ connection: Connection) throws -> Bool {
        guard key == nil, let versions = try header.committedPages(in: log),
            try connection.value(Int64.self, "PRAGMA page_count") == Int64(versions.pageCount)
        else { return false }
        let file = try DatabaseFile(path: paths.database)
        let bytes = ReadBytes(size: try file.size()) { try file.fill($1, at: $0) }
        guard let pages = try VersionedPages(bytes, versions, in: log) else { return false }
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: pages.geometry.pageSize, alignment: 16)
        defer { memory.deallocate() }
        guard let first = try pages.lend(1, memory) else { return false }
        let start = FileHeader(bytes: Array(first.prefix(FileHeader.length)), fileSize: bytes.size)
        // Only SQLite can check a pointer map.
        guard !start.hasPointerMap else { return false }
        do {
            try StructureCheck(pages).run(start)
            return true
        } catch is DamagedPage {
            return false
        }
    }

    /// Returns the faults of the trees, without page numbers.
    ///
    /// Rows that violate their constraints are ignored, because healthy databases have them too.
    private func faults(_ connection: Connection) throws -> Set<String> {
        var found: Set<String> = []
        try connection.computingBySchema("PRAGMA quick_check(100)") { row in
            let text = try row.get(String.self, at: 0)
            guard text.hasPrefix("*** in database") else { return }
            for line in text.split(separator: "\n").dropFirst() {
                let words = line.split(separator: " ").filter { !$0.contains(where: \.isNumber) }
                found.insert(words.joined(separator: " "))
            }
        }
        return found
    }
}
