internal import CipherErrors
internal import CipherPageOpening
internal import CipherSQLite
internal import CipherSQLiteFormat
internal import CipherSystemFiles

/// Builds a copy of a database and proves that it is equal to the database.
struct ProvenCopy {
    /// The path of the database to copy.
    let source: String
    /// The key of the database; `nil` for a plaintext one.
    ///
    /// The key has already opened the database.
    let sourceKey: FileKey?
    /// The path of the file that the copy will become, for errors.
    let target: String
    /// The cipher settings of the copy; `nil` for a plaintext one.
    let targetSettings: CipherSettings?
    var options: ConversionOptions
    /// Prevents other connections from committing, if they may write to the database; `nil` if the database is at rest.
    var holdingWriters: (() throws -> any WriterHold)?
    /// Called when the copy has been built but not proven yet.
    var whenBuilt: () throws -> Void = {}

    /// Fills the copy and proves that it is equal.
    ///
    /// If indexes of the original are damaged, the copy is built a second time, with its indexes filled from its rows,
    /// unless the options refuse that. Indexes that match the rows with one of ``SQLExtensions/unicodeCases`` are not
    /// damaged: the copy is then built again with these versions of the functions.
    ///
    /// - Parameter owner: The file whose owner and group the copy adopts; `nil` to use this user's.
    /// - Throws: ``StoreError``, with the code `corrupt` if an index's tree may hold a table's rows.
    func make(
        _ copy: NewFile, _ keys: UpgradeKeys?, owner: FileSystem.Status?, _ observer: UpgradeObserver,
        _ report: inout EncryptionReport
    ) throws -> Made {
        let copyKey = try keys?.building.wait()
        func makeWithUnicodeCase() throws -> Made? {
            guard let other = try withUnicodeCase(observer) else { return nil }
            try copy.empty()
            let made = try other.make(copy, keys, owner: owner, observer, &report)
            report.warnings.append(SQLExtensions.unicodeCaseWarning)
            return made
        }
        func attempt(rebuildsIndexes: Bool) throws -> CopyProof.Outcome {
            let original = try fill(copy, copyKey, owner: owner, rebuildsIndexes: rebuildsIndexes, observer)
            defer { original.end() }
            try observer.begin(.proving)
            return try prove(original, copy, keys, hasRebuiltIndexes: rebuildsIndexes, observer)
        }
        func rebuilding() throws -> CopyProof.Outcome {
            try readingOriginal(observer) { try checkIndexTrees($0) }
            try copy.empty()
            return try attempt(rebuildsIndexes: true)
        }
        let proven: CopyProof.Outcome
        var rebuilt: RebuiltIndexes?
        do {
            proven = try attempt(rebuildsIndexes: false)
        } catch let damage as CopyProof.DamagedIndexes {
            if let made = try makeWithUnicodeCase() { return made }
            guard options.onDamage != .refuse else {
                throw Self.refusal(
                    of: target, damage.complaints, in: damage.indexes,
                    losses: try possibleLosses(onlyPartial: false, observer))
            }
            proven = try rebuilding()
            rebuilt = RebuiltIndexes(damage)
        } catch let error as DatabaseError where error.isCorrupt && options.onDamage != .refuse {
            // The unreadable part may be an index, and the rows do not need indexes.
            proven = try rebuilding()
            rebuilt = RebuiltIndexes(after: error)
        }
        if !proven.healedIndexes.isEmpty, let made = try makeWithUnicodeCase() { return made }
        report.note(sourceKey?.settings, keys == nil ? nil : targetSettings)
        let losses = try possibleLosses(
            onlyPartial: rebuilt == nil && proven.healedIndexes.isEmpty, searchesPages: !proven.accountsForOriginal,
            observer)
        if options.onDamage == .refuse { try proven.refuseDamage(of: target, losses: losses) }
        report.add(proven, losses, rebuilt)
        report.warnings += copyKey?.warnings ?? []
        // No step may fail after the swap, so the size is read now.
        report.bytesAfter = try copy.size()
        return Made(proven: ProvenFile(copy, copyKey, proven), losses: losses)
    }

    /// Fills the copy, and leaves its proof to the caller.
    ///
    /// - Parameter rebuildsIndexes: Whether to fill the indexes from the rows, as those of the original are damaged.
    /// - Returns: The damage because of which the indexes had to be filled from the rows; `nil` if they were copied.
    /// - Throws: ``StoreError``.
    func makeUnproven(
        _ copy: NewFile, _ keys: UpgradeKeys?, owner: FileSystem.Status?, rebuildsIndexes: Bool,
        _ observer: UpgradeObserver
    ) throws -> RebuiltIndexes? {
        let copyKey = try keys?.building.wait()
        do {
            try fill(copy, copyKey, owner: owner, rebuildsIndexes: rebuildsIndexes, observer).end()
            return nil
        } catch let error as DatabaseError
            where error.isCorrupt && !rebuildsIndexes && options.onDamage != .refuse
        {
            // The unreadable part may be an index, and the rows do not need indexes.
            try copy.empty()
            try fill(copy, copyKey, owner: owner, rebuildsIndexes: true, observer).end()
            return RebuiltIndexes(after: error)
        }
    }

