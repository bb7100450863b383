internal import CipherErrors
internal import CipherSQLite
internal import CipherSQLiteFormat

/// Looks at what a database and its log are together, before a checkpoint makes that the file.
///
/// A log of another copy that ``LogMatch`` cannot tell mostly leaves trees that contradict each other. Where the file
/// alone has no such fault, the log is not believed.
struct MergedLogCheck {
    let paths: DatabasePaths
    /// The key of the file; `nil` for a plaintext one.
    let key: FileKey?
    let extensions: SQLExtensions
    let busyTimeout: Duration

    /// Refuses a log that damages the file, before anything is written.
    ///
    /// - Parameter connection: Reads the file with its log.
    /// - Throws: ``StoreError`` with `staleSidecar`.
    func check(_ connection: Connection) throws {
        guard try holdsCommits(), case let together = try faults(connection), !together.isEmpty else { return }
        let file = try ConnectionProfile.inspecting(Connection.size(paths.database)).with(key, extensions)
            .open(paths.database, busyTimeout: busyTimeout, ignoresLog: true)
        defer { file.close() }
        guard let alone = try? faults(file), let fault = together.subtracting(alone).min() else { return }
        throw StoreError.staleSidecar(
            paths,
            "the file is sound, and with its -wal it is not (\(fault)): the -wal is damaged, or goes on from another copy "
                + "of the file", "-wal")
    }

    private func holdsCommits() throws -> Bool {
        guard let log = try SidecarFile(paths.wal), let claims = try LogHeader(log) else { return false }
        return try claims.pagesAtCommit(in: log) > 0
    }

    /// What is wrong with the trees, without page numbers.
    ///
    /// Rows that break their constraints and pages that are lost are in healthy databases, too.
    private func faults(_ connection: Connection) throws -> Set<String> {
        var found: Set<String> = []
        try connection.withinStepsForRows {
            try connection.forEachRow("PRAGMA quick_check(100)") { row in
                let text = try row.get(String.self, at: 0)
                guard text.hasPrefix("*** in database") else { return }
                for line in text.split(separator: "\n").dropFirst() where !line.hasSuffix("is never used") {
                    let words = line.split(separator: " ").filter { !$0.contains(where: \.isNumber) }
                    found.insert(words.joined(separator: " "))
                }
            }
        }
        return found
    }
}
