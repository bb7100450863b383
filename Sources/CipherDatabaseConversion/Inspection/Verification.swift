internal import CipherCatalog
internal import CipherErrors
package import CipherKeyProviders
package import CipherSQLite
internal import CipherSQLiteFormat
internal import CipherSystemFiles

/// The result of checking a whole database: the authenticity of every page, and the structure.
///
/// It contains names of tables and indexes, and no stored value.
public struct Verification: Sendable, Encodable {
    /// The maximum number of complaints that are kept.
    public static let limit = 100

    /// The path of the database, without symbolic links.
    public let path: String
    /// Whether the file is encrypted, plaintext or empty.
    public let state: FileState
    /// The cipher format that the key opened.
    public let cipherCompatibility: Int?
    /// The pages that were authenticated; `nil` for a file that is not encrypted, and if the check was not completed or
    /// found a page that is not authentic.
    ///
    /// Before SQLCipher 4, it is also `nil` if there are complaints of any kind.
    public private(set) var authentication: PageAuthentication?
    /// The faults of the file, up to ``limit``.
    public private(set) var complaints: [String] = []
    /// Whether there are more faults than ``complaints`` contains.
    public private(set) var isTruncated = false
    /// The parts that could not be checked, and content that undamaged databases have too: values that the schema forbids,
    /// and full-text indexes that do not match their text.
    public private(set) var warnings: [String] = []

    /// Whether no fault was found.
    public var isSound: Bool { complaints.isEmpty }

    /// Checks a database, and changes nothing.
    ///
    /// - Parameters:
    ///   - provider: Provides the key. It is called only if the file is not plaintext.
    ///   - formats: The cipher settings to try on an opaque file, in order.
    ///   - extensions: The app's own extensions, which may be needed to check its schema.
    ///   - busyTimeout: How long to wait for other connections to the file.
    ///   - isAlone: Whether this process opens no other connection to the file meanwhile.
    /// - Throws: ``StoreError`` if the file cannot be opened. Faults inside the file are complaints.
    package static func run(
        at paths: DatabasePaths, provider: any KeyProvider, formats: [CipherSettings],
        extensions: SQLExtensions = SQLExtensions(), busyTimeout: Duration = .seconds(5), isAlone: Bool = false
    ) throws -> Verification {
        func check(_ extensions: SQLExtensions) throws -> Verification {
            try self.check(paths, provider, formats, extensions, busyTimeout, isAlone)
        }
        let found = try check(extensions)
        guard found.complaints.contains(where: { $0.contains(" missing from index ") }) else { return found }
        for extensions in extensions.unicodeCases {
            guard var again = try? check(extensions), again.isSound else { continue }
            again.warnings.append(SQLExtensions.unicodeCaseWarning)
            return again
        }
        return found
    }

    private static func check(
        _ paths: DatabasePaths, _ provider: any KeyProvider, _ formats: [CipherSettings], _ extensions: SQLExtensions,
        _ busyTimeout: Duration, _ isAlone: Bool
    ) throws -> Verification {
        let reader = DatabaseReader(
            Inspector(paths, extensions: extensions, busyTimeout: busyTimeout, isAlone: isAlone))
        do {
            let losesCommits = try LostCommits.exist(paths)
            return try reader.readOpened(provider: provider, formats: formats) { connection, key in
                var found = try Verification(connection, key, path: reader.path)
                if losesCommits { found.complain(LostCommits.finding) }
                return found
            }
        } catch let error as DatabaseError {
            throw reader.failure(error)
        }
    }

    private var unfinished: DatabaseError?
    /// Whether modules of virtual tables check their own tables too.
    ///
    /// If these are damaged, FTS5 may ask for any amount of memory.
    private var checksModules = false
    private static let ofContent = "the stored content does not fit the schema: "

    private enum CodingKeys: String, CodingKey {
        case path, state, cipherCompatibility, authentication, complaints, isTruncated, warnings
    }

    private init(_ connection: Connection, _ key: FileKey?, path: String) throws {
        self.path = path
        let settings = key?.settings
        let isEmpty = try settings == nil && FileSystem.size(path) == 0
        state = settings != nil ? .encrypted : isEmpty ? .empty : .plaintext
        cipherCompatibility = settings?.compatibility
        // Both checks run in one transaction, so that no writer changes pages between them. The transaction ends with
        // the connection, because a connection that hit a damaged page can run no further statement.
        try connection.execute("BEGIN")
        // The transaction begins with the first read, for which a sound first page suffices.
        _ = try collect { _ in _ = try connection.value(Int64.self, "PRAGMA user_version") }
        if let warning = settings?.authenticationWarning {
            warnings.append(warning)
            authentication = PageAuthentication.none
        } else if let settings {
            let isComplete = try collect { complain in
                for complaint in try Self.unauthenticPages(connection, path) { try complain(complaint) }
            }
            let hasLog = try Connection.size(path) != FileSystem.size(path)
            let checked = PageAuthentication(settings)
            authentication =
                !isComplete || !complaints.isEmpty ? nil : hasLog && checked == .everyPage ? .everyPageInUse : checked
        }
        try checkStructure(connection, key)
        if try !collect({ _ in try connection.checkAuthenticity() }) { authentication = nil }
        // Without SQLCipher's own check of all pages, only the structure shows which pages could be read.
        if !Engine.current.hasCipherIntegrityCheck, !complaints.isEmpty { authentication = nil }
    }

