internal import CipherErrors
internal import CipherHistory
package import CipherKeyProviders
internal import CipherSQLite
package import CipherSystemFiles

/// Encrypts a plaintext database that others read and write: most of it is done before anybody has to wait.
///
/// ``prepare(_:resting:holdingWriters:)`` builds a proven copy, or goes on with the one that a killed launch left, and has it
/// follow what is written. ``finish(_:_:)`` copies the rest and puts the copy in the file's place, as an upgrade does it, while
/// no connection is open. What ends before that leaves nothing after ``end()``.
// Unchecked, and safe between threads: the steps follow each other, and who begins one has waited for the one before.
package final class OpenEncryption: @unchecked Sendable {
    private let paths: DatabasePaths
    private let options: ConversionOptions
    private let key: CipherKey
    private let keyAgain: CipherKey
    /// Derived for the copy's salt; `nil` before there is a copy.
    private var keys: UpgradeKeys?
    /// `nil` before it was claimed, and once the last step is over.
    private var copy: FollowingCopy?
    private var state = State.absent
    /// How many pages the last step may copy, for which the app's calls wait.
    private var mostPagesAtLast = 1_024

    private enum State {
        /// The copy is empty, or of no use.
        case absent
        /// An earlier launch left it.
        case left(CopyProgress)
        /// It was left so, and follows; that it is equal was not shown yet.
        case resumed
        case built

        var isOfEarlierLaunch: Bool {
            switch self {
            case .left, .resumed: true
            case .absent, .built: false
            }
        }
    }

    /// How many pages may be left for the last step, unless there are more each time.
    private static let fewPages = 64
    private static let mostRounds = 16
    /// How often the copy is begun anew because the schema has changed.
    private static let mostCopies = 3

    /// Asks for the key, which is made where there is none.
    ///
    /// - Throws: ``StoreError``.
    package init(_ paths: DatabasePaths, provider: any KeyProvider, options: ConversionOptions) throws {
        self.paths = paths
        self.options = options
        let upgrade = EncryptionUpgrade(at: paths, provider: provider, options: options)
        try paths.checkInputs(of: provider)
        key = try upgrade.newFileKey()
        keyAgain = try upgrade.keyAskedAgain(key)
    }

    deinit { keys?.cancel() }

    /// Removes a copy that has not taken the database's place.
    package func end() {
        copy?.discard()
        copy = nil
    }

    // MARK: While others write

    /// Builds and proves the copy where there is none, and has it follow until little is left.
    ///
    /// - Parameters:
    ///   - cancellation: Ends it.
    ///   - resting: Is called again and again while nobody waits for it, and may take its time.
    ///   - holdingWriters: Keeps others from committing.
    /// - Throws: ``StoreError``, with `noSpace`, with `corrupt` where the database is damaged, with `cancelled`, with `busy`
    ///   where it is worth another try.
    package func prepare(
        _ cancellation: UpgradeCancellation, resting: @escaping @Sendable () -> Void,
        holdingWriters: @escaping () throws -> any WriterHold
    ) throws {
        do {
            try StoreError.typing(paths.database, during: .conversion) {
                try makeCopy(observer(cancellation, resting), holdingWriters)
            }
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
                    if case .resumed = state { try observer.begin(.proving) }
                    // It shows that no round has missed anything.
                    _ = try copy.follow(proving: true, observer, holdingWriters: holdingWriters)
                    try followUntilFew(copy, observer, holdingWriters)
                }
                state = .built
                return
            } catch is FollowingCopy.SchemaChanged {
                state = .absent
            } catch  where state.isOfEarlierLaunch && !Self.isOfTheMoment(error) {
                // Whatever is wrong with the copy: what is wrong with the database, the next build tells.
                try observer.checkCancellation()
                state = .absent
            }
        }
        throw schemaKeepsChanging
    }

    private static func isOfTheMoment(_ error: any Error) -> Bool {
        (error as? StoreError).map { $0.code == .cancelled || $0.code == .busy } ?? false
    }

    /// Takes the copy of a launch that was killed, or an empty one.
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

    /// Has the copy follow the database.
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
        case .resumed, .built: break
        }
    }

    private var schemaKeepsChanging: StoreError {
        .busy(paths.database, "the schema was changed each time that the database was being copied", retry: .now)
    }

    /// Looks whether the last step could be done now.
    ///
    /// - Throws: ``StoreError`` with `busy` where another process has the file open, as far as the system tells.
    package func checkUse() throws {
        guard let status = try FileSystem.status(paths.database) else { throw StoreError.missingFile(paths.database) }
        guard case .others(let processes) = OriginalFile(paths.database, status).otherUsers(), !processes.isEmpty else {
            return
        }
        throw StoreError.busy(
            paths.database, "another process has the database open: \(processes.joined(separator: ", "))",
            retry: .afterEndingProgram)
    }

    private func followUntilFew(
        _ copy: FollowingCopy, _ observer: UpgradeObserver, _ holdingWriters: () throws -> any WriterHold
    ) throws {
        var before = Int.max
        for _ in 0..<Self.mostRounds {
            try observer.checkCancellation()
            let round = try copy.follow(proving: false, observer, holdingWriters: holdingWriters)
            // What is on the disk now need not be brought there while others wait.
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

    /// How much of the whole is done while others write.
    private static let aheadShare = 0.95

    // MARK: Alone with the file

    /// Copies what has changed since, and has the copy take the file's place.
    ///
    /// No connection of this process is open to the file.
    ///
    /// - Parameters:
    ///   - fileKey: `nil`; the key of the copy afterwards.
    ///   - cancellation: Ends it until the copy takes the file's place.
    /// - Throws: ``StoreError``, with `busy` where anybody has the file open. Until the swap no row has changed.
    package func finish(_ fileKey: inout FileKey?, _ cancellation: UpgradeCancellation) throws -> EncryptionReport {
        var options = options
        options.cancellation = UpgradeCancellation(anyOf: [cancellation] + (options.cancellation.map { [$0] } ?? []))
        options.progress = options.progress.map { progress in
            { @Sendable in progress($0.as(Self.aheadShare, to: 1)) }
        }
        // The app's calls wait.
        options.upgradeTimeout = min(options.upgradeTimeout, Self.patience)
        options.busyTimeout = min(options.busyTimeout, Self.patience)
        guard let copy, let keys else { throw schemaKeepsChanging }
        var conversion = Conversion(paths: paths, options: options, sourceKey: nil, targetSettings: options.format)
        conversion.madeAhead = copy
        var hasBegun = false
        do {
            let outcome = try options.withLockedFile(paths) { inspector, content in
                guard case .plaintext = content else {
                    throw StoreError.busy(paths.database, "another program has encrypted it meanwhile", retry: .now)
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
            // An app that writes so much all the time waits longer at last.
            mostPagesAtLast *= 2
            throw StoreError.busy(paths.database, "much was written at the last moment", retry: .now)
        } catch let error as StoreError where error.code == .busy {
            // The last step is done with a copy once.
            if hasBegun { end() }
            throw error
        } catch {
            end()
            switch error {
            case is FollowingCopy.SchemaChanged: throw schemaKeepsChanging
            case let error as StoreError where error.code == .staleSidecar:
                // A log that is in use may be such that only SQLite can read it; once it is in the file, it is gone.
                throw StoreError.busy(paths.database, error.detail, retry: .now)
            default: throw error
            }
        }
    }

    /// How long each lock is waited for in the last step.
    private static let patience = Duration.milliseconds(250)

    /// Whether there is a copy that the last step can be tried with again.
    package var hasCopy: Bool { copy != nil }
}

extension UpgradeProgress {
    /// The same as a part of something longer.
    fileprivate func `as`(_ start: Double, to end: Double) -> UpgradeProgress {
        UpgradeProgress(
            stage: stage, fraction: start + (end - start) * fraction, bytes: bytes, totalBytes: totalBytes)
    }
}
