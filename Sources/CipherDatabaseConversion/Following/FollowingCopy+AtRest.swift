internal import CipherErrors
internal import CipherSQLite
internal import CipherSystemFiles

/// The last step, during which other connections wait: the copy receives the last commits, and the database leaves WAL
/// mode.
extension FollowingCopy {
    /// Copies the last commits, and leaves WAL mode, so that the file alone is the database.
    ///
    /// No other connection of this process may be open to the file. One connection stays open from before the last
    /// round until it has locked the file, so no other connection can remove the log by closing in between, and this
    /// connection detects any commit.
    ///
    /// - Parameters:
    ///   - timeout: How long to wait for each lock. The app's calls wait meanwhile.
    ///   - most: The maximum number of pages that may have been written since the last round.
    /// - Throws: ``SchemaChanged``; ``TooMuchLeft``; ``StoreError`` with the code `busy` if another process has the
    ///   file open or wrote to it.
    func settle(waiting timeout: Duration, atMost most: Int, _ observer: UpgradeObserver) throws {
        let profile = try ConnectionProfile.following(Connection.size(paths.database)).with(
            extensions: options.extensions)
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
        // Takes the file's exclusive lock and keeps it.
        let isUnchanged = try leaving.transaction(.immediate) {
            try leaving.value(Int.self, "PRAGMA data_version") == version
        }
        guard isUnchanged else {
            throw StoreError.busy(
                paths.database, "another program wrote to the database just before the copy was complete",
                retry: .now)
        }
        guard try leaving.value(String.self, "PRAGMA journal_mode = DELETE") == "delete",
            let status = try FileSystem.status(paths.database)
        else {
            throw StoreError.busy(
                paths.database, "another connection, in this or another process, is using the database",
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
                paths.database, "another program wrote to the database just before the copy was complete",
                retry: .now)
        }
        guard let proven, !isBroken else { return nil }
        return FinishedCopy(
            proven: ProvenFile(try takeFile(), try keys.building.wait(), proven), tables: report.tables,
            rows: report.rows, rebuiltIndexes: report.rebuiltIndexes, warnings: report.warnings, losses: losses)
    }
}
