internal import CipherSQLite

/// Runs the operations of a plan inside of the caller's transaction.
struct PlanExecutor {
    let connection: Connection

    /// - Throws: ``StoreError`` that names the operation; the caller rolls back.
    func apply(_ plan: Plan) throws {
        for operation in plan.operations {
            do {
                for sql in operation.sql { try connection.execute(SQL(text: sql)) }
            } catch let error as DatabaseError {
                throw StoreError(
                    migration: error, path: connection.path,
                    action: [operation.kind.rawValue, operation.subject].filter { !$0.isEmpty }.joined(separator: " "))
            }
        }
    }
}
