import CipherSQLite
internal import Foundation

/// Shows that the copy is the original, encrypted. Shares no connection, key object or plan with the builder.
///
/// Two threads: one compares every row of every table, in order and to the bit; the other has SQLCipher authenticate
/// every page and SQLite check the structure.
struct CopyProof {
    let source: String
    let copy: String
    /// The key as the provider gave it when asked again.
    let key: CipherKey
    let settings: CipherSettings
    let collations: [Collation]
    let observer: UpgradeObserver

    /// What was compared.
    struct Result {
        var tables = 0
        var rows: Int64 = 0
    }

    /// Compares, and throws ``StoreError`` with `proofFailed` naming the first difference.
    func run() throws -> Result {
        let structure = BackgroundCheck(StructureCheck(source: source, copy: copy, key: key, settings: settings, collations: collations))
        do {
            let result = try compareRows()
            try structure.wait()
            return result
        } catch {
            structure.cancel()
            throw error
        }
    }

    private func compareRows() throws -> Result {
        let original = try open(source, key: nil)
        defer { original.close() }
        // The derivation by libcrypto over the copy's own salt; the other thread has SQLCipher derive the key itself.
        let salt = try FileHeader(DatabaseFile(path: copy)).salt
        let rawKey = try salt.map { try key.rawKey(salt: $0, settings: settings) } ?? key
        let encrypted = try open(copy, key: rawKey)
        defer { encrypted.close() }
        watch(original)
        try compareSchema(original, encrypted)
        var result = Result()
        let names = try original.values(
            String.self, "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0 ORDER BY rowid")
        var seen: Int64 = 0
        for name in names {
            let columns = try TableColumns(name, schema: "main", original)
            let comparison = RowComparison(table: name, columns: columns, path: source)
            result.rows += try comparison.run(original, encrypted) { bytes in
                seen += bytes
                observer.update(bytes: seen)
                try observer.checkCancellation()
            }
            result.tables += 1
        }
        return result
    }

    private func open(_ path: String, key: CipherKey?) throws -> Connection {
        try ProofConnection.open(path, key: key, settings: settings, collations: collations)
    }

    private func watch(_ connection: Connection) {
        let observer = observer
        connection.setProgressHandler(every: 100_000) { !observer.isCancelled }
    }

    /// The schema table row by row, and the numbers of the header that SQL can reach.
    private func compareSchema(_ original: Connection, _ encrypted: Connection) throws {
        for pragma in ["user_version", "application_id", "schema_version", "encoding", "auto_vacuum"] {
            let sql = SQL(text: "PRAGMA \(pragma)")
            guard try original.value(Value.self, sql) == encrypted.value(Value.self, sql) else {
                throw StoreError.proof(source, "PRAGMA \(pragma) differs")
            }
        }
        let schema = SQL(text: "SELECT rowid, type, name, tbl_name, sql FROM sqlite_master ORDER BY rowid")
        var size: Int64 = 0
        try original.withStatement(schema) { left in
            try encrypted.withStatement(schema) { right in
                while true {
                    let more = try left.step()
                    guard try right.step() == more else { throw StoreError.proof(source, "the schema differs") }
                    guard more else { return }
                    for column in 0..<Int32(5) where !left.column(column, equals: right, column, size: &size) {
                        throw StoreError.proof(source, "the schema differs")
                    }
                }
            }
        }
    }
}

/// How the proof opens a file: for reading only.
enum ProofConnection {
    static func open(
        _ path: String, key: CipherKey?, settings: CipherSettings, collations: [Collation]
    ) throws -> Connection {
        let connection = try Connection(path: path, mode: .readOnly)
        connection.allowDoubleQuotedStrings()
        connection.distrustSchema()
        if let key { try connection.setKey(key, settings: settings) }
        for collation in collations { try connection.register(collation) }
        try connection.execute("PRAGMA cache_size = -2000")
        try connection.proveReadable()
        return connection
    }
}

/// Runs a check on a thread of its own.
private final class BackgroundCheck: @unchecked Sendable {
    // `outcome` is written by the thread before it signals and read after waiting.
    private var outcome: Swift.Result<Void, any Error> = .success(())
    private let done = DispatchSemaphore(value: 0)
    private let cancellation = UpgradeCancellation()

    init(_ check: StructureCheck) {
        let thread = Thread { [self] in
            outcome = Swift.Result { try check.run(cancellation) }
            done.signal()
        }
        thread.name = "CipherStore structure check"
        thread.stackSize = 4 << 20
        thread.start()
    }

    func wait() throws {
        done.wait()
        try outcome.get()
    }

    /// Ends the check and waits for it: the file may not be removed under it.
    func cancel() {
        cancellation.cancel()
        done.wait()
    }
}

extension StoreError {
    static func proof(_ path: String, _ difference: String) -> StoreError {
        StoreError(
            .proofFailed, path: path, "the encrypted copy is not equal to the original: \(difference)",
            advice: "the copy was discarded and nothing was changed; report this with the schema")
    }
}
