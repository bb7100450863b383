internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherHistory
internal import CipherPriorSystems
internal import CipherSQLite
public import CipherSchemaMigration

/// A plan of what opening a store would do, made without changing anything.
public struct StorePlan: Sendable, Encodable {
    /// What would happen to the file before its schema is examined.
    public enum Step: String, Sendable, Encodable {
        /// A new encrypted database would be created.
        case create
        /// A new plaintext database would be created.
        case createPlaintext
        /// A legacy plaintext file would be encrypted first.
        case encrypt
        /// The encrypted file would be opened.
        case open
        /// The key or cipher format of the encrypted file would be changed first.
        case rekey
        /// The encrypted file would be decrypted first, because encryption is off.
        case decrypt
        /// The plaintext file would be opened as it is, because encryption is off or has failed too often.
        case openPlaintext
    }

    /// The path of the database, with symbolic links resolved.
    public let path: String
    /// What would happen to the file.
    public let step: Step
    /// What would happen to the schema.
    public let schema: Plan
}

extension StoreOpening {
    /// Plans what ``run()`` would do, and rehearses the migration with its changes in memory.
    ///
    /// Conditions that can change at any time are not checked: free space, permissions, locks, and pages that only the
    /// conversion reads.
    ///
    /// - Parameters:
    ///   - rehearsalLimit: The maximum number of bytes that the rehearsal may change; 0 for no rehearsal.
    ///   - isAlone: Whether this process opens no other connection to the file meanwhile.
    /// - Throws: The errors with which ``run()`` refuses a file; ``StoreError`` with the code `needsRecovery` if a
    ///   journal must be rolled back first.
    package func plan(rehearsalLimit: Int = 0, isAlone: Bool = false) throws -> StorePlan {
        try checkInputs()
        let inspector = options.inspector(paths, isAlone: isAlone)
        guard let interrupted = try configuration.interruptedCopy(paths, busyTimeout: options.busyTimeout),
            let note = try interrupted.note(inspector.surface())
        else { return try plan(inspector, rehearsalLimit) }
        let isDatabase = try interrupted.finding(inspector.surface()) == .copy
        let source = isDatabase ? options.inspector(interrupted.copy) : inspector
        let plan: StorePlan
        do {
            plan = try self.plan(source, rehearsalLimit)
        } catch let error as StoreError where isDatabase && error.path == paths.database {
            // The file does not have that name yet.
            throw error.at(interrupted.copy.database)
        }
        var schema = plan.schema
        schema.notes.append(note)
        return StorePlan(path: plan.path, step: plan.step, schema: schema)
    }

    private func plan(_ inspector: Inspector, _ limit: Int) throws -> StorePlan {
        try resolver.resolve(inspector) { connection, facts, file in
            let (step, told) = try foresee(resolver.step(for: facts, inspector), connection, file)
            var schema = try schemaPlan(connection, step, recorded: facts.recorded, limit, file?.fileKey)
            schema.notes += told + [file?.fileKey.settings.authenticationWarning].compactMap { $0 }
            if file != nil, let note = try emptiness(connection, recorded: facts.recorded) { schema.notes.append(note) }
            return StorePlan(path: path, step: step, schema: schema)
        }.result
    }

    /// Returns the step that would finally be taken, with notes about it.
    ///
    /// If opening would refuse, postpone or skip a conversion, this does the same. No key is created.
    private func foresee(
        _ step: StorePlan.Step, _ connection: Connection, _ file: FileUnlocking.Unlocked?
    ) throws -> (StorePlan.Step, notes: [String]) {
        let preflight = Preflight(
            paths: paths, settings: options.format, keepBackup: false)
        func checkAttempts(_ kind: AttemptRecord.Kind) throws {
            try Attempts(paths: paths, options: options, kind: kind).check()
        }
        func told(ofKey hasKey: Bool) -> [String] {
            hasKey ? [] : ["there is no key yet: a key must be provided or created when the database is opened"]
        }
        switch step {
        case .open, .openPlaintext: return (step, [])
        case .createPlaintext:
            try preflight.checkNames()
            return (step, [])
        case .create:
            let notes = try told(ofKey: upgrade.hasFileKey())
            try preflight.checkNames()
            return (step, notes)
        case .encrypt:
            try preflight.checkNames()
            try preflight.checkSchema(connection)
            let notes = try told(ofKey: upgrade.hasFileKey())
            do {
                try checkAttempts(mayEncryptLater ? .lastStep : .conversion)
            } catch let error as StoreError where opensPlaintext(after: error) {
                return (.openPlaintext, notes + [StoreError.reason(error)])
            }
            return (step, notes)
        case .rekey, .decrypt:
            guard let file else { return (step, []) }
            do {
                let notes = step == .decrypt ? [] : try told(ofKey: keyChange.hasNewKey(for: file))
                try preflight.checkNames()
                try preflight.checkSchema(connection)
                try checkAttempts(.conversion)
                return (step, notes)
            } catch let error as StoreError where error.leavesFileUsable {
                return (.open, [StoreError.putOff(error, isDecryption: step == .decrypt)])
            }
        }
    }

    private func schemaPlan(
        _ connection: Connection, _ step: StorePlan.Step, recorded: SchemaVersion?, _ limit: Int,
        _ fileKey: FileKey?
    ) throws -> Plan {
        try prepare(connection)
        let migrator = SchemaMigrator(configuration: configuration)
        guard limit > 0 else { return try migrator.plan(connection, recorded: recorded) }
        // Commits that other connections make meanwhile belong to neither the plan nor the rehearsal.
        for _ in 0..<3 {
            let before = try connection.value(Int.self, "PRAGMA data_version")
            try connection.execute("BEGIN")
            let plan = Result {
                try connection.proveReadable()
                // Before a conversion, a plan is tried without rows, and the migration itself is rehearsed at the end.
                let isConverted = [.encrypt, .decrypt, .rekey].contains(step)
                let plan = try migrator.plan(connection, recorded: recorded, isTried: isConverted)
                guard !plan.isEmpty || !plan.everyLaunch.isEmpty else { return plan }
                return try rehearse(over: connection, limit, fileKey)
                    ?? unrehearsed(try migrator.plan(connection, recorded: recorded), limit)
            }
            if connection.isInTransaction { try connection.execute("COMMIT") }
            guard try connection.value(Int.self, "PRAGMA data_version") == before else { continue }
            return try plan.get()
        }
        throw StoreError.busy(
            paths.database, "another connection kept writing to the database during the rehearsal",
            retry: .afterClosing)
    }

    /// - Returns: `nil` if the rehearsal would change more than the limit.
    private func rehearse(over connection: Connection, _ limit: Int, _ fileKey: FileKey?) throws -> Plan? {
        try connection.rehearsing(limit: limit) { rehearsal in
            if let fileKey { try rehearsal.setKey(fileKey.key, settings: fileKey.settings) }
            try prepare(rehearsal)
        } _: {
            try rehearseSchema($0)
        }
    }

    private func unrehearsed(_ plan: Plan, _ limit: Int) -> Plan {
        var plan = plan
        plan.notes.append(
            "the migration was not rehearsed, because it would change more than \(limit >> 20) MiB; "
                + "its effect on the rows is unknown"
        )
        return plan
    }
}
