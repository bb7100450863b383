internal import CipherCatalog
internal import CipherErrors
package import CipherSQLText
package import CipherSQLite

/// The views and triggers that SQLite cannot compile, because something that they name does not exist.
///
/// Legacy databases contain such objects, so a migration is only required not to create new ones.
package struct DanglingObjects {
    /// A statement that cannot be compiled: it reads a view, or it fires a table's triggers.
    private struct Subject: Hashable {
        let kind: String
        let name: SQLName
        let statement: String
    }

    private var failures: [Subject: (text: String, error: DatabaseError)] = [:]

    package var isEmpty: Bool { failures.isEmpty }

    /// Descriptions of the statements that cannot be compiled, each with SQLite's reason.
    package var descriptions: [String] {
        failures.values.map { "\($0.text) cannot be compiled: \($0.error.message)" }.sorted()
    }

    /// Returns SQLite's error messages for a view, or for the triggers of the table that a trigger belongs to.
    package func messages(about object: DatabaseState.Object) -> Set<String> {
        let (kind, name) = Self.subject(object)
        let own = failures.filter { $0.key.kind == kind && $0.key.name == SQLName(name) }
        return Set(own.values.map(\.error.message))
    }

    private static func subject(_ object: DatabaseState.Object) -> (kind: String, name: String) {
        object.type == "view" ? ("the view", object.name) : ("the triggers of", object.table)
    }

    /// Compiles every view, and every statement that would fire a trigger; nothing runs.
    ///
    /// - Parameter isChanged: Whether the connection may have compiled views before the schema changed.
    package init(in connection: Connection, _ state: DatabaseState, isChanged: Bool = true) throws {
        for view in state.objects where view.type == "view" {
            try compile("SELECT", "SELECT * FROM main.\(identifier: view.name)", Self.subject(view), connection)
        }
        var tables: [SQLName: String] = [:]
        for trigger in state.objects where trigger.type == "trigger" { tables[SQLName(trigger.table)] = trigger.table }
        for table in tables.values { try compileTriggers(of: table, connection) }
        if isChanged, !Engine.current.canRenameColumns { try forgetViews(connection) }
    }

    private mutating func compileTriggers(of table: String, _ connection: Connection) throws {
        let subject = ("the triggers of", table)
        let name = "main.\(SQL.quoted(identifier: table))"
        try compile("DELETE", SQL(text: "DELETE FROM \(name)"), subject, connection)
        var columns: [ColumnState] = []
        try noting(subject, "columns") {
            columns = try ColumnState.read(table: table, from: connection).filter { $0.generation == nil }
        }
        let names = columns.map { SQL.quoted(identifier: $0.name) }
        guard let first = names.first else { return }
        try compile("INSERT", SQL(text: "INSERT INTO \(name) (\(first)) SELECT NULL"), subject, connection)
        let all = names.map { "\($0) = NULL" }.joined(separator: ", ")
        try compile("UPDATE", SQL(text: "UPDATE \(name) SET \(all)"), subject, connection)
    }

    /// Makes the connection read the schema again.
    ///
    /// Engines before SQLite 3.26 retain the columns of a view that was once compiled, even if its tables change.
    private func forgetViews(_ connection: Connection) throws {
        struct Undo: Error {}
        do {
            try connection.savepoint {
                try connection.execute("CREATE TABLE main.cipherstore_probe (x)")
                throw Undo()
            }
        } catch is Undo {
            return
        }
    }

    private mutating func compile(
        _ statement: String, _ sql: SQL, _ subject: (kind: String, name: String), _ connection: Connection
    ) throws {
        // No cached statement of the connection is used, because it was compiled before the migration.
        try noting(subject, statement) { _ = try Statement(sql, on: connection) }
    }

    private mutating func noting(
        _ subject: (kind: String, name: String), _ statement: String, _ body: () throws -> Void
    ) throws {
        do {
            try body()
        } catch let error as DatabaseError where error.code == DatabaseError.generic {
            // SQLite returns this error if a view only has triggers for other statements.
            guard !error.isOfViewWithoutTrigger else { return }
            let key = Subject(kind: subject.kind, name: SQLName(subject.name), statement: statement)
            failures[key] = ("\(subject.kind) \(subject.name)", error)
        }
    }

    /// Throws if a statement that could be compiled before can no longer be compiled.
    ///
    /// A statement that failed before may now fail for another reason.
    ///
    /// - Parameter origins: The former names of renamed tables.
    package func requireNoneBeyond(_ before: DanglingObjects, origins: [SQLName: Plan.Origin], path: String) throws {
        let new = failures.filter { subject, _ in
            let former = Subject(
                kind: subject.kind, name: origins[subject.name]?.table ?? subject.name,
                statement: subject.statement)
            return before.failures[subject] == nil && before.failures[former] == nil
        }
        guard let first = new.values.min(by: { ($0.text, $0.error.message) < ($1.text, $1.error.message) }) else {
            return
        }
        throw StoreError.unreachable(
            path, "the migration would break \(first.text)", correct: .schema, underlying: first.error)
    }
}
