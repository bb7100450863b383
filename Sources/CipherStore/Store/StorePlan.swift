package import CipherSQLite

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
    /// Plans what ``run()`` would do.
    ///
    /// - Parameters:
    ///   - isAlone: Whether no other connection of this process is opened to the file meanwhile.
    ///   - key: Gives the key; asked only where the file is encrypted.
    /// - Throws: ``StoreError`` as ``run()`` would for a file that is refused, and `needsRecovery` where a journal must
    ///   be rolled back first.
    package func plan(isAlone: Bool = false, key: () throws -> CipherKey) throws -> StorePlan {
        let inspector = Inspector(paths, collations: configuration.collations, isAlone: isAlone)
        guard let interrupted = try InterruptedCopy(configuration, paths),
            let note = try interrupted.note(inspector.surface())
        else { return try plan(inspector, key) }
        let isDatabase = try interrupted.isDatabase(inspector.surface())
        let source = isDatabase ? Inspector(interrupted.copy, collations: configuration.collations) : inspector
        let plan: StorePlan
        do {
            plan = try self.plan(source, key)
        } catch let error as StoreError where isDatabase && error.path == paths.database {
            // There is no file of that name yet.
            throw error.at(interrupted.copy.database)
        }
        var schema = plan.schema
        schema.notes.append(note)
        return StorePlan(path: plan.path, step: plan.step, schema: schema)
    }

    private func plan(_ inspector: Inspector, _ key: () throws -> CipherKey) throws -> StorePlan {
        let surface = try inspector.surface()
        switch surface {
        case .missing, .empty, .staleSidecar:
            let facts = Decision.Facts(surface: surface)
            let step = try step(for: facts, inspector)
            let connection = try ScratchDatabase([]).connection
            defer { connection.close() }
            let recorded = try configuration.recordedVersion.read(from: connection, databasePath: paths.database)
            return try schemaPlan(connection, step, recorded: recorded)
        case .plaintext:
            let plan = try inspector.readingPlaintext { connection in
                let recorded = try recordedVersion(connection)
                let facts = Decision.Facts(
                    surface: surface, recorded: recorded,
                    stamp: try HistoryTable.stamp(connection))
                return try schemaPlan(connection, try step(for: facts, inspector), recorded: recorded)
            }
            guard let plan else { throw inspector.needsRecovery() }
            return plan
        case .opaque(let hasPlaintextHeader):
            if let plan = try encryptedPlan(inspector, try key(), hasPlaintextHeader: hasPlaintextHeader) {
                return plan
            }
            guard let previous = try provider.checkedPreviousKey(database: paths.database),
                let plan = try encryptedPlan(
                    inspector, previous, isPrevious: true, hasPlaintextHeader: hasPlaintextHeader)
            else { throw inspector.keyDoesNotFit() }
            return plan
        }
    }

    /// The plan for an encrypted file; `nil` where the key does not fit.
    private func encryptedPlan(
        _ inspector: Inspector, _ key: CipherKey, isPrevious: Bool = false, hasPlaintextHeader: Bool
    ) throws -> StorePlan? {
        for settings in configuration.encryption.formats {
            let plan = try inspector.readingEncrypted(
                key: key, settings: settings, hasPlaintextHeader: hasPlaintextHeader
            ) { connection, fileKey in
                let recorded = try recordedVersion(connection)
                let facts = Decision.Facts(
                    surface: .opaque(hasPlaintextHeader: hasPlaintextHeader), recorded: recorded, keyFits: true)
                var step = try step(for: facts, inspector)
                if step == .open, isChangeWanted(from: fileKey.settings, hasPreviousKey: isPrevious) { step = .rekey }
                let plan = try schemaPlan(connection, step, recorded: recorded)
                guard let warning = try emptiness(connection, recorded: recorded) else { return plan }
                var schema = plan.schema
                schema.notes.append(warning)
                return StorePlan(path: plan.path, step: plan.step, schema: schema)
            }
            if let plan { return plan }
        }
        return nil
    }

    private func schemaPlan(
        _ connection: Connection, _ step: StorePlan.Step, recorded: SchemaVersion?
    ) throws -> StorePlan {
        try prepare(connection)
        return StorePlan(
            path: paths.database, step: step,
            schema: try SchemaMigrator(configuration: configuration).plan(connection, recorded: recorded))
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
