internal import CipherCatalog
internal import CipherErrors
internal import CipherSQLText
internal import CipherSQLite

/// Finds strings in double quotes in views and triggers that a plan would turn into references to new columns.
///
/// The text stays the same, but the view or trigger would select, change or delete other rows. Only SQLite knows the
/// columns to which a name can refer, so it compiles each view and trigger in a copy of the schema, before and after the
/// plan. A name in double quotes is a string if single quotes in their place give the same program.
///
/// Source: SQLite, "Quirks, Caveats, and Gotchas In SQLite", section 8.
struct CapturedStrings {
    private let before: ScratchDatabase
    private let after: ScratchDatabase
    private let isTried: Bool
    private let declared: Set<DatabaseState.Object.Identity>
    /// The names of columns that tables or views have only after the plan.
    private let newNames: [SQLName: (tables: Set<SQLName>, column: String)]

    /// - Returns: `nil` if no view or trigger contains a name in double quotes, or if the plan adds no columns.
    init?(_ plan: Plan, on connection: Connection, _ extensions: SQLExtensions) throws {
        let kinds: Set<Plan.Operation.Kind> = [
            .createTable, .addColumn, .renameColumn, .renameTable, .rebuildTable, .createView,
        ]
        guard plan.operations.contains(where: { kinds.contains($0.kind) }),
            try DatabaseState.readObjects(connection).contains(where: Self.mayContainString)
        else { return nil }
        before = try ScratchDatabase(after: connection, extensions)
        after = try ScratchDatabase(after: connection, extensions)
        declared = plan.declared
        isTried = try Self.run(plan.operations, in: after.connection)
        var names: [SQLName: (tables: Set<SQLName>, column: String)] = [:]
        let former = try Self.columns(in: before.connection)
        for (table, columns) in try Self.columns(in: after.connection) {
            let known = Set((former[table] ?? []).map { SQLName($0) })
            for column in columns where !known.contains(SQLName(column)) {
                names[SQLName(column), default: ([], column)].tables.insert(table)
            }
        }
        if !isTried {
            for operation in plan.operations where operation.kind == .addColumn {
                guard let table = operation.table, let column = operation.column else { continue }
                names[SQLName(column), default: ([], column)].tables.insert(SQLName(table))
            }
        }
        guard !names.isEmpty else { return nil }
        newNames = names
    }

    private static func mayContainString(_ object: DatabaseState.Object) -> Bool {
        object.type != "index" && object.sql.utf8.contains(UInt8(ascii: "\""))
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

    private static func columns(in connection: Connection) throws -> [SQLName: [String]] {
        var names: [String] = []
        try connection.forEachRow("SELECT name FROM main.sqlite_master WHERE type IN ('table', 'view')") {
            names.append(try $0.get(at: 0))
        }
        var columns: [SQLName: [String]] = [:]
        for name in names {
            do {
                columns[SQLName(name)] = try ColumnState.read(table: name, from: connection).map(\.name)
            } catch is DatabaseError {
                // A view that cannot be compiled has no columns.
            }
        }
        return columns
    }

    // MARK: Findings

    /// Returns a finding for each string that would become a reference, and a warning for each that could not be
    /// examined.
    func findings() throws -> [Plan.Finding] {
        let texts = Dictionary(try after.objects().map { ($0.identity, $0) }) { first, _ in first }
        let views = texts.values.filter { $0.type == "view" }
        let mentions = Dictionary(views.map { (SQLName($0.name), Self.names(in: $0.sql)) }) { first, _ in first }
        return try before.objects().filter(Self.mayContainString).flatMap { object -> [Plan.Finding] in
            guard let changed = texts[object.identity] else { return [] }
            var reached: Set<SQLName> = []
            var next = Self.names(in: changed.sql)
            while !next.isEmpty {
                reached.formUnion(next)
                next = Set(next.flatMap { mentions[$0] ?? [] }).subtracting(reached)
            }
            return try findings(about: object, afterwards: changed, reaching: reached)
        }
    }

    /// Returns the names in a view or trigger, which include the tables and views that it uses.
    private static func names(in sql: String) -> Set<SQLName> {
        Set(SQLTokens(sql).tokens.map { SQLName($0.name) })
    }

    private func findings(
        about object: DatabaseState.Object, afterwards changed: DatabaseState.Object, reaching tables: Set<SQLName>
    ) throws -> [Plan.Finding] {
        let (tokens, present) = (SQLTokens(object.sql), SQLTokens(changed.sql))
        // Renames change only names. Any other change is a new definition.
        guard tokens.tokens.count == present.tokens.count else { return [] }
        var programs = (Program(of: object, in: before), Program(of: changed, in: after))
        var findings: [Plan.Finding] = []
        for (index, token) in tokens.tokens.enumerated() where tokens.isInDoubleQuotes(token) {
            let name = SQLName(token.content)
            guard let new = newNames[name], present.tokens[index].isNamed(name),
                let table = new.tables.intersection(tables).min()
            else { continue }
            switch try (programs.0.use(of: index), programs.1.use(of: index)) {
            case (.string, .reference) where !declared.contains(object.identity):
                findings.append(.capture(of: new.column, in: object, table: table.text))
            case (.string, .string) where isTried, (.reference, _), (_, .broken): break
            case (.string, _), (_, .unknown), (_, .reference):
                guard tokens.mayBeString(name) else { break }
                findings.append(.possibleCapture(of: new.column, in: object, table: table.text))
            default: break
            }
        }
        return findings.reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
    }
}

/// SQLite's program for a view or trigger.
private struct Program {
    enum Use { case string, reference, unknown, broken }

