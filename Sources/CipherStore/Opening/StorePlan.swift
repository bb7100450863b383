internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherHistory
internal import CipherKeyProviders
internal import CipherPriorSystems
package import CipherSQLite
package import CipherSchemaMigration

/// What opening a store would do, found without changing anything.
package struct StorePlan: Sendable, Encodable {
    /// What would happen to the file before its schema is looked at.
    package enum Step: String, Sendable, Encodable {
        /// A new encrypted database would be made.
        case create
        /// A new plaintext database would be made.
        case createPlaintext
        /// A legacy plaintext file would be encrypted first.
        case encrypt
        /// The encrypted file would be opened.
        case open
        /// The encrypted file would be given another key or cipher format first.
        case rekey
        /// The encrypted file would be decrypted first, for encryption is off.
        case decrypt
        /// The plaintext file would be opened, for encryption is off.
        case openPlaintext
    }

    /// The database, without symbolic links.
    package let path: String
    /// What would happen to the file.
    package let step: Step
    /// What would happen to the schema.
    package let schema: Plan
}

extension StoreOpening {
    /// Plans what ``run()`` would do, and runs the migration with its changes in memory.
    ///
    /// What depends on the moment is not asked: free space, permissions, locks, and pages that only the conversion reads.
    ///
    /// - Parameters:
    ///   - rehearsalLimit: How many bytes the rehearsal may change; with 0 there is none.
    ///   - isAlone: Whether no other connection of this process is opened to the file meanwhile.
    ///   - key: Gives the key; asked only where the file is encrypted.
    /// - Throws: ``StoreError`` as ``run()`` would for a file that is refused, and `needsRecovery` where a journal must
    ///   be rolled back first.
    package func plan(
        rehearsalLimit: Int = 0, isAlone: Bool = false, key: () throws -> CipherKey
    ) throws -> StorePlan {
        let inspector = Inspector(paths, collations: configuration.collations, isAlone: isAlone)
        guard let interrupted = try configuration.interruptedCopy(paths),
            let note = try interrupted.note(inspector.surface())
        else { return try plan(inspector, rehearsalLimit, key) }
        let isDatabase = try interrupted.finding(inspector.surface()) == .copy
        let source = isDatabase ? Inspector(interrupted.copy, collations: configuration.collations) : inspector
        let plan: StorePlan
        do {
            plan = try self.plan(source, rehearsalLimit, key)
        } catch let error as StoreError where isDatabase && error.path == paths.database {
            // There is no file of that name yet.
            throw error.at(interrupted.copy.database)
        }
        var schema = plan.schema
        schema.notes.append(note)
        return StorePlan(path: plan.path, step: plan.step, schema: schema)
    }

    private func plan(_ inspector: Inspector, _ limit: Int, _ key: () throws -> CipherKey) throws -> StorePlan {
        let surface = try inspector.surface()
        switch surface {
        case .missing, .empty, .staleSidecar:
            let facts = Decision.Facts(surface: surface)
            let step = try step(for: facts, inspector)
            let connection = try ScratchDatabase([]).connection
            defer { connection.close() }
            let recorded = try configuration.readOwnRecord(from: connection, databasePath: paths.database)
            return try schemaPlan(connection, step, recorded: recorded, limit)
        case .plaintext:
            let plan = try inspector.readingPlaintext { connection in
                let facts = try facts(of: connection, surface)
                let step = try step(for: facts, inspector)
                if step == .encrypt { try checkSchemaFitsCopy(connection) }
                return try schemaPlan(connection, step, recorded: facts.recorded, limit)
            }
            guard let plan else { throw inspector.needsRecovery() }
            return plan
        case .opaque(let hasPlaintextHeader):
            if let plan = try encryptedPlan(inspector, limit, try key(), hasPlaintextHeader: hasPlaintextHeader) {
                return plan
            }
            guard let previous = try provider.checkedPreviousKey(database: paths.database),
                let plan = try encryptedPlan(
                    inspector, limit, previous, isPrevious: true, hasPlaintextHeader: hasPlaintextHeader)
            else { throw inspector.keyDoesNotFit() }
            return plan
        }
    }

