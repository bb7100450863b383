internal import CipherErrors
package import CipherKeyProviders
internal import CipherSQLite
package import CipherSystemFiles

/// Changes the key of a database while other connections read and write it. Most of the database is copied before any
/// other call has to wait.
///
/// ``prepare(_:_:)`` copies the pages and compares them. ``finish(_:_:)`` copies what has changed since then, as an
/// offline key change does, while no connection is open. If the run ends before that, nothing is left of it.
// Unchecked but safe across threads: the steps run one after another, and each one starts after the previous one ended.
package final class OpenKeyChange: @unchecked Sendable {
    private let paths: DatabasePaths
    private let source: FileKey
    private let provider: any KeyProvider
    private let options: ConversionOptions
    private let keys: UpgradeKeys
    /// The copy; `nil` if the format or the file system does not support this method.
    ///
    /// Everything is then copied in the last step.
    private var copy: ResealedCopy?

    /// The number of pages that may be left for the last step.
    ///
    /// More are left if a pass no longer reduces them.
    private static let fewPages = 256
    private static let mostPasses = 8

    /// Requests the key, which the provider creates if there is none.
    ///
    /// - Parameters:
    ///   - source: The key that has opened the file. The file keeps its format.
    ///   - provider: Provides the new key.
    ///   - options: The timeouts.
    /// - Throws: ``StoreError``, with the code `keyUnchanged` if the file already has the key.
    package init(
        _ paths: DatabasePaths, _ source: FileKey, to provider: any KeyProvider, options: ConversionOptions
    ) throws {
        self.paths = paths
        self.source = source
        self.provider = options.waiting(for: provider)
        self.options = options
        try paths.checkInputs(of: provider)
        let key = try self.provider.checkedKey(for: .createOrExisting, database: paths.database)
        try key.checkSalt(for: source.settings, path: paths.database)
        let again = try self.provider.keyAskedAgain(key, database: paths.database)
        if let salt = source.key.salt,
            try key.rawKey(salt: salt, settings: source.settings).rawBytes == source.key.rawBytes
        {
            throw StoreError.keyUnchanged(paths, isKeyRequired: true)
        }
        keys = try UpgradeKeys(key, again: again, settings: source.settings)
    }

    deinit { keys.cancel() }

    // MARK: While other connections write

    /// Copies the database and the changes made meanwhile, until few are left, and requests the key again.
    ///
    /// - Parameters:
    ///   - cancellation: Stops the preparation.
    ///   - checkpoint: Checkpoints the log into the file, as far as possible.
    /// - Throws: ``StoreError``, with the code `busy` if another process has the file open, `keyChanged`, `noSpace` or
    ///   `cancelled`; any error thrown by `checkpoint`.
    package func prepare(_ cancellation: UpgradeCancellation, _ checkpoint: () throws -> Void) throws {
        guard ResealedCopy.canBeMade(of: source.settings) else { return try waitForOthers(cancellation) }
        try StoreError.typing(paths.database, during: .conversion) {
            try waitForOthers(cancellation)
            try copyAhead(cancellation, checkpoint)
            try waitForOthers(cancellation)
        }
        try confirmKey()
    }

    /// Copies what has changed since the last call, as ``prepare(_:_:)`` does.
    package func catchUp(_ cancellation: UpgradeCancellation, _ checkpoint: () throws -> Void) throws {
        guard let copy else { return }
        try StoreError.typing(paths.database, during: .conversion) {
            _ = try pass(copy, cancellation, checkpoint, share: 1)
            try copy.sync()
        }
        try confirmKey()
    }

    /// - Throws: ``StoreError`` with the code `keyChanged` if the next launch would get another key.
    private func confirmKey() throws { _ = try provider.keyAskedAgain(keys.again, database: paths.database) }

    private func copyAhead(_ cancellation: UpgradeCancellation, _ checkpoint: () throws -> Void) throws {
        let folder = try paths.openFolder()
        try Preflight.checkRoom(for: Connection.size(paths.database), source.settings, paths)
        guard let file = try NewFile(toBeNamedIn: folder, path: paths.database),
            let copy = ResealedCopy(file, source: source, keys)
        else { return }
        self.copy = copy
        var before = Int.max
        for number in 0..<Self.mostPasses {
            let pass = try pass(copy, cancellation, checkpoint, share: number == 0 ? 0 : 1)
            // Data synced now need not be synced while other calls wait.
            try copy.sync()
            guard pass.changed > Self.fewPages, pass.changed < before else { break }
            before = pass.changed
        }
        try copy.authenticate { cancellation.isCancelled }
    }

    /// - Parameter share: The share of the work that was done before, for the progress.
    private func pass(
        _ copy: ResealedCopy, _ cancellation: UpgradeCancellation, _ checkpoint: () throws -> Void, share: Double
    ) throws -> ResealedCopy.Pass {
        try checkpoint()
        let database = try DatabaseFile(path: paths.database)
        defer { database.close() }
        let size = try database.size()
        return try copy.update(from: database) { bytes in
            if cancellation.isCancelled { throw StoreError.cancelled(paths.database) }
            let done = max(share, size > 0 ? Double(bytes) / Double(size) : 1)
            options.progress?(
                UpgradeProgress(
                    stage: .building, fraction: Self.aheadShare * done, bytes: min(bytes, size), totalBytes: size))
        }
    }

    /// The share of the whole work that is done while other connections write.
    private static let aheadShare = 0.9

    /// Waits until no other process has the file open, because that would make the last step fail.
    private func waitForOthers(_ cancellation: UpgradeCancellation) throws {
        let deadline = ContinuousClock.now + options.busyTimeout
        while true {
            if cancellation.isCancelled { throw StoreError.cancelled(paths.database) }
            guard let status = try FileSystem.status(paths.database) else {
                throw StoreError.missingFile(paths.database)
            }
            let users = OriginalFile(paths.database, status).otherUsers()
            if users == .others([]) { return }
            guard ContinuousClock.now < deadline else { throw users.busy(paths.database) }
            // The system does not report when another process closes a file, so this polls.
            _ = BlockingAnswer<Void>().wait(until: .now + .milliseconds(10), or: cancellation)
        }
    }

    // MARK: Alone with the file

    /// Copies what has changed since the preparation, and puts the copy in the file's place.
    ///
    /// No connection of this process may be open to the file.
    ///
    /// - Parameters:
    ///   - fileKey: The key of the file; set to the key of the copy.
    ///   - cancellation: Stops the step, if the copy has not taken the file's place yet.
    /// - Throws: ``StoreError``, with the code `busy` if another connection has the file open. Until the swap, no row
    ///   has changed.
    package func finish(_ fileKey: inout FileKey?, _ cancellation: UpgradeCancellation) throws -> EncryptionReport {
        guard fileKey?.key == source.key else {
            throw StoreError.busy(
                paths.database, "the database's key was changed while the copy was being made", retry: .now)
        }
        var options = options
        options.keepBackup = false
        options.cancellation = UpgradeCancellation(anyOf: [cancellation] + (options.cancellation.map { [$0] } ?? []))
        if let progress = options.progress { options.progress = { progress(Self.atTheEnd($0)) } }
        var conversion = Conversion(
            paths: paths, options: options, sourceKey: source, targetSettings: source.settings)
        conversion.madeAhead = copy
        // The complete copy is made now, which takes a long time.
        if copy == nil { conversion.keyProvider = provider }
        let outcome = try options.withLockedFile(paths) { inspector, content in
            try conversion.run(
                .rekeyed, inspector, isWriteAheadLog: inspector.isWriteAheadLog(content, source),
                targetKeys: { keys })
        }
        fileKey = outcome.fileKey
        return outcome.report
    }

    private static func atTheEnd(_ update: UpgradeProgress) -> UpgradeProgress {
        UpgradeProgress(
            stage: update.stage, fraction: aheadShare + (1 - aheadShare) * update.fraction, bytes: update.bytes,
            totalBytes: update.totalBytes)
    }

    /// Notifies the provider that the file has the new key, once the new file is on disk.
    ///
    /// - Returns: A warning if this failed. In that case nothing is lost.
    package func retirePreviousKey() -> String? {
        KeyChange(paths: paths, provider: provider, formats: [source.settings], options: options).retirePreviousKey()
    }
}
