internal import CipherErrors
internal import CipherSQLText
internal import CipherSQLite

/// Finds views and triggers with a string in double quotes that would become the name of a new column.
///
/// Their text stays the same, but they would select, change or delete other rows. Only SQLite knows the columns to which
/// a name in a statement can refer, so it compiles the views and triggers in a copy of the schema.
struct CapturedStrings {
    /// A view or trigger that stays as it is and contains the name of a new column in double quotes.
    private struct Candidate {
        let object: DatabaseState.Object
        let table: SQLName
        let column: String
    }

    /// A column that a view or trigger reads.
    private struct Read: Hashable {
        /// The view or trigger, or the common table expression, whose view or trigger SQLite does not report.
        let reader: SQLName
        var table: SQLName
        var column: SQLName
    }

    private var candidates: [Candidate] = []

    /// - Parameters:
    ///   - objects: The views and triggers that stay as they are, apart from renames.
    ///   - texts: Their texts in the database. A rename may add names in double quotes, which are no strings.
    ///   - columns: The new columns of each table.
    init(
        in objects: [DatabaseState.Object], texts: [DatabaseState.Object.Identity: String],
        columns: [SQLName: [String]]
    ) {
        for object in objects where object.type != "index" {
            guard let text = texts[object.identity], text.utf8.contains(UInt8(ascii: "\"")) else { continue }
            let tokens = SQLTokens(text)
            let names = Set(tokens.tokens.filter(tokens.isInDoubleQuotes).map { SQLName($0.content) })
            for (table, columns) in columns.sorted(by: { $0.key < $1.key }) {
                candidates += columns.filter { names.contains(SQLName($0)) && tokens.mayBeString(SQLName($0)) }
                    .map { Candidate(object: object, table: table, column: $0) }
            }
        }
    }

    /// Returns a finding for each name that is a string before the changes and the name of a column afterwards.
    ///
    /// - Parameters:
    ///   - changes: The changes to the schema of the connection's database.
    ///   - scratch: A database with the extensions that the schema needs.
    func findings(
        after changes: SchemaChanges, of connection: Connection, _ scratch: ScratchDatabase
    ) throws -> [Plan.Finding] {
        guard !candidates.isEmpty else { return [] }
        let copy = try scratch.copy(of: connection)
        let before = try reads(in: copy).reads
        let isTried = try copy.isComplete && run(changes.operations, in: copy)
        let (after, dangling) = try reads(in: copy)
        let names = Set(try copy.objects().map { SQLName($0.name) })
        let captured = Set(
            after.filter { read in
                let origin = changes.origins[read.table]
                var former = read
                former.table = origin?.table ?? read.table
                former.column = origin?.columns[read.column] ?? read.column
                return !before.contains(former)
            }.map { [names.contains($0.reader) ? $0.reader : nil, $0.column] })
        return candidates.filter { candidate in
            let (object, column) = (candidate.object, SQLName(candidate.column))
            if captured.contains([SQLName(object.name), column]) || captured.contains([nil, column]) { return true }
            // If SQLite cannot compile the object here, every name that may be a string is assumed to be one.
            let isKnown = isTried && !dangling.needsUnregistered(object)
            return !isKnown && (SQLName(object.table) == candidate.table || candidate.table.isMentioned(in: object.sql))
        }.map { candidate in
            .capture(of: candidate.column, in: candidate.object, table: candidate.table.text)
        }
    }

    private func run(_ operations: [Plan.Operation], in copy: ScratchDatabase) throws -> Bool {
        do {
            try SchemaChangeSettings(copy.connection).during {
                for sql in operations.flatMap(\.sql) { try copy.connection.execute(SQL(text: sql)) }
            }
            return true
        } catch is DatabaseError {
            return false
        }
    }

    /// Returns the columns that the views and triggers read, and the objects that cannot be compiled.
    private func reads(in copy: ScratchDatabase) throws -> (reads: Set<Read>, dangling: DanglingObjects) {
        var reads: Set<Read> = []
        let dangling = try copy.connection.judging { action in
            if action.kind == .read, let reader = action.cause, let column = action.detail {
                reads.insert(
                    Read(reader: SQLName(reader), table: SQLName(action.subject), column: SQLName(column)))
            }
            return true
        } _: {
            try copy.dangling()
        }
        return (reads, dangling)
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
}
