internal import CipherSQLite

/// Runs the operations of a plan inside of the caller's transaction.
struct PlanExecutor {
    let connection: Connection

    /// - Throws: ``StoreError`` that names the operation; the caller rolls back.
    func apply(_ operations: [Plan.Operation]) throws {
        // What goes on after SQLite has ended the transaction would be committed bit by bit.
        let required = connection.requiresTransaction
        connection.requiresTransaction = true
        defer { connection.requiresTransaction = required }
        for operation in operations {
            do {
                try run(operation)
                try checkTransaction(operation)
            } catch let error as DatabaseError {
                throw StoreError(migration: error, path: connection.path, action: operation.title)
            }
        }
    }

    private func checkTransaction(_ operation: Plan.Operation) throws {
        guard !connection.isInTransaction else { return }
        throw StoreError(
            .migration, path: connection.path, "\(operation.title) ended the migration's transaction",
            advice: "take COMMIT and ROLLBACK out of it; check the database, for what ran before may have been kept")
    }

    /// What is CipherStore's own ends, also in a file whose pages lead back to each other; how long a step of the app's may
    /// take, only the app knows.
    private func run(_ operation: Plan.Operation) throws {
        guard operation.kind == .sql || operation.kind == .swift else {
            return try connection.withinStepsForRows { try keepingRows(of: operation) { try runFreely(operation) } }
        }
        try StepGuard(allowsSavepoints: operation.kind == .swift)
            .guarding(connection, operation.subject) { try runFreely(operation) }
    }

    private func runFreely(_ operation: Plan.Operation) throws {
        for sql in operation.sql { try connection.execute(SQL(text: sql)) }
        guard let action = operation.action else { return }
        do {
            try connection.lend(action.body)
        } catch let error as DatabaseError {
            throw error
        } catch let error as StoreError {
            throw error
        } catch {
            // The type alone: what an error of the app says may hold values.
            throw StoreError(
                .migration, path: connection.path,
                "the schema migration failed at \(operation.title): \(action.name) threw \(type(of: error))",
                advice: "correct the step; nothing was changed")
        }
    }

    /// A rebuilt table has the rows that it had.
    private func keepingRows(of operation: Plan.Operation, _ body: () throws -> Void) throws {
        guard operation.kind == .rebuildTable, let table = operation.table else { return try body() }
        // To count all rows with `*`, SQLite walks through the tree without asking anybody.
        let count: SQL = "SELECT count(1) FROM main.\(identifier: table)"
        let before = try connection.value(Int.self, count)
        try body()
        let after = try connection.value(Int.self, count)
        guard before == after else {
            throw StoreError(
                .migration, path: connection.path,
                "\(operation.title) found \(before ?? 0) rows and would leave \(after ?? 0)",
                advice: "report this; nothing was changed")
        }
    }
}
