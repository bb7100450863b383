internal import CipherCatalog
internal import CipherErrors
internal import CipherSQLText
internal import CipherSQLite

/// Finds views and triggers whose meaning a plan would change because they use the name of a new column.
///
/// They may use the name for another table's column, an alias, the rowid or, in double quotes, a string; a NATURAL JOIN
/// uses all common names. Their text stays the same, but they would select, change or delete other rows.
///
/// Only SQLite knows what a name refers to. Therefore, the new columns are appended to the tables in a copy of the
/// schema, and SQLite compiles each view and trigger there: once with unused names for the new columns, and once with
/// their own names. If the programs differ, the view or trigger uses one of these names.
struct CapturedNames {
    /// A column that a table or view has only after the plan.
    private struct NewColumn {
        /// The name of the table before the plan.
        let table: SQLName
        /// The name of the table after the plan.
        let newTable: String
        let name: String
    }

    /// A view or trigger that the plan keeps, and a statement that uses it.
    private struct Subject {
        let object: DatabaseState.Object
        let statement: String
    }

    private typealias Columns = [SQLName: [ColumnState]]

    private let scratch: ScratchDatabase
    private let declared: Set<DatabaseState.Object.Identity>
    private let new: [NewColumn]
    private let subjects: [Subject]
    /// The views that the plan replaces.
    private let replaced: Columns
    /// The triggers of views; they stay in the copy, because other triggers may need them to change a view.
    private let viewTriggers: [DatabaseState.Object]

    private var connection: Connection { scratch.connection }

    /// - Returns: `nil` if there are no views or triggers, or if the plan adds no columns to existing tables.
    init?(_ plan: Plan, on connection: Connection, _ extensions: SQLExtensions) throws {
        let kinds: Set<Plan.Operation.Kind> = [
            .createTable, .addColumn, .renameColumn, .renameTable, .rebuildTable, .createView,
        ]
        guard plan.operations.contains(where: { kinds.contains($0.kind) }),
            try DatabaseState.readObjects(connection).contains(where: { $0.type != "index" })
        else { return nil }
        declared = plan.declared
        scratch = try ScratchDatabase(after: connection, extensions)
        let after = try ScratchDatabase(after: connection, extensions)
        let isComplete = try Self.run(plan.operations, in: after.connection)

        let columns = Columns(try Self.tables(in: scratch.connection).map { (SQLName($0), $1) }) { first, _ in first }
        let objects = try scratch.objects().filter { $0.type != "index" }
        let texts = Dictionary(try after.objects().map { ($0.identity, $0.sql) }) { first, _ in first }
        subjects = objects.compactMap { object in
            guard let sql = texts[object.identity],
                let text = Self.text(of: object, afterwards: sql, isDeclared: plan.declared.contains(object.identity))
            else { return nil }
            var object = object
            object.sql = text
            return Subject(
                object: object, statement: Self.statement(using: object, columns[SQLName(object.table)] ?? []))
        }
        let kept = Set(subjects.map(\.object.identity))
        let views = objects.filter { $0.type == "view" }
        let viewNames = Set(views.map { SQLName($0.name) })
        let replacedNames = Set(views.filter { !kept.contains($0.identity) }.map { SQLName($0.name) })
        replaced = columns.filter { replacedNames.contains($0.key) }
        new = try Self.newColumns(plan, columns, in: after.connection, isComplete: isComplete)
            // Any other view has the new columns of its tables.
            .filter { !viewNames.contains($0.table) || replacedNames.contains($0.table) }
        guard !new.isEmpty else { return nil }
        let triggers = objects.filter { $0.type == "trigger" }
        viewTriggers = triggers.filter { viewNames.contains(SQLName($0.table)) }
        for trigger in triggers where !viewNames.contains(SQLName(trigger.table)) { try drop(trigger) }
    }

    /// Runs a plan; what cannot run without the app's own extensions is left out.
    ///
    /// - Returns: Whether everything ran.
    private static func run(_ operations: [Plan.Operation], in connection: Connection) throws -> Bool {
        var isComplete = true
        try SchemaChangeSettings(connection).during {
            for operation in operations where ![.copyRows, .stamp, .swift].contains(operation.kind) {
                for sql in operation.sql {
                    do {
                        try connection.execute(SQL(text: sql))
                    } catch {
                        isComplete = false
                    }
                }
            }
        }
        return isComplete
    }

    /// Returns the names and columns of the tables and views.
    private static func tables(in connection: Connection) throws -> [(name: String, columns: [ColumnState])] {
        var names: [String] = []
        try connection.forEachRow("SELECT name FROM main.sqlite_master WHERE type IN ('table', 'view')") {
            names.append(try $0.get(at: 0))
        }
        return try names.compactMap { name in
            do {
                return (name, try ColumnState.read(table: name, from: connection))
            } catch is DatabaseError {
                // A view that cannot be compiled has no columns.
                return nil
            }
        }
    }

