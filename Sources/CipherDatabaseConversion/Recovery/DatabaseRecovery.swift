internal import CipherErrors
package import CipherKeyProviders
internal import CipherRecovery
package import CipherSQLite
internal import CipherSQLiteFormat
internal import CipherSystemFiles

/// Creates a new, encrypted database from what a damaged one still contains.
///
/// The damaged file and the files beside it are only read. The new one is built and proven in a file without a name,
/// which is then renamed into place in one step that replaces nothing. Every row is compared with a second reading of
/// the damaged file.
package struct DatabaseRecovery {
    private let source: DatabasePaths
    private let provider: any KeyProvider
    private let formats: [CipherSettings]
    private let target: DatabasePaths
    private let targetProvider: any KeyProvider
    private let template: String?
    private let options: ConversionOptions
    /// The name of the table for rows that belong to no table.
    private let apart: String
    /// Creates the schema in an empty database, in place of a template; `nil` if no schema is known.
    package var makeSchema: ((Connection) throws -> Void)?
    /// Whether the new database has the cipher format of the damaged one, if that is known and can be written.
    package var keepsFormat = false
    /// Whether the damaged database may be unencrypted as far as the caller knows, so that the report need not say so.
    package var expectsPlaintext = false

    /// - Parameters:
    ///   - source: The damaged database.
    ///   - provider: Provides the key of the damaged database. It is called only if that database is encrypted.
    ///   - formats: The cipher settings that the caller named for the damaged database. Without them, settings with an
    ///     HMAC are found.
    ///   - target: The name of the new database.
    ///   - targetProvider: Provides the key of the new database, and may create it; `nil` to use the provider of the
    ///     damaged one.
    ///   - template: A healthy database with the same schema, plaintext or with the key of the damaged one; `nil` for
    ///     none.
    ///   - options: The options of the run. Its format is that of the new database.
    package init(
        of source: DatabasePaths, provider: any KeyProvider, formats: [CipherSettings], to target: String,
        targetProvider: (any KeyProvider)?, template: String?, options: ConversionOptions
    ) throws {
        self.source = source
        self.provider = options.waiting(for: provider)
        self.formats = formats
        self.target = try DatabasePaths(target)
        self.targetProvider = options.waiting(for: targetProvider ?? provider)
        self.template = template
        self.options = options
        apart = "lost_and_found"
    }

    /// Creates the recovery of a database that the new one will replace.
    init(
        inPlaceOf paths: DatabasePaths, provider: any KeyProvider, formats: [CipherSettings], template: String?,
        options: ConversionOptions
    ) {
        source = paths
        self.provider = options.waiting(for: provider)
        self.formats = formats
        target = paths
        targetProvider = self.provider
        self.template = template
        self.options = options
        // The name is one of CipherStore's own: the table is not part of any schema comparison, and is not dropped as
        // undeclared.
        apart = "cipherstore_lost_and_found"
    }

    /// Recovers the database.
    ///
    /// - Throws: ``StoreError``. The new file does not exist in this case.
    package func run() throws -> RecoveryReport {
        do {
            return try StoreError.typing(target.database, during: .conversion) { try recover() }
        } catch let error as StoreError where error.code == .cancelled {
            throw StoreError.cancelled(target.database)
        }
    }

    private func recover() throws -> RecoveryReport {
        let began = ContinuousClock.now
        let observer = UpgradeObserver(
            path: target.database, report: options.progress, cancellation: options.cancellation)
        try observer.checkCancellation()
        let folder = try target.openFolder()
        try UnpublishedFile.checkName(target, in: folder, besides: source.database)
        let opened = try open()
        try Preflight.checkRoom(for: opened.bytes, opened.newFormat, target)
        let keys = try keys(opened.newFormat)
        defer { keys.cancel() }
        let file = try UnpublishedFile(in: folder, target)
        do {
            var report = try observer.locating { try fill(file.content, opened, keys, observer).report }
            try observer.begin(.swapping)
            report.notes += try file.publish()
            observer.finish()
            report.seconds = (ContinuousClock.now - began).inSeconds
            return report
        } catch {
            file.remove()
            throw error
        }
    }

    /// A damaged database that is open for reading, and its state when it was opened.
    struct Opened {
        let damaged: DamagedSource
        fileprivate let template: SchemaTemplate?
        let marks: FileMarks
        /// The cipher settings of the new database.
        let newFormat: CipherSettings
        /// The size of the database with its log, in bytes.
        var bytes: Int64 { marks.bytes }
    }

    /// Opens the damaged database.
    ///
    /// - Throws: The same errors as ``DamagedSource/init(_:sizes:provider:formats:)``, and for the template the same
    ///   errors as for any database that is read.
    func open() throws -> Opened {
        try AttemptRecord.checkSidecars(source)
        let marks = try FileMarks(source)
        let template =
            try self.template.map { try SchemaTemplate($0, provider: provider, formats: formats, options) }
            ?? makeSchema.map { try SchemaTemplate(options.extensions, madeBy: $0) }
        var damaged = try DamagedSource(source, sizes: template?.geometry, provider: provider, formats: formats)
        if damaged.isPlaintext, !expectsPlaintext, !damaged.mayBeEncrypted {
            damaged.notes.append(DamagedSource.notEncrypted)
        }
        var newFormat = options.format
        if keepsFormat, !damaged.isPlaintext {
            if let format = damaged.format, format.canBeWritten {
                newFormat = format
            } else {
                damaged.notes.append(
                    "the new database has cipher format \(newFormat.compatibility), which differs from the format of "
                        + "the damaged database")
            }
        }
        return Opened(damaged: damaged, template: template, marks: marks, newFormat: newFormat)
    }

    /// Starts to derive the keys of the new database.
    func keys(_ format: CipherSettings) throws -> UpgradeKeys {
        let key = try targetProvider.checkedKey(for: .createOrExisting, database: target.database)
        try key.checkSalt(for: format, path: target.database)
        return try UpgradeKeys(
            key, again: try targetProvider.keyAskedAgain(key, database: target.database), settings: format)
    }

    /// Fills a new file with the content of the damaged database, proves it, and checks whether another connection
    /// wrote to the damaged one meanwhile.
    func fill(
        _ file: NewFile, _ opened: Opened, _ keys: UpgradeKeys, _ observer: UpgradeObserver
    ) throws -> Filled {
        observer.totalBytes = opened.bytes
        let filled: Filled
        do {
            filled = try make(opened, opened.damaged.pages, file, keys, observer)
        } catch {
            // If the database changes while it is read, the two readings differ.
            try opened.marks.check(source)
            throw error
        }
        try opened.marks.check(source)
        return filled
    }

    /// A new database with the content of the damaged one.
    struct Filled: ~Copyable {
        let proven: ProvenFile
        let report: RecoveryReport
    }

    // MARK: Reading

    private func reading<Source: PageSource>(
        _ damaged: DamagedSource, _ pages: Source, _ template: SchemaTemplate?, believesZeros: Bool = false,
        _ observer: UpgradeObserver
    ) throws -> DatabaseReading<Source> {
        var schema = try SchemaReading(in: pages, encoding: damaged.header?.textEncoding ?? template?.encoding)
        var forms = try forms(schema)
        if let template, schema.isDamaged || !forms.rejected.isEmpty {
            schema.add(template: template.entries, for: forms.rejected)
            forms = try self.forms(schema)
        }
        return DatabaseReading(
            pages, forms, schema.encoding, header: damaged.header, isHeaderProven: !damaged.hasReadableHeader,
            believesZeros: believesZeros || damaged.format?.isAuthenticated == true, isSchemaDamaged: schema.isDamaged,
            mayLackTables: schema.isDamaged && template == nil || forms.mayLackTables
        ) {
            try observer.checkCancellation()
        }
    }

    private func forms(_ schema: SchemaReading) throws -> SchemaForms {
        try SchemaForms(schema.entries, schema.encoding, extensions: options.extensions, path: source.database)
    }

    /// The faults of a database that its own pages reveal.
    struct Survey {
        /// A definition that SQLite does not accept, and the reason.
        let rejected: (definition: String, reason: String)?
        /// Reads the database completely, and returns whether pages are missing or damaged.
        let hasDamage: () throws -> Bool

        func isSound() throws -> Bool { try rejected == nil && !hasDamage() }
    }

    /// Reads the schema of a database.
    func survey(_ opened: Opened, _ observer: UpgradeObserver) throws -> Survey {
        func survey(_ pages: some PageSource) throws -> Survey {
            // SQLite may have written these zeros, so they are no proof of damage.
            let reading = try reading(opened.damaged, pages, opened.template, believesZeros: true, observer)
            let rejected = reading.forms.rejected.first
            return Survey(rejected: rejected.map { ("\($0.entry.type) \($0.entry.name)", $0.reason) }) {
                try reading.run { _ in }.hasDamage
            }
        }
        return try survey(opened.damaged.pages)
    }

    // MARK: Building and proving

    private func make(
        _ opened: Opened, _ pages: some PageSource, _ file: NewFile, _ keys: UpgradeKeys, _ observer: UpgradeObserver
    ) throws -> Filled {
        let (damaged, template) = (opened.damaged, opened.template)
        try observer.begin(.building)
        let reading = try reading(damaged, pages, template, observer)
        let (forms, encoding) = (reading.forms, reading.encoding)
        let key = try keys.building.wait()
        let (recovered, findings) = try ReadBack(paths: target, copy: file, key: key).lending { connection in
            let size = Int64(pages.geometry.pageSize) * Int64(pages.pageCount)
            try ConnectionProfile.recovering(size + Connection.size(source.database))
                .with(extensions: options.extensions).apply(to: connection)
            connection.setProgressHandler(every: 20_000) {
                observer.update(bytes: (try? file.size()) ?? 0)
                return !observer.isCancelled
            }
            let recovered = try RecoveredDatabase(
                connection, forms, encoding, header: damaged.header, apart: apart)
            let findings = try reading.run { try recovered.add($0) }
            try connection.sortingInFiles { try recovered.finish(findings) }
            return (recovered, findings)
        }
        try file.sync()
        try observer.begin(.proving)
        let proof = try prove(recovered, reading, file, keys, opened.newFormat, observer)
        var report = RecoverySummary(recovered, findings, forms, hasTemplate: template != nil)
            .report(path: target.database, source: source.database)
        report.notes = damaged.notes + report.notes + proof.notes + key.warnings
        if damaged.lacksSidecar || damaged.mayBeEncrypted || proof.areModulesDamaged { report.complete = false }
        report.bytesBefore = opened.bytes
        report.bytesAfter = try file.size()
        return Filled(proven: ProvenFile(file, key, proof.outcome), report: report)
    }

    /// Compares the new database with a second reading, and checks it with SQLite and SQLCipher.
    ///
    /// - Returns: The result of the comparison. Notes: SQLite's complaints about values that the damaged database already
    ///   contained, and the indexes that depend on how the app compares letters. Also whether a module finds its own
    ///   tables damaged.
    private func prove(
        _ recovered: RecoveredDatabase, _ reading: DatabaseReading<some PageSource>, _ file: NewFile,
        _ keys: UpgradeKeys, _ format: CipherSettings, _ observer: UpgradeObserver
    ) throws -> (outcome: RecoveryProof.Outcome, notes: [String], areModulesDamaged: Bool) {
        // SQLCipher derives the key itself, as it will for the next opening of the file.
        func open(_ extensions: SQLExtensions) throws -> Connection {
            try ProofConnection(
                path: target.database, key: keys.again, settings: format, extensions: extensions, copy: file
            ).open { observer.isCancelled }
        }
        let connection = try open(options.extensions)
        defer { connection.close() }
        let outcome: RecoveryProof.Outcome
        do {
            let proof = RecoveryProof(connection, recovered)
            _ = try reading.run { try proof.check($0) }
            outcome = try proof.finish()
        } catch let difference as RecoveryProof.Difference {
            throw failure(difference.detail)
        }
        try connection.forEachUnauthenticPage { throw failure($0) }
        let ofModules = try moduleComplaints(connection)
        let found = try complaints(connection)
        // Values that violate a definition come from the damaged database. The structure was created by this run.
        let others = found.filter {
            !IntegrityComplaints.isOfContent($0) && !$0.hasPrefix("non-unique entry in index ")
        }
        if let complaint = others.first { throw failure(complaint) }
        var notes = (found + ofModules).map { "the new database has the same fault as the damaged database: \($0)" }
        if let extensions = options.extensions.unicodeCases.last, try connection.mayFoldCaseInSchema() {
            let other = try open(extensions)
            defer { other.close() }
            let indexes = try IntegrityComplaints(other).indexes.sorted().joined(separator: ", ")
            if !indexes.isEmpty { notes.append(Self.builtWithOwnCase + indexes) }
        }
        return (outcome, notes, ofModules.contains { !IntegrityComplaints.isOfContent($0) })
    }

    private static let builtWithOwnCase =
        "these indexes were built with SQLite's own lower(), upper() and NOCASE, which change only ASCII letters; if the "
        + "app registers other versions, run REINDEX with them: "

    /// Returns the complaints of SQLite's check.
    ///
    /// Virtual tables are left out, because their modules complain about lost rows.
    private func complaints(_ connection: Connection) throws -> [String] {
        try connection.forgetModules()
        let found = try IntegrityComplaints(connection)
        if let damage = found.damage { throw failure(damage.message) }
        return found.kinds.keys.sorted().map(found.description)
    }

    /// Returns the complaints of modules about the tables in which they store their data.
    private func moduleComplaints(_ connection: Connection) throws -> [String] {
        guard Engine.current.checksTables else { return [] }
        return try virtualTables(connection).flatMap { table in
            do {
                return try check(table, connection)
            } catch let error as DatabaseError where !error.endsRun {
                return ["virtual table \(table): \(error.message)"]
            }
        }
    }

    private func virtualTables(_ connection: Connection) throws -> [SchemaName] {
        try connection.values(
            SchemaName.self, "SELECT name FROM sqlite_master WHERE type = 'table' AND coalesce(rootpage, 0) = 0")
    }

    private func check(_ table: SchemaName, _ connection: Connection) throws -> [String] {
        var found: [String] = []
        try connection.computingBySchema("PRAGMA integrity_check(\(table))") { row in
            let message = try row.get(String.self, at: 0)
            if message != "ok" { found.append(message.split(separator: "\n").joined(separator: "; ")) }
        }
        return found
    }

    private func failure(_ detail: String) -> StoreError {
        StoreError(
            .proofFailed, path: target.database, "the new database does not match what was read: \(detail)",
            advice: "check the disk and try again", changed: .nothing)
    }
}

/// The marks that show whether a database or the files beside it were written to.
struct FileMarks: Equatable {
    private let marks: [String]
    /// The size of the database and of its log, in bytes.
    let bytes: Int64

    init(_ paths: DatabasePaths) throws {
        let statuses = try [paths.database, paths.wal, paths.journal].map { try FileSystem.status($0) }
        marks = statuses.map { status in
            status.map { "\($0.identity) \($0.size) \($0.modified)" } ?? ""
        }
        bytes = statuses.prefix(2).reduce(0) { $0 + ($1?.size ?? 0) }
    }

    /// Checks that nothing has changed.
    ///
    /// - Throws: ``StoreError`` with the code `busy` if another connection wrote to the files.
    func check(_ paths: DatabasePaths) throws {
        guard try FileMarks(paths) == self else {
            throw StoreError.busy(
                paths.database, "another program wrote to the database while it was being read",
                retry: .afterEndingProgram)
        }
    }
}
