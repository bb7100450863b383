internal import CipherCatalog
internal import CipherErrors
internal import CipherSQLText
internal import CipherSQLite

/// The real schema as it is once the wanted renames are made.
///
/// The renames are worked out on the text, before anything runs: the comparison that follows needs their result, and a
/// rebuild has to make indexes and triggers again under the new names.
struct PresentSchema {
    /// A table of the database.
    struct Table {
        /// The table after the renames.
        var shape: TableShape
        /// Its name in the database now, to ask for its rows.
        let name: String
        /// New column name to the one in the database now.
        var columns: [SQLName: String] = [:]
        /// Whether the engine leaves the old names in the table's text, so that it must be rebuilt.
        var isOutdated = false
        /// Whether a rebuild finds the columns under their old names still.
        var keepsOldColumns = false
        /// Why the table stays even where unnamed ones are dropped.
        var reasonToKeep: String?
        /// Columns that stay even where unnamed ones are dropped, with the reasons.
        var keptColumns: [SQLName: String] = [:]
        /// The columns whose values a rebuild takes from columns of other names.
        var replacedColumns: Set<SQLName> = []

        /// What a column is called in the database now.
        func column(_ name: SQLName) -> String? { columns[name] ?? shape.column(name)?.name }
    }

    /// A view, index or trigger of the database.
    struct Object {
        /// What it is after the renames.
        var object: DatabaseState.Object
        /// Whether the engine leaves the old names in its text, so that it must be made again.
        var isOutdated = false
        /// A name in it of which no one can tell from the text whether it is the renamed one.
        var doubt: String?
    }

    var tables: [SQLName: Table] = [:]
    var objects: [Object]
    var operations: [Plan.Operation] = []
    private let state: DatabaseState
    private lazy var reach = Result { try RenameReach(state) }
    private var path: String { state.connection.path }

    init(_ state: DatabaseState) throws {
        self.state = state
        objects = state.objects.map { Object(object: $0) }
        for table in state.tables where !table.isVirtual && !SQLName(table.name).isOfCipherStore {
            let shape = try TableShape(table, in: state.connection)
            tables[SQLName(table.name)] = Table(shape: shape, name: table.name)
        }
    }

    func objects(of table: SQLName) -> [Object] {
        objects.filter { $0.object.type != "view" && SQLName($0.object.table) == table }
    }

    /// What the tables that are renamed, or columns of which are renamed, are in the database now.
    var origins: [SQLName: Plan.Origin] {
        tables.filter { $0.key != SQLName($0.value.name) || !$0.value.columns.isEmpty }.mapValues {
            Plan.Origin(table: SQLName($0.name), columns: $0.columns.mapValues(SQLName.init))
        }
    }

    // MARK: Tables

    /// Renames a table that is there to a name that is free.
    mutating func rename(_ old: SQLName, to new: String, _ scratch: ScratchDatabase) throws {
        guard var table = tables.removeValue(forKey: old) else { return }
        let oldName = table.shape.name
        let isCarried = try reach.get().isCarried
        operations.append(
            Plan.Operation(
                .renameTable, table: oldName, sql: try reach.get().statements(from: oldName, to: new),
                reason: "the schema calls it \(new)"))
        table.shape.name = new
        tables[SQLName(new)] = table
        for (name, other) in tables {
            let text = other.shape.text.mapping { $0.renamingReferences(to: old, as: new) }
            guard text != other.shape.text else { continue }
            try replaceText(of: name, text, scratch)
        }
        let isColumn = tables.values.contains { $0.shape.column(old) != nil }
        for index in objects.indices where old.isMentioned(in: objects[index].object.sql) {
            let isUnclear = isColumn && SQLTokens(objects[index].object.sql).isUnclear(old)
            objects[index].rewrite(doubt: isUnclear ? oldName : nil, isCarried: isCarried) {
                $0.renamingTable(old, as: new, isColumn: isColumn)
            }
            if SQLName(objects[index].object.table) == old { objects[index].object.table = new }
        }
    }

    /// Drops a table that is empty, so that another can take its name.
    ///
    /// Views and triggers elsewhere that name it are made again: the engine would not rename beside them.
    mutating func drop(_ name: SQLName) {
        guard let table = tables.removeValue(forKey: name) else { return }
        objects.removeAll { $0.object.type != "view" && SQLName($0.object.table) == name }
        for index in objects.indices where objects[index].object.type != "index" {
            if name.isMentioned(in: objects[index].object.sql) { objects[index].isOutdated = true }
        }
        operations.append(
            Plan.Operation(
                .dropTable, table: table.shape.name,
                sql: ["DROP TABLE \(SQL.quoted(identifier: table.shape.name))"],
                reason: "it contains no rows, and another table is renamed to it"))
    }