    private static func newColumns(
        _ plan: Plan, _ before: Columns, in after: Connection, isComplete: Bool
    ) throws -> [NewColumn] {
        var names = try tables(in: after).flatMap { table in table.columns.map { (table: table.name, column: $0.name) }
        }
        if !isComplete {
            names += plan.operations.filter { $0.kind == .addColumn }.compactMap { operation in
                guard let table = operation.table, let column = operation.column else { return nil }
                let isKnown = names.contains {
                    SQLName($0.table) == SQLName(table) && SQLName($0.column) == SQLName(column)
                }
                return isKnown ? nil : (table, column)
            }
        }
        return names.compactMap { table, column in
            let former = plan.origins[SQLName(table)]?.table ?? SQLName(table)
            guard let known = before[former], !known.contains(where: { SQLName($0.name) == SQLName(column) }) else {
                return nil
            }
            return NewColumn(table: former, newTable: table, name: column)
        }
    }

    /// Returns the text of a view or trigger to compile; `nil` if the plan replaces it with a new definition.
    ///
    /// A rename changes only names. If SQLite makes the rename, it also turns strings in double quotes into strings in
    /// single quotes.
    private static func text(
        of object: DatabaseState.Object, afterwards sql: String, isDeclared: Bool
    ) -> String? {
        guard sql != object.sql else { return sql }
        let (tokens, present) = (SQLTokens(object.sql), SQLTokens(sql).tokens)
        guard !isDeclared, tokens.tokens.count == present.count else { return nil }
        var strings: [Int: String] = [:]
        for (index, token) in tokens.tokens.enumerated()
        where tokens.isInDoubleQuotes(token) && present[index].kind == .literal {
            strings[index] = SQL.quoted(text: token.content)
        }
        return tokens.replacing(strings)
    }

    /// Returns a statement that reads a view or fires a trigger.
    private static func statement(using object: DatabaseState.Object, _ columns: [ColumnState]) -> String {
        let name = "main." + SQL.quoted(identifier: object.table)
        guard object.type == "trigger" else { return "SELECT * FROM \(name)" }
        let event = SQLTokens(object.sql).tokens.dropFirst(3).first { token in
            ["DELETE", "INSERT", "UPDATE"].contains(where: token.isKeyword)
        }
        let names = columns.filter { $0.generation == nil }.map { SQL.quoted(identifier: $0.name) }
        guard let event, let first = names.first, !event.isKeyword("DELETE") else { return "DELETE FROM \(name)" }
        guard event.isKeyword("UPDATE") else { return "INSERT INTO \(name) (\(first)) SELECT NULL" }
        return "UPDATE \(name) SET \(names.map { "\($0) = NULL" }.joined(separator: ", "))"
    }

    // MARK: Findings

    /// Returns a finding for each view or trigger that would get another meaning, and a warning for each that the
    /// schema contains unchanged or that cannot be compiled.
    func findings() throws -> [Plan.Finding] {
        let names = Set(new.map { SQLName($0.name) })
        let before = try programs(of: subjects, naming: [])
        let affected = zip(subjects, zip(before, try programs(of: subjects, naming: names))).filter {
            guard case (.success(let unnamed), .success(let named)) = $0.1 else { return true }
            return unnamed != named
        }
        guard !affected.isEmpty else { return [] }
        return try names.sorted().flatMap { name in
            zip(affected, try programs(of: affected.map(\.0), naming: [name])).compactMap { subject, named in
                finding(subject.0.object, name, subject.1.0, named)
            }
        }
    }

    private func finding(
        _ object: DatabaseState.Object, _ name: SQLName, _ unnamed: Result<[String], DatabaseError>,
        _ named: Result<[String], DatabaseError>
    ) -> Plan.Finding? {
        let columns = new.filter { SQLName($0.name) == name }
        guard let column = columns.first else { return nil }
        let names = columns.map { "\($0.newTable).\($0.name)" }.joined(separator: " or ")
        func finding(_ severity: Plan.Finding.Severity, _ effect: String, _ reason: String = "") -> Plan.Finding {
            Plan.Finding(
                severity, table: column.newTable, column: column.name,
                message: "the new column \(names) \(effect) the \(object.type) \(object.name)\(reason)")
        }
        let severity: Plan.Finding.Severity = declared.contains(object.identity) ? .warning : .impossible
        switch (unnamed, named) {
        case (.success(let old), .success(let new)):
            return old == new ? nil : finding(severity, "would change the meaning of")
        case (.success, .failure(let error)): return finding(severity, "would break", ": \(error.message)")
        case (.failure(let error), _) where error.unregistered != nil:
            let isNamed = SQLTokens(object.sql).tokens.contains { $0.isNamed(name) }
            return isNamed ? finding(.warning, "may change the meaning of") : nil
        case (.failure, .success):
            let isString = SQLTokens(object.sql).mayBeString(name)
            return isString ? finding(.warning, "may change the meaning of") : nil
        case (.failure, .failure): return nil
        }
    }