    /// The plan for an encrypted file; `nil` where the key does not fit.
    private func encryptedPlan(
        _ inspector: Inspector, _ limit: Int, _ key: CipherKey, isPrevious: Bool = false, hasPlaintextHeader: Bool
    ) throws -> StorePlan? {
        for settings in configuration.encryption.formats {
            let plan = try inspector.readingEncrypted(
                key: key, settings: settings, hasPlaintextHeader: hasPlaintextHeader
            ) { connection, fileKey in
                let facts = try facts(of: connection, .opaque(hasPlaintextHeader: hasPlaintextHeader))
                let recorded = facts.recorded
                var step = try step(for: facts, inspector)
                if step == .open, isChangeWanted(from: fileKey.settings, hasPreviousKey: isPrevious) { step = .rekey }
                if step != .open { try checkSchemaFitsCopy(connection) }
                let plan = try schemaPlan(connection, step, recorded: recorded, limit, fileKey)
                guard let warning = try emptiness(connection, recorded: recorded) else { return plan }
                var schema = plan.schema
                schema.notes.append(warning)
                return StorePlan(path: plan.path, step: plan.step, schema: schema)
            }
            if let plan { return plan }
        }
        return nil
    }

    /// What a conversion would refuse is refused by the plan.
    private func checkSchemaFitsCopy(_ connection: Connection) throws {
        try Preflight(
            paths: paths, settings: options.format, keepBackup: false, collations: options.collations
        ).checkSchema(connection)
    }

    private func schemaPlan(
        _ connection: Connection, _ step: StorePlan.Step, recorded: SchemaVersion?, _ limit: Int,
        _ fileKey: FileKey? = nil
    ) throws -> StorePlan {
        try prepare(connection)
        let migrator = SchemaMigrator(configuration: configuration)
        guard limit > 0 else {
            return StorePlan(
                path: paths.database, step: step, schema: try migrator.plan(connection, recorded: recorded))
        }
        // What others commit meanwhile belongs to neither the plan nor the rehearsal.
        for _ in 0..<3 {
            let before = try connection.value(Int.self, "PRAGMA data_version")
            try connection.execute("BEGIN")
            let plan = Result {
                try connection.proveReadable()
                // Before a conversion a plan is tried without rows, and the migration itself comes at its end.
                let isConverted = [.encrypt, .decrypt, .rekey].contains(step)
                let plan = try migrator.plan(connection, recorded: recorded, isTried: isConverted)
                guard !plan.isEmpty || !plan.everyLaunch.isEmpty else { return plan }
                return try rehearse(over: connection, limit, fileKey)
                    ?? unrehearsed(try migrator.plan(connection, recorded: recorded), limit)
            }
            if connection.isInTransaction { try connection.execute("COMMIT") }
            guard try connection.value(Int.self, "PRAGMA data_version") == before else { continue }
            return StorePlan(path: paths.database, step: step, schema: try plan.get())
        }
        throw StoreError(
            .busy, path: paths.database, "other connections went on writing to the database during the rehearsal",
            advice: "try again, or close them", changed: .nothing)
    }

    /// - Returns: `nil` where the rehearsal would change more than the limit.
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
            "not rehearsed: the migration would change more than \(limit >> 20) MiB, so what the rows say is not known")
        return plan
    }

    private func step(for facts: Decision.Facts, _ inspector: Inspector) throws -> StorePlan.Step {
        switch Decision.make(facts, configuration) {
        case .create: return .create
        case .createPlaintext: return .createPlaintext
        case .encrypt: return .encrypt
        case .open: return .open
        case .decrypt: return .decrypt
        case .openPlaintext: return .openPlaintext
        case .refuse(let code): throw refusal(code, facts, inspector)
        }
    }
}
