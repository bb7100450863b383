import CipherSQLite

/// Has SQLCipher authenticate every page of the copy, and SQLite check its structure against the original's.
///
/// Real and healthy apps' files fail `integrity_check` (NULL in a NOT NULL column, say), so what counts is that the copy
/// has no complaint that the original does not have.
struct StructureCheck: Sendable {
    let source: String
    let copy: String
    let key: CipherKey
    let settings: CipherSettings
    let collations: [Collation]

    func run(_ cancellation: UpgradeCancellation) throws {
        let connection = try open(copy, key: key, cancellation)
        defer { connection.close() }
        if Engine.current.hasCipherIntegrityCheck, let page = try firstUnauthenticPage(connection) {
            throw StoreError.proof(source, page)
        }
        let found = try complaints(connection)
        guard !found.isClean else { return }
        let original = try open(source, key: nil, cancellation)
        defer { original.close() }
        let known = try complaints(original)
        if let new = found.kinds.first(where: { $0.value > known.kinds[$0.key, default: 0] }) {
            throw StoreError.proof(source, "integrity_check: \(new.key)")
        }
        guard found.failure == known.failure else {
            throw StoreError.proof(source, "integrity_check: \(found.failure ?? "fails for the original only")")
        }
    }

    /// Each row of `cipher_integrity_check` is a page that is not authentic; none means that all are.
    private func firstUnauthenticPage(_ connection: Connection) throws -> String? {
        try connection.value(String.self, "PRAGMA cipher_integrity_check")
    }

    private struct Complaints {
        /// Messages with their numbers taken out, and how often each came.
        var kinds: [String: Int] = [:]
        /// Why the check could not run, such as a function of the app that an index uses.
        var failure: String?
        var isClean: Bool { kinds.isEmpty && failure == nil }
    }

    private func complaints(_ connection: Connection) throws -> Complaints {
        var result = Complaints()
        for check in ["integrity_check", "quick_check"] {
            do {
                try connection.forEachRow(SQL(text: "PRAGMA \(check)(1000000000)")) { row in
                    let message = try row.get(String.self, at: 0)
                    guard message != "ok" else { return }
                    result.kinds[Self.withoutNumbers(message), default: 0] += 1
                }
                return result
            } catch let error as DatabaseError where error.code == DatabaseError.generic {
                // A function that is not registered ends the check; the quicker one does not look into indexes.
                result.failure = error.message
            }
        }
        return result
    }

    /// Row and page numbers differ between equal complaints.
    private static func withoutNumbers(_ message: String) -> String {
        var result = ""
        for character in message {
            guard character.isNumber else {
                result.append(character)
                continue
            }
            if result.last != "#" { result.append("#") }
        }
        return result
    }

    private func open(_ path: String, key: CipherKey?, _ cancellation: UpgradeCancellation) throws -> Connection {
        let connection = try ProofConnection.open(path, key: key, settings: settings, collations: collations)
        // Constraints on values are the rows' matter, and those are compared.
        try connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.setProgressHandler(every: 100_000) { !cancellation.isCancelled }
        return connection
    }
}
