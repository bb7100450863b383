internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherKeyProviders
internal import CipherSystemFiles

extension EncryptedStore {
    /// Begins to encrypt the database, on a thread in the background.
    ///
    /// - Parameter logKeeper: Keeps the log until the first copy, or until it fails.
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

    /// How long other calls wait for the reads that run, before the switch is put off.
    private static let patienceWithReads = Duration.milliseconds(100)
    /// How many copies are made before the next launch tries again: each is made anew because of what others did.
    private static let mostCopies = 3

    private func encrypt(
        _ provider: any KeyProvider, _ options: ConversionOptions, _ cancellation: UpgradeCancellation
    ) throws -> EncryptionReport {
        var options = options
        options.cancellation = cancellation
        // Also where the key cannot be had.
        defer { conversion?.keep(nil) }
        let encryption = try OpenEncryption(DatabasePaths(path), provider: provider, options: options)
        defer { encryption.end() }
        var (pause, copies) = (Duration.milliseconds(100), 0)
        while true {
            if cancellation.isCancelled { throw StoreError.cancelled(path) }
            conversion?.rest()
            do {
                // While another process has it open, a copy would be made in vain.
                try encryption.checkUse()
                if !encryption.hasCopy { copies += 1 }
                try running(cancellation) {
                    try encryption.prepare(cancellation, resting: { self.conversion?.rest() }) {
                        try self.holdWriter(cancellation)
                    }
                }
                conversion?.keep(nil)
                try encryption.checkUse()
                return try replaceFile(with: encryption, cancellation)
            } catch is ReadsGoOn {
                // Without the copy the log would become as long: those reads keep it.
                postpone(.busy(path, "reads or a backup of the store go on", retry: .afterReads))
            } catch let error as StoreError
                where error.code == .busy && (encryption.hasCopy || copies < Self.mostCopies)
            {
                postpone(error)
                if encryption.hasCopy, try logIsTooLong() {
                    encryption.end()
                    guard copies < Self.mostCopies else { throw error }
                }
            }
            _ = BlockingAnswer<Void>().wait(until: .now + pause, or: cancellation)
            pause = min(pause * 2, .seconds(10))
        }
    }

    /// Has the copy take the file's place, while the store has no connection.
    private func replaceFile(
        with encryption: OpenEncryption, _ cancellation: UpgradeCancellation
    ) throws -> EncryptionReport {
        do {
            return try withConnectionsClosedBlocking(waitingForReads: Self.patienceWithReads) { [backups] in
                // It reads the file, with the key that this has now.
                guard !backups.areRunning else { throw ReadsGoOn() }
                return try encryption.finish(&$0, UpgradeCancellation(anyOf: [cancellation, $1]))
            }
        } catch {
            // A store that has no connection until its next call would not keep another one from replacing the file.
            _ = try? writer.runBlocking(.read) { _ in }
            throw error
        }
    }

    /// Whether the log, which does not begin anew while a copy follows it, has become larger than the database.
    private func logIsTooLong() throws -> Bool {
        let log = try FileSystem.size(path + "-wal") ?? 0
        return try log > max(Self.mostLog, FileSystem.size(path) ?? 0)
    }

    /// In bytes.
    private static let mostLog: Int64 = 64 << 20

    private func postpone(_ reason: StoreError) {
        // It may take long, and the log would grow.
        conversion?.keep(nil)
        conversion?.wait(for: reason)
        events(.encryptionPostponed(reason))
    }

    private func holdWriter(_ cancellation: UpgradeCancellation) throws -> any WriterHold {
        try StoreWriterHold(writer, path: path, calledBy: nil, cancellation)
    }

    /// Runs `body`, which has the file open and which a suspension ends.
    private func running<Output>(_ cancellation: UpgradeCancellation, _ body: () throws -> Output) throws -> Output {
        try backups.run(cancellation, interrupted: writer.suspendedError) {
            if isClosed { throw writer.closedError }
            return try body()
        }
    }
}
