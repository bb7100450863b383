internal import CipherDatabaseConversion
internal import CipherPriorSystems
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation

/// A folder with the files of an app, and the app's configuration.
struct PriorFixture {
    let folder: TemporaryFolder
    var configuration: Configuration

    /// - Parameter example: A file in `Config/`.
    init(_ example: String) throws {
        folder = try TemporaryFolder()
        configuration = try Configuration(contentsOf: Repository.examples.appending(path: example))
    }

    var database: String { folder.path(configuration.databaseName) }

    /// Writes a plaintext database into the folder.
    ///
    /// - Parameter unclosed: Whether the files are copied while the connection is open, as a killed app leaves them.
    func write(
        _ name: String? = nil, journal: String = "DELETE", unclosed: Bool = false,
        _ make: (Connection) throws -> Void
    ) throws {
        let name = name ?? configuration.databaseName
        let file = try LegacyFile(named: name, unclosed: unclosed) { connection in
            _ = try connection.value(String.self, SQL(text: "PRAGMA journal_mode = \(journal)"))
            try make(connection)
        }
        for part in try file.folder.names {
            try FileManager.default.copyItem(atPath: file.folder.path(part), toPath: folder.path(part))
        }
    }

    /// A later release of the app, which answers that both tables stay.
    var keepingLeftoverRows: PriorFixture {
        guard case .tableVersions(var tables) = configuration.schema else { return self }
        for index in tables.indices { tables[index].leftoverRows = .keep }
        var later = self
        later.configuration.schema = .tableVersions(tables)
        return later
    }

    func opening() throws -> StoreOpening {
        var options = ConversionOptions()
        options.busyTimeout = .zero
        return try StoreOpening(
            configuration: configuration, directory: folder.url.path(percentEncoded: false),
            provider: TestKeys.provider(), options: options)
    }

    /// Opens the database as a launch of the app does.
    @discardableResult
    func open() throws -> OpenReport { try opening().run().report }

    func plan() throws -> StorePlan { try opening().plan() }

    /// Reads the database as it is now, encrypted or not.
    func read<Result>(_ body: (Connection) throws -> Result) throws -> Result {
        let connection = try Connection(path: database, mode: .readWrite)
        defer { connection.close() }
        if try !LegacyFile.startsAsPlaintext(database) {
            try connection.setKey(TestKeys.raw(), settings: CipherSettings())
        }
        return try body(connection)
    }

    /// The first column of every row, as text.
    func values(_ sql: String) throws -> [String] { try read { try Self.values(sql, $0) } }

    /// Returns the first column of every row of an open connection, as text.
    static func values(_ sql: String, _ connection: Connection) throws -> [String] {
        var values: [String] = []
        try connection.forEachRow(SQL(text: sql)) { row in
            switch row.value(at: 0) {
            case .null: values.append("NULL")
            case .integer(let integer): values.append("\(integer)")
            case .real(let real): values.append("\(real)")
            case .text(let text): values.append(text)
            case .blob(let bytes): values.append("\(bytes)")
            }
        }
        return values
    }

    /// Returns a folder of a fresh install of the same app.
    func fresh() throws -> PriorFixture {
        let fresh = PriorFixture(folder: try TemporaryFolder(), configuration: configuration)
        try fresh.open()
        return fresh
    }

    private init(folder: TemporaryFolder, configuration: Configuration) {
        self.folder = folder
        self.configuration = configuration
    }

    /// Makes a folder in memory with saved files, for tests of hundreds of states.
    init(_ files: FolderState, _ configuration: Configuration) throws {
        self.init(folder: try TemporaryFolder(inMemory: true), configuration: configuration)
        try files.write(to: folder)
    }

    func digest() throws -> FolderDigest { try FolderDigest(folder.url, ignoring: ["-shm"]) }

    /// Returns the shape of the schema, regardless of its exact SQL, without the objects that only this user has.
    func shape(without names: Set<String> = []) throws -> [String] {
        try read { connection in
            var lines: [String] = []
            var tables: [String] = []
            try connection.forEachRow(
                "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT LIKE 'cipherstore%' ORDER BY type, name"
            ) { row in
                let (type, name) = (try row.get(String.self, at: 0), try row.get(String.self, at: 1))
                guard !names.contains(name) else { return }
                if type == "table" { tables.append(name) }
                let text = type == "table" ? "" : try row.get(String?.self, at: 3) ?? ""
                lines.append("\(type) \(name) \(text.split(whereSeparator: \.isWhitespace).joined(separator: " "))")
            }
            for table in tables {
                for pragma in ["table_info", "foreign_key_list"] {
                    try connection.forEachRow("\(SQL(text: "PRAGMA \(pragma)"))(\(identifier: table))") { row in
                        lines.append(
                            "\(table) \(pragma) "
                                + (0..<row.count).map { "\(row.value(at: $0))" }.joined(separator: " "))
                    }
                }
            }
            return lines
        }
    }
}

/// A source whose plan fails at one position.
struct FailingSource: SchemaSource {
    let source: any SchemaSource
    let position: Int

    func plan(for state: DatabaseState) throws -> Plan {
        var plan = try source.plan(for: state)
        plan.operations.insert(
            Plan.Operation(.sql, object: "failure", sql: ["SELECT 1 FROM nosuch"], reason: "fails"),
            at: min(position, plan.operations.count))
        return plan
    }
}

extension PriorFixture {
    /// Makes the migration of the database fail at every position of its plan.
    ///
    /// Returns the positions after which the database had changed, and the number of positions.
    func positionsThatChange() throws -> (changed: [Int], count: Int) {
        let dump = try read { try DatabaseDump($0) }
        let count = try plan().schema.operations.count
        var changed: [Int] = []
        for position in 0..<max(count, 1) {
            let source = FailingSource(source: configuration.schemaSource, position: position)
            let migrator = SchemaMigrator(
                version: configuration.version, source: source, policy: configuration.destructiveChanges)
            let error = try storeError {
                try read { connection in
                    try migrator.migrate(connection) {
                        try configuration.readOwnRecord(from: connection, databasePath: database)
                    }
                }
            }
            guard error?.detail.contains("failure") == true, try read({ try DatabaseDump($0) }) == dump else {
                changed.append(position)
                continue
            }
        }
        return (changed, count)
    }
}
