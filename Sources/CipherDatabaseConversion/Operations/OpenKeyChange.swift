internal import CipherErrors
package import CipherKeyProviders
internal import CipherSQLite
package import CipherSystemFiles

/// Gives a database that others read and write another key: most of it is copied before anybody has to wait.
///
/// ``prepare(_:_:)`` copies and compares its pages, ``finish(_:_:)`` what has changed since, as an offline change of key does
/// it, while no connection is open. What ends before that leaves nothing.
// Unchecked, and safe between threads: the steps follow each other, and who begins one has waited for the one before.
package final class OpenKeyChange: @unchecked Sendable {
    private let paths: DatabasePaths
    private let source: FileKey
    private let provider: any KeyProvider
    private let options: ConversionOptions
    private let keys: UpgradeKeys
    /// `nil` if the format or the file system does not allow it: everything is copied in the last step then.
    private var copy: ResealedCopy?

    /// How many pages may be left for the last step, unless there are more each time.
    private static let fewPages = 256
    private static let mostPasses = 8

    /// Asks for the key, which is made where there is none.
    ///
    /// - Parameters:
    ///   - source: The key of the file, which has opened it; its format stays.
    ///   - provider: Gives the new key.
    ///   - options: How long to wait.
    /// - Throws: ``StoreError``, with `keyUnchanged` if the file has the key.
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
            throw StoreError.keyUnchanged(paths)
        }
        keys = try UpgradeKeys(key, again: again, settings: source.settings)
    }

    deinit { keys.cancel() }

    // MARK: While others write

    /// Copies the database, and what changes meanwhile, until little is left.
    ///
    /// - Parameters:
    ///   - cancellation: Ends it.
    ///   - checkpoint: Brings the log into the file, as far as that is possible.
    /// - Throws: ``StoreError``, with `busy` if another process has the file open, with `noSpace`, with `cancelled`;
    ///   what `checkpoint` throws.
    package func prepare(_ cancellation: UpgradeCancellation, _ checkpoint: () throws -> Void) throws {
        guard ResealedCopy.canBeMade(of: source.settings) else { return try waitForOthers(cancellation) }
        try StoreError.typing(paths.database, during: .conversion) {
            try waitForOthers(cancellation)
            try copyAhead(cancellation, checkpoint)
            try waitForOthers(cancellation)
        }
    }

    /// Copies what has changed since the last time, as ``prepare(_:_:)`` does.
    package func catchUp(_ cancellation: UpgradeCancellation, _ checkpoint: () throws -> Void) throws {
        guard let copy else { return }
        try StoreError.typing(paths.database, during: .conversion) {
            _ = try pass(copy, cancellation, checkpoint, share: 1)
            try copy.sync()
        }
    }

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
            // What is on the disk now need not be brought there while others wait.
            try copy.sync()
            guard pass.changed > Self.fewPages, pass.changed < before else { break }
            before = pass.changed
        }
        try copy.authenticate { cancellation.isCancelled }
    }

    /// - Parameter share: How much of the work was done before, for the progress.
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

    /// How much of the whole is done while others write.
    private static let aheadShare = 0.9

    /// Waits until no other process has the file open, which would make the last step fail.
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
            // The system tells nobody when a file is closed.
            _ = BlockingAnswer<Void>().wait(until: .now + .milliseconds(10), or: cancellation)
        }
    }

    // MARK: Alone with the file

    /// Copies what has changed since, and has the copy take the file's place.
    ///
    /// No connection of this process is open to the file.
    ///
    /// - Parameters:
    ///   - fileKey: The key of the file; that of the copy afterwards.
    ///   - cancellation: Ends it until the copy takes the file's place.
    /// - Throws: ``StoreError``, with `busy` if anybody has the file open. Until the swap no row has changed.
    package func finish(_ fileKey: inout FileKey?, _ cancellation: UpgradeCancellation) throws -> EncryptionReport {
        guard fileKey?.key == source.key else {
            throw StoreError.busy(paths.database, "the store has given it another key meanwhile", retry: .now)
        }
        var options = options
        options.keepBackup = false
        options.cancellation = UpgradeCancellation(anyOf: [cancellation] + (options.cancellation.map { [$0] } ?? []))
        if let progress = options.progress { options.progress = { progress(Self.atTheEnd($0)) } }
        var conversion = Conversion(
            paths: paths, options: options, sourceKey: source, targetSettings: source.settings)
        conversion.madeAhead = copy
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

    /// Tells the provider that the file has the new key, once that is on the disk.
    ///
    /// - Returns: What went wrong, which changes nothing.
    package func retirePreviousKey() -> String? {
        KeyChange(paths: paths, provider: provider, formats: [source.settings], options: options).retirePreviousKey()
    }
}
