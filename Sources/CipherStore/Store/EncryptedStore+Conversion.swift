internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherKeyProviders
internal import CipherSystemFiles

extension EncryptedStore {
    /// Starts to encrypt the database on a background thread.
    ///
    /// - Parameter logKeeper: Preserves the log until the first copy is complete or has failed.
    func beginConversion(
        _ provider: any KeyProvider, _ options: ConversionOptions, _ logKeeper: LogKeeper?
    ) {
        guard let conversion else { return }
        conversion.keep(logKeeper)
        var options = options
        options.progress = events.progress { conversion.update($0) }
        options.cancellation = nil
        let settings = options
        do {
            try DetachedThread.start("encrypt") { [self] in
                conversion.run { cancellation in
                    let report = try encrypt(provider, settings, cancellation)
                    events(.encrypted(report))
                    return report
                }
                if case .failed(let error) = conversion.state { events(.encryptionFailed(error)) }
            }
        } catch {
            conversion.run { _ in throw error }
        }
    }

    /// How long other calls wait for running reads before the switch is postponed.
    private static let patienceWithReads = Duration.milliseconds(100)
    /// The maximum number of copies, each needed because of other connections' writes, before the encryption is left to
    /// the next launch.
    private static let mostCopies = 3

    private func encrypt(
        _ provider: any KeyProvider, _ options: ConversionOptions, _ cancellation: UpgradeCancellation
    ) throws -> EncryptionReport {
        var options = options
        options.cancellation = cancellation
        // This also runs if the key is unavailable.
        defer { conversion?.keep(nil) }
        let encryption = try OpenEncryption(DatabasePaths(path), provider: provider, options: options)
        defer { encryption.end() }
        var (pause, copies, logWasTooLong) = (Duration.milliseconds(100), 0, false)
        while true {
            if cancellation.isCancelled { throw StoreError.cancelled(path) }
            conversion?.rest()
            do {
                try file.requireSame()
                // While another process or store has the database open, a copy would be useless.
                try file.requireAlone()
                try encryption.checkUse()
                if !encryption.hasCopy {
                    // Another copy would soon be as far behind as the last one.
                    if logWasTooLong { try emptyLog() }
                    try encryption.restoreLog()
                    copies += 1
                }
                try running(cancellation) {
                    try encryption.prepare(cancellation, resting: { self.conversion?.rest() }) {
                        try self.holdWriter(cancellation)
                    }
                }
                conversion?.keep(nil)
                try file.requireAlone()
                try encryption.checkUse()
                return try replaceFile(with: encryption, cancellation)
            } catch is ReadsGoOn {
                postpone(
                    .busy(
                        path, "a read from the store, or a backup of the store, is still running", retry: .afterReads))
            } catch let error as StoreError
                where error.code == .busy && (encryption.hasCopy || copies < Self.mostCopies)
            {
                postpone(error)
            } catch {
                // If another program has replaced the file, that is reported as the reason.
                try file.requireSame()
                throw error
            }
            if encryption.hasCopy, try logIsTooLong() {
                encryption.end()
                logWasTooLong = true
            }
            _ = BlockingAnswer<Void>().wait(until: .now + pause, or: cancellation)
            pause = min(pause * 2, .seconds(10))
        }
    }

    /// Replaces the file with the copy, while the store has no connection.
    private func replaceFile(
        with encryption: OpenEncryption, _ cancellation: UpgradeCancellation
    ) throws -> EncryptionReport {
        do {
            return try withConnectionsClosedBlocking(
                waitingForReads: Self.patienceWithReads, holding: { encryption.holdsDatabase }
            ) { [backups] in
                // A backup reads the file with the key that it has now.
                guard !backups.areRunning else { throw ReadsGoOn() }
                return try encryption.finish(&$0, UpgradeCancellation(anyOf: [cancellation, $1]))
            }
        } catch {
            // Without a connection, this store would not keep another one from replacing the file.
            _ = try? writer.runBlocking(.read) { _ in }
            throw error
        }
    }

    /// Whether the log has become larger than the database; it does not restart while a copy follows it.
    private func logIsTooLong() throws -> Bool {
        let log = try FileSystem.size(path + "-wal") ?? 0
        return try log > max(Self.mostLog, FileSystem.size(path) ?? 0)
    }

    /// The log size that is always accepted, in bytes.
    private static let mostLog: Int64 = 64 << 20

    /// - Throws: ``StoreError`` with the code `busy` if reads prevent the log from being written into the file.
    private func emptyLog() throws {
        _ = try writer.runBlocking(.outside) { try $0.checkpointer?.truncateLog() }
        guard try logIsTooLong() else { return }
        throw StoreError.busy(
            path, "the write-ahead log is longer than the database, and active readers prevent it from being emptied",
            retry: .afterReads)
    }

    private func postpone(_ reason: StoreError) {
        // The wait may be long, and the log would grow.
        conversion?.keep(nil)
        conversion?.wait(for: reason)
        events(.encryptionPostponed(reason))
    }

    private func holdWriter(_ cancellation: UpgradeCancellation) throws -> any WriterHold {
        try StoreWriterHold(writer, path: path, calledBy: nil, cancellation)
    }

    /// Runs `body`, which has the file open and is ended by a suspension.
    private func running<Output>(_ cancellation: UpgradeCancellation, _ body: () throws -> Output) throws -> Output {
        try backups.run(cancellation, interrupted: writer.suspendedError) {
            if isClosed { throw writer.closedError }
            return try body()
        }
    }
}