    /// - Returns: The settings with which the proof opens the original.
    private func fill(
        _ copy: NewFile, _ copyKey: FileKey?, owner: FileSystem.Status?, rebuildsIndexes: Bool,
        _ observer: UpgradeObserver
    ) throws -> ProofConnection {
        try observer.begin(.building)
        if let owner { try copy.setOwner(owner.owner, owner.group) }
        let hold = try holdingWriters?()
        defer { hold?.end() }
        let original = try build(copy, copyKey, rebuildsIndexes: rebuildsIndexes, hold, observer)
        do {
            try whenBuilt()
            return original
        } catch {
            original.end()
            throw error
        }
    }

    /// The result of making a copy.
    struct Made: ~Copyable {
        let proven: ProvenFile
        let losses: PossibleLosses
    }

    /// Searches the original for rows that the copy lacks.
    ///
    /// - Parameters:
    ///   - onlyPartial: Whether only partial indexes can have entries for missing rows.
    ///   - searchesPages: Whether to search the pages even if `onlyPartial` is set.
    private func possibleLosses(
        onlyPartial: Bool, searchesPages: Bool = true, _ observer: UpgradeObserver
    ) throws -> PossibleLosses {
        let searchesPages = searchesPages || !onlyPartial
        if let holdingWriters {
            // Without a turn among the writers, for example because the store is being suspended, nothing is searched.
            guard try searchesPages && originalPages() != nil, let hold = try? holdingWriters() else {
                return PossibleLosses()
            }
            defer { hold.end() }
            return PossibleLosses(hidden: try originalPages().map { try HiddenRows.find(in: $0, of: source) } ?? [])
        }
        return try readingOriginal(observer) { connection in
            try PossibleLosses.find(
                in: connection, searchesPages: searchesPages, of: target, onlyPartial: onlyPartial, originalPages)
        } ?? PossibleLosses()
    }

    /// Passes `body` a connection to the original.
    ///
    /// Returns `nil` without calling it if other connections may write to the original by now; the original then stays
    /// in place.
    private func readingOriginal<Result>(
        _ observer: UpgradeObserver, _ body: (Connection) throws -> Result
    ) throws -> Result? {
        guard holdingWriters == nil else { return nil }
        let connection = try original.open { observer.isCancelled }
        defer { connection.close() }
        return try body(connection)
    }

    /// Returns the same with the one of ``SQLExtensions/unicodeCases`` with which SQLite finds the fewest faults in the
    /// original's indexes; `nil` if it finds no fewer, or others, or if the schema uses none of the replaced functions.
    private func withUnicodeCase(_ observer: UpgradeObserver) throws -> ProvenCopy? {
        // Another connection may have written to the original since it was copied, which does not matter here.
        let hold: (any WriterHold)?
        do { hold = try holdingWriters?() } catch { return nil }
        defer { hold?.end() }
        /// Returns the kinds of faults in the indexes, with their numbers; `nil` if the check did not end.
        func faults(_ original: ProofConnection) throws -> [String: Int]? {
            let connection = try original.open { observer.isCancelled }
            defer { connection.close() }
            if let hold, hold.isWriteAheadLog {
                try connection.pinSnapshot()
                hold.end()
            }
            guard try connection.mayFoldCaseInSchema() else { return nil }
            let found = try IntegrityComplaints(connection, tables: connection.tablesWithRoots())
            guard found.damage == nil else { return nil }
            let unchecked = found.unchecked.map { ($0, 1) }
            return found.kinds.filter { IntegrityComplaints.mayBeAboutIndex($0.key) }.merging(unchecked) { $1 }
        }
        guard !options.extensions.unicodeCases.isEmpty, let all = try faults(original) else { return nil }
        var best: (copy: ProvenCopy, count: Int)?
        for extensions in options.extensions.unicodeCases {
            var other = self
            other.options.extensions = extensions
            guard let rest = try faults(other.original) else { continue }
            let count = rest.values.reduce(0, +)
            guard count < best?.count ?? all.values.reduce(0, +), rest.allSatisfy({ $1 <= all[$0, default: 0] })
            else { continue }
            best = (other, count)
        }
        return best?.copy
    }

    private func checkIndexTrees(_ connection: Connection) throws {
        guard let pages = try originalPages() else { return }
        _ = try IndexTree.foreignRecords(pages, connection, target)
    }