    private let object: DatabaseState.Object
    private let scratch: ScratchDatabase
    private let tokens: SQLTokens
    private lazy var compiled = Result { try scratch.program(of: object, written: object.sql) }

    init(of object: DatabaseState.Object, in scratch: ScratchDatabase) {
        self.object = object
        self.scratch = scratch
        tokens = SQLTokens(object.sql)
    }

    /// Returns how the view or trigger uses a name in double quotes.
    mutating func use(of index: Int) throws -> Use {
        let program: [String]
        do {
            program = try compiled.get()
        } catch let error as DatabaseError {
            return error.unregistered == nil ? .broken : .unknown
        }
        let variant = tokens.replacing([index: SQL.quoted(text: tokens.tokens[index].content)])
        do {
            return try scratch.program(of: object, written: variant) == program ? .string : .reference
        } catch is DatabaseError {
            return .reference
        }
    }
}

extension Plan.Finding {
    /// Returns the finding that a string in double quotes in an index, view or trigger would become a column's name.
    static func capture(of column: String, in object: DatabaseState.Object, table: String) -> Plan.Finding {
        Plan.Finding(
            .impossible, table: table, column: column,
            message: "the string \"\(column)\" in the \(object.type) \(object.name) would become a reference to the "
                + "new column")
    }

    /// Returns the finding that a view or trigger, which only the app can compile, may contain such a string.
    fileprivate static func possibleCapture(
        of column: String, in object: DatabaseState.Object, table: String
    ) -> Plan.Finding {
        Plan.Finding(
            .warning, table: table, column: column,
            message: "the \(object.type) \(object.name) contains \"\(column)\"; if this is a string, it becomes a "
                + "reference to the new column")
    }
}

extension ScratchDatabase {
    /// Returns SQLite's program for reading a view, or for a statement that fires a trigger and no other trigger of its
    /// table, if the view or trigger has the given text.
    fileprivate func program(of object: DatabaseState.Object, written text: String) throws -> [String] {
        struct Undo: Error {}
        var program: [String] = []
        do {
            defer { try? connection.forgetSchemas() }
            try connection.savepoint {
                try connection.writingSchema {
                    try connection.execute(
                        """
                        UPDATE main.sqlite_master SET sql = \(text)
                        WHERE type = \(object.type) AND name = \(object.name)
                        """)
                    guard object.type == "trigger" else { return }
                    try connection.execute(
                        """
                        DELETE FROM main.sqlite_master WHERE type = 'trigger' AND tbl_name = \(object.table)
                            AND name <> \(object.name)
                        """)
                }
                try connection.forgetSchemas()
                program = try compiled(statement(using: object))
                throw Undo()
            }
        } catch is Undo {}
        return program
    }

    private func statement(using object: DatabaseState.Object) throws -> String {
        let name = "main." + SQL.quoted(identifier: object.table)
        guard object.type == "trigger" else { return "SELECT * FROM \(name)" }
        let tokens = SQLTokens(object.sql).tokens
        let event = tokens.indices.dropFirst(3).first { index in
            ["DELETE", "INSERT", "UPDATE"].contains(where: tokens[index].isKeyword)
        }
        guard let event, !tokens[event].isKeyword("DELETE") else { return "DELETE FROM \(name)" }
        var columns = try ColumnState.read(table: object.table, from: connection).filter { $0.generation == nil }
            .map(\.name)
        if tokens[event].isKeyword("INSERT") {
            return "INSERT INTO \(name) (\(SQL.quoted(identifier: columns.first ?? "rowid"))) SELECT NULL"
        }
        if tokens[event + 1].isKeyword("OF") {
            columns = tokens[(event + 2)...].prefix { !$0.isKeyword("ON") }.filter { !$0.isKeyword(",") }.map(\.name)
        }
        return "UPDATE \(name) SET "
            + columns.map { "\(SQL.quoted(identifier: $0)) = NULL" }.joined(separator: ", ")
    }

    private func compiled(_ statement: String) throws -> [String] {
        var program: [String] = []
        // A statement from the cache would not notice that the schema has changed, so the text is different each time.
        let number = try connection.value(Int.self, "SELECT total_changes()") ?? 0
        try connection.forEachRow(SQL(text: "EXPLAIN \(statement) -- \(number)")) { row in
            let operation: String = try row.get(at: 1)
            // These contain the version of the schema, and the text of a statement.
            guard !["Transaction", "Trace"].contains(operation) else { return }
            let operands = (2..<7).map { "\(row.value(at: $0))" }
            // The address of a virtual table is different each time.
            program.append(([operation] + operands.filter { !$0.contains("vtab:") }).joined(separator: " "))
        }
        return program
    }
}
