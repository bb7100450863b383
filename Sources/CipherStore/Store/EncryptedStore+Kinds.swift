internal import CipherDatabaseConversion
internal import CipherErrors
public import CipherKeyProviders
public import CipherPlatform
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherSystemFiles

extension EncryptedStore {
    // MARK: In memory

    /// Creates an in-memory store with the configuration's schema, for tests and previews.
    ///
    /// The store writes nothing to the disk, and is not encrypted.
    ///
    /// It is a fresh install, so the hooks for a fresh install run. Reads and writes take turns on one connection, so a
    /// read never runs at the same time as another closure of the store. Its content survives suspension and is
    /// discarded when the store is closed.
    ///
    /// - Throws: ``StoreError``, with the code `configuration` or `migration` if the schema cannot be created.
    public static func inMemory(_ configuration: Configuration) async throws -> EncryptedStore {
        try await DetachedThread.run { try makeInMemory(configuration) }
    }

    /// Creates a store as ``inMemory(_:)`` does, but blocks the calling thread.
    ///
    /// - Throws: The same errors as ``inMemory(_:)``.
    @available(*, noasync, message: "await inMemory(_:) instead")
    public static func inMemoryBlocking(_ configuration: Configuration) throws -> EncryptedStore {
        try makeInMemory(configuration)
    }

    private static func makeInMemory(_ configuration: Configuration) throws -> EncryptedStore {
        let memory = try MemoryDatabase()
        let migration = try StoreError.typing(":memory:") {
            let connection = try memory.connect(.migrating.with(extensions: configuration.extensions))
            defer { connection.close() }
            return try SchemaMigrator(configuration: configuration).migrate(connection) { nil }
        }
        return EncryptedStore(
            inMemory: StoreConnections(memory, configuration),
            report: OpenReport(
                outcome: .created, encryption: nil, migration: migration, warnings: migration.warnings))
    }

    // MARK: Reading only

    /// Opens, read-only, a database that an app has created and migrated: for a widget, an extension or a tool.
    ///
    /// Nothing is written, migrated or recorded. Each read opens and closes a connection, so between two reads no lock
    /// is held and no file is open; one read runs at a time. The files that SQLite creates to read the database, a
    /// `-shm` and an empty `-wal`, are removed after the read unless another process uses them. If the file has a key
    /// or cipher format other than the target one, which `open` would change, it is read as it is. An observation
    /// returns the present value, and further values only after ``checkForChanges()``.
    ///
    /// - Parameters:
    ///   - configuration: The configuration of the database.
    ///   - directory: The directory of the database file.
    ///   - keyProvider: The provider of the key, called on a separate thread; it is never called to create a key.
    ///   - options: The timeouts.
    /// - Throws: ``StoreError`` with the code `missingFile` if there is no file, `upgradeNeeded` if the file is
    ///   plaintext and must be encrypted or if its schema is not the target schema, or `needsRecovery` if the journal
    ///   of a crashed writer must be rolled back; otherwise the same errors as `open`. After `upgradeNeeded` and
    ///   `needsRecovery`, the app must first open the file with ``open(_:directory:keyProvider:options:progress:)``.
    ///   Also throws `CancellationError`.
    public static func openReadOnly(
        _ configuration: Configuration, directory: URL, keyProvider: any KeyProvider, options: Options = Options()
    ) async throws -> EncryptedStore {
        let folder = try directory.requiredPath()
        return try await DetachedThread.cancellable { cancellation in
            try StoreOpening(
                configuration: configuration, directory: folder, provider: keyProvider,
                options: options.upgrade(nil, cancellation), mayCreate: false
            ).openReadOnly(options.events)
        }
    }

    /// Opens a database as ``openReadOnly(_:directory:keyProvider:options:)`` does, but blocks the calling thread.
    ///
    /// - Throws: The same errors as that method.
    @available(*, noasync, message: "await openReadOnly(_:directory:keyProvider:options:) instead")
    public static func openReadOnlyBlocking(
        _ configuration: Configuration, directory: URL, keyProvider: any KeyProvider, options: Options = Options()
    ) throws -> EncryptedStore {
        try StoreOpening(
            configuration: configuration, directory: directory.requiredPath(), provider: keyProvider,
            options: options.upgrade(nil, nil), mayCreate: false
        ).openReadOnly(options.events)
    }
}

extension StoreOpening {
    /// Opens a file that can be read as it is; changes nothing.
    fileprivate func openReadOnly(_ tell: (@Sendable (StoreEvent) -> Void)?) throws -> EncryptedStore {
        let events = EventLog(database: path, tell: tell)
        return try events.opening {
            try openReadOnly(events)
        } report: {
            $0.report
        }
    }

    private func openReadOnly(_ events: EventLog) throws -> EncryptedStore {
        let (fileKey, report) = try StoreError.typing(path) { try findReadable() }
        let file = StoreFile(path, fileKey)
        _ = try file.key(busyTimeout: options.busyTimeout)
        let (paths, options, forms) = (paths, options, configuration.columnForms)
        return EncryptedStore(readOnly: file, events, report: report) { body in
            let key = try file.key(busyTimeout: options.busyTimeout)
            try ReadOnlyAccess.withConnection(
                paths, key, options.extensions, busyTimeout: options.busyTimeout, isAlone: false
            ) { connection in
                connection.columnForms = forms
                try connection.refuseWhatOutlastsLoans()
                try body(connection)
            }
        }
    }

    private func findReadable() throws -> (FileKey?, OpenReport) {
        try checkInputs()
        let inspector = options.inspector(paths)
        if let interrupted = try configuration.interruptedCopy(paths, busyTimeout: options.busyTimeout),
            try interrupted.note(inspector.surface()) != nil
        {
            throw upgradeNeeded("the app's own upgrade was interrupted")
        }
        let found = try resolver.resolve(inspector) { connection, facts, _ in
            switch try resolver.step(for: facts, inspector) {
            case .create, .createPlaintext: throw StoreError.missingFile(path)
            case .encrypt: throw upgradeNeeded("the file is plaintext and must be encrypted first")
            case .open, .rekey, .decrypt, .openPlaintext: break
            }
            let plan = try SchemaMigrator(configuration: configuration)
                .plan(connection, recorded: facts.recorded, isTried: false)
            guard plan.operations.isEmpty || plan.isRecordOnly else {
                let recorded = facts.recorded.map { "version \($0)" } ?? "no recorded version"
                throw upgradeNeeded("the schema has \(recorded) and must be migrated to version \(plan.to) first")
            }
            return plan
        }
        let (plan, facts) = (found.result, found.facts)
        return (
            found.file?.fileKey,
            OpenReport(
                outcome: found.file == nil ? .openedPlaintext : .opened, encryption: nil,
                migration: MigrationReport(from: facts.recorded, to: plan.to),
                warnings: [found.file?.fileKey.settings.authenticationWarning].compactMap { $0 }
                    + (found.file?.fileKey.warnings ?? []))
        )
    }

    private func upgradeNeeded(_ detail: String) -> StoreError {
        StoreError(
            .upgradeNeeded, path: path, detail, advice: "first open the database in the app with EncryptedStore.open",
            changed: .nothing)
    }
}