    /// Returns the complaints of SQLCipher's check of all pages.
    ///
    /// SQLCipher checks the pages of the file; those in the log are checked as they are read. After a change of the key,
    /// the pages in the file may have the former key. The check takes no lock, so a checkpoint of another process may be
    /// writing or cutting off a page while the page is read. Such a complaint is not repeated by the next check.
    private static func unauthenticPages(_ connection: Connection, _ path: String) throws -> [String] {
        var confirmed: [String]?
        for _ in 1...3 {
            let log = try SidecarFile(DatabasePaths(path).wal)
            let logged = try log.flatMap { try LogHeader($0)?.committedPages(in: $0) }?.offsets.keys.map { $0 }
            var found: [String] = []
            try connection.forEachUnauthenticPage(replaced: Set(logged ?? [])) { found.append($0) }
            let all = Set(found)
            confirmed = confirmed.map { $0.filter(all.contains) } ?? found
            if confirmed?.isEmpty != false || log == nil { break }
        }
        return confirmed ?? []
    }

    private mutating func checkStructure(_ connection: Connection, _ key: FileKey?) throws {
        checksModules =
            (try? connection.exists("SELECT 1 FROM sqlite_master WHERE type = 'table' AND rootpage = 0")) ?? false
        // A connection that hit a damaged page can run no further statement.
        let lacksPageUses = (try? connection.mayLeaveOutPageUses()) ?? false
        defer { checksModules = false }
        // SQLite ends the check after a number of complaints, most of which may concern values.
        let isChecked = try collectLeavingOutModules("PRAGMA integrity_check(1000000000)", connection)
        let reason = unfinished
        if lacksPageUses { try checkPageUses(connection, key) }
        guard !isChecked, let reason else { return }
        let tables = try Engine.current.checksTables ? uncheckedTables(connection) : []
        // If a collation of the app is not registered here, the quicker check fails before it begins. It compares nothing,
        // but must find every collation; these stand-ins are never used to sort.
        do {
            for name in try SchemaCollations.missing(connection) {
                try connection.register(Collation(name: name) { _, _ in 0 })
            }
        } catch let error as DatabaseError {
            // A connection that hit a damaged page can run no further statement, and returns no more precise reason.
            return complain("the structure of the database could not be checked: \(error.message)")
        }
        let isSound = try collectLeavingOutModules("PRAGMA quick_check(1000000000)", connection)
        if let reason = unfinished, !isSound, !reason.isTooBig {
            complain("the structure of the database could not be checked: \(reason.message)")
        } else if !isSound {
            // A table that computes a value longer than the file prevents the check of the whole file.
            if !lacksPageUses { try checkPageUses(connection, key) }
            for table in tables where try !collect("PRAGMA quick_check(\(table))", connection) {
                guard let reason = unfinished else { continue }
                let message = "table \(table) could not be checked: \(reason.message)"
                if !reason.isTooBig {
                    complain(message)
                } else if warnings.count < Self.limit {
                    warnings.append(message)
                }
            }
        }
        if !Engine.current.checksTables {
            warnings.append("the content of the indexes could not be checked: \(reason.message)")
        }
    }

    /// Checks each table alone, and returns those whose indexes cannot be compared with the rows.
    private mutating func uncheckedTables(_ connection: Connection) throws -> [SchemaName] {
        try connection.tablesWithRoots().filter { table in
            guard try !collect("PRAGMA integrity_check(\(table))", connection), let reason = unfinished else {
                return false
            }
            if warnings.count < Self.limit {
                warnings.append("the indexes of table \(table) could not be checked: \(reason.message)")
            }
            return true
        }
    }

    /// Checks that each page is used, and only once, and that the free list has the length that the header states.
    private mutating func checkPageUses(_ connection: Connection, _ key: FileKey?) throws {
        _ = try collect("PRAGMA integrity_check(sqlite_master)", connection)
        _ = try collect { [path] complain in
            for message in try PageUseComplaints.find(connection, path, key) { try complain(message) }
        }
    }

    /// Collects the complaints of a check; if a full-text table cannot be opened, those about everything else.
    private mutating func collectLeavingOutModules(_ check: SQL, _ connection: Connection) throws -> Bool {
        let isChecked = try collect(check, connection)
        guard !isChecked, checksModules, let reason = unfinished, reason.isOutOfMemory || reason.isOfTextDefinition
        else { return isChecked }
        warnings.append("full-text tables could not be checked: \(reason.message)")
        try connection.forgetModules()
        checksModules = false
        return try collect(check, connection)
    }

    /// Collects the complaints of a check.
    ///
    /// Returns whether the check ran. If it could not, ``unfinished`` holds the reason.
    private mutating func collect(_ check: SQL, _ connection: Connection) throws -> Bool {
        var content: Set<String> = []
        defer {
            for message in content.sorted() where !warnings.contains(Self.ofContent + message) {
                if warnings.count < Self.limit { warnings.append(Self.ofContent + message) }
            }
        }
        return try collect { complain in
            try connection.computingBySchema(check) { row in
                let message = try row.get(String.self, at: 0)
                if IntegrityComplaints.isOfContent(message) {
                    content.insert(message)
                } else if message != "ok" {
                    try complain(message)
                }
            }
        }
    }

    private mutating func collect(_ check: ((String) throws -> Void) throws -> Void) throws -> Bool {
        unfinished = nil
        do {
            try check { complain($0) }
            return true
        } catch let error as DatabaseError where error.isBusy || error.isOutOfMemory && !checksModules {
            throw StoreError(error, path: path, during: .use)
        } catch let error as DatabaseError
            where error.code == DatabaseError.generic || error.isOutOfMemory || error.isTooBig && !error.isBeyondTime
        {
            // An undamaged database may compute values that are longer than its file.
            unfinished = error
        } catch let error as DatabaseError {
            complain("the check could not be completed: \(error.message)")
        }
        return false
    }

    private mutating func complain(_ message: String) {
        guard !complaints.contains(message) else { return }
        guard complaints.count < Self.limit else {
            isTruncated = true
            return
        }
        complaints.append(message)
    }
}
