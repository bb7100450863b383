internal import CipherCatalog
internal import CipherSQLText
internal import CipherSQLite

/// Finds the unique indexes of pending steps that the current rows would violate.
///
/// A step may remove duplicates first. Therefore, an index is checked only as long as no step has written a row and its
/// table is unchanged, except for new columns that the index does not name.
struct StepUniqueness {
    private let state: DatabaseState
    /// The pending definitions so far that may have changed a table.
    private var definitions: [String] = []
    private var appendedColumns: [SQLName] = []
    private var mayHaveWrittenRows = false
    /// The indexes that were already checked, or that the database has.
    private var known: Set<SQLName>

    init(_ state: DatabaseState) {
        self.state = state
        known = Set(state.objects.map { SQLName($0.name) })
    }

    /// Returns findings about the indexes that the latest statement created.
    mutating func findings(in rehearsal: ScratchDatabase) throws -> [Plan.Finding] {
        guard !mayHaveWrittenRows else { return [] }
        let new = try rehearsal.objects().filter { $0.type == "index" && known.insert(SQLName($0.name)).inserted }
        let counter = RowCounter(connection: state.connection, countsRows: state.countsRows)
        return try new.compactMap { index in
            guard let table = state.table(index.table), !definitions.contains(where: SQLName(table.name).isMentioned),
                !appendedColumns.contains(where: { $0.isMentioned(in: index.sql) }), let unique = UniqueIndex(index)
            else { return nil }
            let duplicates = try counter.count(
                unique.duplicates(in: "main.\(SQL.quoted(identifier: table.name))"))
            guard !duplicates.isZero else { return nil }
            return Plan.Finding(
                .impossible, table: table.name, count: duplicates.number,
                message: unique.fault(duplicates, in: table.name))
        }
    }

    /// Records a pending statement.
    ///
    /// - Parameter traits: The properties that SQLite reported for the statement; `nil` if it could not be compiled.
    mutating func note(_ sql: String, _ traits: StatementTraits?) {
        guard let traits, traits.isDefinition else {
            mayHaveWrittenRows = mayHaveWrittenRows || traits?.writesRows != false
            return
        }
        let tokens = SQLTokens(sql).tokens
        guard !tokens.prefix(3).contains(where: { $0.isKeyword("INDEX") }) else { return }
        guard tokens.first?.isKeyword("ALTER") == true, let add = tokens.firstIndex(where: { $0.isKeyword("ADD") })
        else { return definitions.append(sql) }
        appendedColumns += tokens[(add + 1)...].prefix(2).filter(\.isName).map { SQLName($0.content) }
    }
}