    /// Returns the pages of the original; `nil` if it has a log, because the file alone is then not the database.
    private func originalPages() throws -> (any PageSource)? {
        let file = try DatabaseFile(path: source)
        let size = try file.size()
        guard try Connection.size(source) == size else { return nil }
        let bytes = ReadBytes(size: size) { try file.fill($1, at: $0) }
        guard let sourceKey else { return try FilePages(bytes) }
        let settings = sourceKey.settings
        guard let geometry = PageGeometry(pageSize: settings.pageSize, reserved: settings.reservedBytes) else {
            return nil
        }
        let sealed = FilePages(bytes, geometry, pageCount: UInt32(clamping: size / Int64(settings.pageSize)))
        let pages = try EncryptedPages(sealed, key: sourceKey.key, settings: settings)
        try pages.adoptReservedSize()
        return pages
    }

    /// The error for damage that the options refuse.
    ///
    /// - Parameters:
    ///   - complaints: The damage on which no row depends.
    ///   - losses: The reasons why the copy may lack rows.
    ///   - doubts: The reasons why its rows may be wrong.
    static func refusal(
        of target: String, _ complaints: [String], in indexes: Set<String>, losses: PossibleLosses,
        doubts: [String] = []
    ) -> StoreError {
        if let first = (losses.descriptions + doubts).first {
            return StoreError(
                .corrupt, path: target, first,
                advice:
                    "run cipherstore recover or call DatabaseConverter.recover to see what the file still contains, or "
                    + "set `onDamage` to `rebuildIndexes` (command line: --on-damage rebuildIndexes) to convert what "
                    + "its tables contain",
                changed: .nothing)
        }
        let names = indexes.isEmpty ? "" : " (damaged indexes: \(indexes.sorted().joined(separator: ", ")))"
        return StoreError(
            .corrupt, path: target,
            "the database is damaged, but no row depends on the damaged part\(names): \(complaints.first ?? "")",
            advice: "set `onDamage` to `rebuildIndexes` (command line: --on-damage rebuildIndexes), or repair the "
                + "database with REINDEX and VACUUM and try again",
            changed: .nothing)
    }

    private var original: ProofConnection {
        ProofConnection(
            path: source, key: sourceKey?.key, settings: sourceKey?.settings ?? CipherSettings(),
            extensions: options.extensions, busyTimeout: options.busyTimeout)
    }

    /// Fills the copy.
    ///
    /// - Returns: The settings with which the proof opens the original, so that it sees the same state as the builder.
    private func build(
        _ copy: NewFile, _ copyKey: FileKey?, rebuildsIndexes: Bool, _ hold: (any WriterHold)?,
        _ observer: UpgradeObserver
    ) throws -> ProofConnection {
        var original = original
        let builder = CopyBuilder(
            source: source, sourceKey: sourceKey, copy: copy, target: target, copyKey: copyKey,
            extensions: options.extensions, header: try HeaderFields(of: source, key: sourceKey),
            busyTimeout: options.busyTimeout, rebuildsIndexes: rebuildsIndexes, isBesideWriters: hold != nil,
            observer: observer)
        let begun = try builder.begin()
        if let hold {
            try begun.connection.pinSnapshot()
            original = try original.pinning()
            if hold.isWriteAheadLog { hold.end() }
        }
        do {
            if hold != nil { try Preflight.checkSchema(begun.connection, source) }
            try builder.build(begun)
            return original
        } catch {
            original.end()
            throw error
        }
    }

    private func prove(
        _ original: ProofConnection, _ file: NewFile, _ keys: UpgradeKeys?, hasRebuiltIndexes: Bool,
        _ observer: UpgradeObserver
    ) throws -> CopyProof.Outcome {
        let sync = BackgroundTask("sync") { _ in try file.sync() }
        defer { sync.cancel() }
        func copy(_ key: CipherKey?) -> ProofConnection {
            ProofConnection(
                path: target, key: key, settings: targetSettings ?? CipherSettings(),
                extensions: options.extensions, copy: file)
        }
        // SQLCipher itself derives the key on one worker's connection, as it will for the next opening of the file.
        var proof = CopyProof(
            original: original, copy: copy(keys?.again), copyWithDerivedKey: copy(try keys?.proving.wait()),
            hasRebuiltIndexes: hasRebuiltIndexes, reader: options.proof, observer: observer)
        proof.checksOriginal = options.onDamage == .refuse
        let proven = try proof.run()
        try sync.wait()
        return proven
    }
}

extension CopyProof.Outcome {
    /// Refuses any damage to the original, including damage in parts that are rebuilt in every copy, such as partial
    /// indexes and the free list.
    ///
    /// - Throws: ``StoreError`` with the code `corrupt`.
    func refuseDamage(of path: String, losses: PossibleLosses) throws {
        guard !(losses.descriptions + doubts + healed).isEmpty else { return }
        throw ProvenCopy.refusal(of: path, healed, in: healedIndexes, losses: losses, doubts: doubts)
    }
}