    // MARK: Columns

    /// Takes a column's values from another one, which nothing but its own table names.
    ///
    /// That is left to a rebuild.
    mutating func replaceColumn(_ new: SQLName, by old: SQLName, of table: SQLName, _ scratch: ScratchDatabase) throws {
        guard let present = tables[table], let name = present.shape.column(new)?.name else { return }
        var text = present.shape.text
        text.items.removeAll { $0.column.map(SQLName.init) == new }
        try replaceText(of: table, text.renamingColumn(old, as: name, of: table), scratch)
        tables[table]?.columns[new] = present.column(old)
        tables[table]?.columns[old] = nil
        tables[table]?.replacedColumns.insert(new)
        tables[table]?.isOutdated = true
        for index in objects.indices where objects[index].object.type == "index" {
            rewrite(index, column: old.text, as: name, of: table, isCarried: true)
        }
    }

    /// Renames a column that is there to a name that is free.
    mutating func renameColumn(_ old: SQLName, to new: String, of table: SQLName, _ scratch: ScratchDatabase) throws {
        guard let present = tables[table], let column = present.shape.column(old) else { return }
        let isCarried = try reach.get().isCarried
        if isCarried {
            operations.append(
                Plan.Operation(
                    .renameColumn, table: present.shape.name, column: column.name,
                    sql: [
                        "ALTER TABLE \(SQL.quoted(identifier: present.shape.name)) RENAME COLUMN "
                            + "\(SQL.quoted(identifier: column.name)) TO \(SQL.quoted(identifier: new))"
                    ], reason: "the schema calls it \(new)"))
        }
        tables[table]?.columns[SQLName(new)] = present.column(old)
        tables[table]?.columns[old] = nil
        if !isCarried {
            tables[table]?.isOutdated = true
            tables[table]?.keepsOldColumns = true
        }
        try replaceText(of: table, present.shape.text.renamingColumn(old, as: new, of: table), scratch)
        for name in tables.keys where name != table {
            guard let other = tables[name] else { continue }
            let text = other.shape.text.mapping { $0.renamingReferenced(old, as: new, of: table) }
            if text != other.shape.text { try replaceText(of: name, text, scratch) }
        }
        for index in objects.indices { rewrite(index, column: column.name, as: new, of: table, isCarried: isCarried) }
    }

    private mutating func rewrite(
        _ index: Int, column: String, as new: String, of table: SQLName, isCarried: Bool
    ) {
        let object = objects[index].object
        let old = SQLName(column)
        let isOwn = object.type != "view" && SQLName(object.table) == table
        guard old.isMentioned(in: object.sql), isOwn || table.isMentioned(in: object.sql) else { return }
        let isElsewhere =
            object.type != "index"
            && tables.contains { name, other in
                name != table && other.shape.column(old) != nil && name.isMentioned(in: object.sql)
            }
        objects[index].rewrite(doubt: isElsewhere || old == table ? column : nil, isCarried: isCarried) {
            $0.renamingColumn(old, as: new)
        }
    }

    private mutating func replaceText(of name: SQLName, _ text: TableText, _ scratch: ScratchDatabase) throws {
        guard var table = tables[name] else { return }
        do {
            table.shape = try scratch.shape(of: text, name: table.shape.name)
        } catch let error as DatabaseError {
            throw StoreError.unreachable(
                path, "after the renames \(table.shape.name) would not be a table", correct: .renames,
                underlying: error)
        }
        if try !reach.get().isCarried { table.isOutdated = true }
        tables[name] = table
    }
}

extension PresentSchema.Object {
    /// - Parameter isCarried: Whether the engine carries the rename into views and triggers, as every one does into
    ///   indexes.
    fileprivate mutating func rewrite(doubt: String?, isCarried: Bool, _ body: (SQLTokens) -> String) {
        let sql = body(SQLTokens(object.sql))
        guard sql != object.sql else { return }
        object.sql = sql
        self.doubt = self.doubt ?? doubt
        if !isCarried, object.type != "index" { isOutdated = true }
    }
}
