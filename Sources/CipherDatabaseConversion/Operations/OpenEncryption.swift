internal import CipherErrors
internal import CipherHistory
package import CipherKeyProviders
internal import CipherSQLite
internal import CipherSQLiteFormat
package import CipherSystemFiles

/// Encrypts a plaintext database while other connections read and write it. Most of the work is done before any other
/// call has to wait.
///
/// ``prepare(_:resting:holdingWriters:)`` builds a proven copy, or continues with the copy left by a launch that was
/// killed, and applies later changes to it. ``finish(_:_:)`` copies the remaining changes and puts the copy in the
/// file's place as an upgrade does, while no connection is open. If the run ends before that, ``end()`` removes
/// everything.
// Unchecked but safe across threads: the steps run one after another, and each one starts after the previous one ended.
package final class OpenEncryption: @unchecked Sendable {
    private let paths: DatabasePaths
    private let options: ConversionOptions
    private let upgrade: EncryptionUpgrade
    private let key: CipherKey
    private let keyAgain: CipherKey
    /// The keys derived for the copy's salt; `nil` before there is a copy.
    private var keys: UpgradeKeys?
    /// The copy; `nil` before it is claimed, and after the last step.
    private var copy: FollowingCopy?
    private var state = State.absent
    /// The number of pages that the last step may copy while the app's calls wait.
    private var mostPagesAtLast = 1_024

    private enum State {
        /// The copy is empty or unusable.
        case absent
        /// An earlier launch left the copy with this progress.
        case left(CopyProgress)
        /// An earlier launch left the copy, which now follows the database. It has not yet been proven equal.
        case resumed
        /// This launch built the copy, which follows the database. It has not yet been proven equal.
        case built
        case proven

        var isOfEarlierLaunch: Bool {
            switch self {
            case .left, .resumed: true
            case .absent, .built, .proven: false
            }
        }

        var isProven: Bool {
            if case .proven = self { true } else { false }
        }
    }

    /// The number of pages that may be left for the last step.
    ///
    /// More are left if a round no longer reduces them.
    private static let fewPages = 64
    private static let mostRounds = 16
    /// The number of times that the copy is restarted because the schema changed.
    private static let mostCopies = 3

    /// Requests the key, which the provider creates if there is none.
    ///
    /// - Throws: ``StoreError``.
    package init(_ paths: DatabasePaths, provider: any KeyProvider, options: ConversionOptions) throws {
        self.paths = paths
        self.options = options
        upgrade = EncryptionUpgrade(at: paths, provider: provider, options: options)
        try paths.checkInputs(of: provider)
        key = try upgrade.newFileKey()
        keyAgain = try upgrade.keyAskedAgain(key)
    }

    deinit { keys?.cancel() }

    /// Removes a copy that has not replaced the database.
    package func end() {
        copy?.discard()
        copy = nil
    }

    // MARK: While other connections write

    /// Builds and proves the copy if there is none, and applies changes to it until few are left.
    ///
    /// Then requests the key again, because hours may have passed since the copy was begun.
    ///
    /// - Parameters:
    ///   - cancellation: Stops the preparation.
    ///   - resting: A closure that is called repeatedly while no other call waits for this run. It may take a long
    ///     time.
    ///   - holdingWriters: Prevents other connections from committing.
    /// - Throws: ``StoreError``, with the code `noSpace`, `corrupt` if the database is damaged, `keyChanged` if the
    ///   next launch would get another key, `cancelled`, or `busy` if another attempt may succeed.
    package func prepare(
        _ cancellation: UpgradeCancellation, resting: @escaping @Sendable () -> Void,
        holdingWriters: @escaping () throws -> any WriterHold
    ) throws {
        do {
            try StoreError.typing(paths.database, during: .conversion) {
                try makeCopy(observer(cancellation, resting), holdingWriters)
            }
            _ = try upgrade.keyAskedAgain(key)
        } catch {
            if case .absent = state { end() }
            if copy?.isBroken == true || cancellation.isCancelled { end() }
            throw error
        }
    }

    private func makeCopy(
        _ observer: UpgradeObserver, _ holdingWriters: @escaping () throws -> any WriterHold
    ) throws {
        let copy = try copy ?? claim()
        for _ in 1...Self.mostCopies {
            do {
                try begin(copy, observer, holdingWriters)
                try followUntilFew(copy, observer, holdingWriters)
                if !copy.isProven {
                    if !state.isProven { try observer.begin(.proving) }
                    // The proof shows that no round has missed a change.
                    _ = try copy.follow(proving: true, observer, holdingWriters: holdingWriters)
                    try followUntilFew(copy, observer, holdingWriters)
                }
                state = .proven
                return
            } catch is FollowingCopy.SchemaChanged {
                state = .absent
            } catch let damage as CopyProof.DamagedIndexes where !state.isOfEarlierLaunch {
                copy.rebuildIndexes(because: damage)
                state = .absent
            } catch  where state.isOfEarlierLaunch && !Self.isOfTheMoment(error) {
                // The copy is discarded, whatever its fault. If the database itself is at fault, the next build reports
                // that.
                try observer.checkCancellation()
                state = .absent
            }
        }
        throw schemaKeepsChanging
    }

    private static func isOfTheMoment(_ error: any Error) -> Bool {
        (error as? StoreError).map { [.cancelled, .busy, .replaced].contains($0.code) } ?? false
    }

    /// Takes over the copy of a launch that was killed, or creates an empty one.
    private func claim() throws -> FollowingCopy {
        let aside = try ResumableCopy.claim(paths, options)
        let progress = aside.record.progress
        let salt = try progress == nil || options.format.plaintextHeaderSize > 0 ? nil : aside.salt()
        self.keys?.cancel()
        let keys = try UpgradeKeys(key, again: keyAgain, settings: options.format, salt: salt)
        self.keys = keys
        let copy = FollowingCopy(aside, of: paths, keys, options)
        self.copy = copy
        state = progress.map { .left($0) } ?? .absent
        return copy
    }

    /// Makes the copy follow the database.
    private func begin(
        _ copy: FollowingCopy, _ observer: UpgradeObserver, _ holdingWriters: @escaping () throws -> any WriterHold
    ) throws {
        switch state {
        case .left(let progress):
            try copy.resume(progress, observer, holdingWriters: holdingWriters)
            state = .resumed
        case .absent:
            try Preflight.checkRoom(for: Connection.size(paths.database), options.format, paths)
            try copy.build(observer, holdingWriters: holdingWriters)
            state = .built
        case .resumed, .built, .proven: break
        }
    }

    private var schemaKeepsChanging: StoreError {
        .busy(paths.database, "the schema changed each time the database was copied", retry: .now)
    }

    /// Checks whether the last step could be done now.
    ///
    /// - Throws: ``StoreError`` with the code `busy` if another process is known to have the file open.
    package func checkUse() throws {
        guard let status = try FileSystem.status(paths.database) else { throw StoreError.missingFile(paths.database) }
        let users = OriginalFile(paths.database, status).otherUsers()
        guard users != .others([]) else { return }
        throw StoreError.busy(paths.database, users.busy(paths.database).detail, retry: .afterEndingProgram)
    }

    /// Restores WAL mode if an abandoned last step could not, because another process was using the file.
    ///
    /// - Throws: ``StoreError`` with the code `busy` if that is still not possible.
    package func restoreLog() throws {
        guard try !FileHeader(DatabaseFile(path: paths.database)).isWriteAheadLog else { return }
        try UpgradeLock.withLock(paths, timeout: Self.patience, cancellation: options.cancellation) {
            guard try AttemptRecord.read(paths)?.wasWriteAheadLog == true,
                let reason = Attempts.restoreWriteAheadLog(paths, nil, busyTimeout: Self.patience)
            else { return }
            throw StoreError.busy(paths.database, "WAL mode could not be restored: \(reason)", retry: .afterClosing)
        }
    }

    private func followUntilFew(
        _ copy: FollowingCopy, _ observer: UpgradeObserver, _ holdingWriters: () throws -> any WriterHold
    ) throws {
        var before = Int.max
        for _ in 0..<Self.mostRounds {
            try observer.checkCancellation()
            let round = try copy.follow(proving: false, observer, holdingWriters: holdingWriters)
            // Data synced now need not be synced while other calls wait.
            try copy.sync()
            guard round.pages > Self.fewPages, round.pages < before else { return }
            before = round.pages
        }
    }

    private func observer(
        _ cancellation: UpgradeCancellation, _ resting: @escaping @Sendable () -> Void
    ) -> UpgradeObserver {
        let observer = UpgradeObserver(
            path: paths.database,
            report: { [progress = options.progress] in
                progress?($0.as(0, to: Self.aheadShare))
                resting()
            }, cancellation: cancellation)
        observer.totalBytes = (try? Connection.size(paths.database)) ?? 0
        return observer
    }

    /// The share of the whole work that is done while other connections write.
    private static let aheadShare = 0.95

    // MARK: Alone with the file

    /// Copies what has changed since the preparation, and puts the copy in the file's place.
    ///
    /// No connection of this process may be open to the file.
    ///
    /// - Parameters:
    ///   - fileKey: The key of the file: `nil` at first, and set to the key of the copy.
    ///   - cancellation: Stops the step, if the copy has not taken the file's place yet.
    /// - Throws: ``StoreError``, with the code `busy` if another connection has the file open. Until the swap, no row
    ///   has changed.
    package func finish(_ fileKey: inout FileKey?, _ cancellation: UpgradeCancellation) throws -> EncryptionReport {
        var options = options
        options.cancellation = UpgradeCancellation(anyOf: [cancellation] + (options.cancellation.map { [$0] } ?? []))
        options.progress = options.progress.map { progress in
            { @Sendable in progress($0.as(Self.aheadShare, to: 1)) }
        }
        // The app's calls wait meanwhile.
        options.upgradeTimeout = min(options.upgradeTimeout, Self.patience)
        options.busyTimeout = min(options.busyTimeout, Self.patience)
        guard let copy, let keys else { throw schemaKeepsChanging }
        var conversion = Conversion(paths: paths, options: options, sourceKey: nil, targetSettings: options.format)
        conversion.madeAhead = copy
        var hasBegun = false
        do {
            let outcome = try options.withLockedFile(paths) { inspector, content in
                guard case .plaintext = content else {
                    throw StoreError.busy(
                        paths.database, "another program has already encrypted the database", retry: .now)
                }
                hasBegun = true
                try copy.settle(
                    waiting: Self.patience, atMost: mostPagesAtLast,
                    UpgradeObserver(path: paths.database, report: nil, cancellation: options.cancellation))
                return try conversion.run(
                    .encrypted, inspector, isWriteAheadLog: true, targetKeys: { keys },
                    finishing: { try HistoryTable.append(.encrypted, in: $0) })
            }
            end()
            fileKey = outcome.fileKey
            return outcome.report
        } catch is FollowingCopy.TooMuchLeft {
            // If the app keeps writing this much, its calls wait longer in the last step.
            mostPagesAtLast *= 2
            throw StoreError.busy(
                paths.database, "too many changes were written just before the encrypted copy was complete",
                retry: .now)
        } catch let error as StoreError where error.code == .busy {
            // A copy can be used for the last step only once.
            if hasBegun { end() }
            throw error
        } catch {
            end()
            switch error {
            case is FollowingCopy.SchemaChanged: throw schemaKeepsChanging
            case let error as StoreError where error.code == .staleSidecar:
                // A log that is in use may be readable only by SQLite. Once it has been merged into the file, the error
                // no longer occurs.
                throw StoreError.busy(paths.database, error.detail, retry: .now)
            default: throw error
            }
        }
    }

    /// How long to wait for each lock in the last step.
    private static let patience = Duration.milliseconds(250)

    /// Whether there is a copy with which the last step can be tried again.
    package var hasCopy: Bool { copy != nil }

    /// Whether a connection of the copy has had the database and its log open since the preparation.
    package var holdsDatabase: Bool { copy?.isFollowing == true }
}

extension UpgradeProgress {
    /// Returns this progress as a part of a longer run.
    fileprivate func `as`(_ start: Double, to end: Double) -> UpgradeProgress {
        UpgradeProgress(
            stage: stage, fraction: start + (end - start) * fraction, bytes: bytes, totalBytes: totalBytes)
    }
}
