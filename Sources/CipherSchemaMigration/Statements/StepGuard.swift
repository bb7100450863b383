internal import CipherErrors
internal import CipherSQLText
internal import CipherSQLite

/// Keeps an app's own SQL and Swift code inside the migration's transaction.
///
/// While SQLite compiles a statement, it reports what the statement would do.
final class StepGuard {
    /// The part of the latest statement that was refused.
    private(set) var refusal: String?
    private let allowsSavepoints: Bool
    private let observe: (StatementAction) -> Void

    /// Creates a guard.
    ///
    /// - Parameters:
    ///   - allowsSavepoints: Whether savepoints are allowed: Swift code may nest transactions, which are then
    ///     savepoints.
    ///   - observe: Called with each action that is allowed.
    init(allowsSavepoints: Bool, observe: @escaping (StatementAction) -> Void = { _ in }) {
        self.allowsSavepoints = allowsSavepoints
        self.observe = observe
    }

    /// Pragmas that read, that are part of the transaction, or whose effect ends with it.
    private static let pragmas = Set(
        [
            "user_version", "application_id", "foreign_keys", "defer_foreign_keys", "legacy_alter_table", "table_info",
            "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo", "foreign_key_list",
            "foreign_key_check", "quick_check", "integrity_check",
        ].map { SQLName($0) })

    /// Pragmas that only read if they have no argument; modules query some of them for their tables.
    private static let readings = Set(["data_version", "page_size", "page_count", "encoding"].map { SQLName($0) })

    /// Runs `body`, and reports what was refused instead of SQLite's bare "not authorized".
    ///
    /// - Parameters:
    ///   - place: The place of the statement or step, such as `sql_update_3.plist[1]`.
    ///   - compiled: Called with each statement before it runs.
    func guarding<Result>(
        _ connection: Connection, _ place: String, compiled: (([UInt8]) throws -> Void)? = nil,
        _ body: () throws -> Result
    ) throws -> Result {
        do {
            return try connection.judging(by: allows, compiled: compiled, body)
        } catch let error as DatabaseError {
            guard let refusal, error.isPermission else { throw error }
            throw Self.refused(refusal, place, connection.path)
        }
    }

    /// Checks for VACUUM, which SQLite refuses only when it runs.
    static func checkText(_ statement: PlacedStatement, path: String?) throws {
        guard statement.sql.prefix(6).uppercased() == "VACUUM" else { return }
        throw refused("VACUUM", statement.place, path)
    }

    private static func refused(_ what: String, _ place: String, _ path: String?) -> StoreError {
        StoreError(
            .configuration, path: path,
            "\(place) cannot run \(what), because all steps run in one transaction",
            advice: "remove the statement from the step", changed: .nothing)
    }

    private func allows(_ action: StatementAction) -> Bool {
        switch action.kind {
        case .transaction: refusal = action.subject
        case .savepoint:
            guard !allowsSavepoints else {
                observe(action)
                return true
            }
            refusal = "SAVEPOINT"
        case .attach: refusal = "ATTACH or DETACH"
        case .pragma:
            let isRead = action.detail == nil && Self.readings.contains(SQLName(action.subject))
            guard !isRead, !Self.pragmas.contains(SQLName(action.subject)) else {
                observe(action)
                return true
            }
            refusal = "PRAGMA \(action.subject)"
        default:
            observe(action)
            return true
        }
        return false
    }
}