    // MARK: Programs

    /// Returns SQLite's program for each view and trigger in a schema with the new columns.
    ///
    /// - Parameter names: The names of new columns that are used; the other new columns have unused names.
    private func programs(
        of subjects: [Subject], naming names: Set<SQLName>
    ) throws -> [Result<[String], DatabaseError>] {
        struct Undo: Error {}
        var programs: [Result<[String], DatabaseError>] = []
        do {
            defer { try? connection.forgetSchemas() }
            try connection.savepoint {
                try append { names.contains(SQLName($1.name)) ? $1.name : "cipherstore_unused_\($0)" }
                try connection.forgetSchemas()
                programs = try subjects.map { subject in
                    do {
                        return .success(try program(of: subject))
                    } catch let error as DatabaseError {
                        return .failure(error)
                    }
                }
                throw Undo()
            }
        } catch is Undo {}
        return programs
    }

    /// Appends the new columns to their tables, and replaces views that get another definition.
    private func append(as name: (Int, NewColumn) -> String) throws {
        var added: [SQLName: [String]] = [:]
        for (index, column) in new.enumerated() {
            let name = name(index, column)
            added[column.table, default: []].append(name)
            guard replaced[column.table] == nil else { continue }
            do {
                // A STRICT table needs a type.
                try connection.execute(
                    "ALTER TABLE main.\(identifier: column.table.text) ADD COLUMN \(identifier: name) ANY")
            } catch is DatabaseError {
                // The table is virtual.
            }
        }
        // What a view with another definition selects does not matter, as long as each column is distinct.
        for (view, columns) in replaced {
            let items = (columns.map(\.name) + (added[view] ?? [])).enumerated().map { index, name in
                "\(SQL.quoted(text: "\(view.text).\(index)")) AS \(SQL.quoted(identifier: name))"
            }
            let sql = "CREATE VIEW \(SQL.quoted(identifier: view.text)) AS SELECT \(items.joined(separator: ", "))"
            try scratch.writeSchema(
                "UPDATE main.sqlite_master SET sql = \(sql) WHERE type = 'view' AND name = \(view.text) COLLATE NOCASE")
        }
    }

    private func program(of subject: Subject) throws -> [String] {
        let object = subject.object
        guard object.type == "trigger" else { return try compiled(subject, isTrigger: false) }
        // Other triggers of the table may be broken, so they do not exist during the compilation.
        let others = viewTriggers.filter { SQLName($0.table) == SQLName(object.table) }
        for other in others { try drop(other) }
        let program = Result { () throws -> [String] in
            try connection.execute(SQL(text: object.sql))
            return try compiled(subject, isTrigger: true)
        }
        try drop(object)
        for other in others { try connection.execute(SQL(text: other.sql)) }
        return try program.get()
    }

    private func drop(_ trigger: DatabaseState.Object) throws {
        try connection.execute("DROP TRIGGER IF EXISTS main.\(identifier: trigger.name)")
    }

    /// Returns the program of a view, or that of a trigger without the statement that fires it and without other triggers.
    private func compiled(_ subject: Subject, isTrigger: Bool) throws -> [String] {
        try connection.standingInForAbsentFunctions {
            var (program, own): ([String], [String]) = ([], [])
            var isOwn = false
            // A cached statement would not notice that the schema has changed.
            try connection.withStatement(SQL(text: "EXPLAIN \(subject.statement)"), isKept: false) { statement in
                let row = Row(of: statement)
                while try statement.step() {
                    let operation: String = try row.get(at: 1)
                    // The first operation of a trigger's program contains its name.
                    if operation == "Init" { isOwn = row.value(at: 5) == .text("-- TRIGGER \(subject.object.name)") }
                    // These contain the version of the schema, and the text of a statement.
                    guard !["Transaction", "Trace"].contains(operation) else { continue }
                    // The address of a virtual table is different each time.
                    let operands = (2..<7).map { "\(row.value(at: $0))" }.filter { !$0.contains("vtab:") }
                    program.append(([operation] + operands).joined(separator: " "))
                    if isOwn { own += program.suffix(1) }
                }
            }
            return isTrigger && !own.isEmpty ? own : program
        }
    }
}
