internal import CipherCatalog
internal import CipherSQLText
internal import CipherSQLite

/// Finds virtual tables that read rows of another table, such as full-text indexes with external content, and that a
/// change of this table breaks.
///
/// SQLite updates views and triggers after a rename, but not the arguments of a module.
struct BrokenReaders {
    let state: DatabaseState

    /// Returns findings about renames.
    func findings(afterRenamesIn present: PresentSchema) -> [Plan.Finding] {
        present.tables.values.sorted { $0.name < $1.name }.flatMap { table -> [Plan.Finding] in
            let isRenamed = SQLName(table.shape.name) != SQLName(table.name)
            let columns = table.columns.sorted { $0.key < $1.key }
            guard isRenamed || !columns.isEmpty else { return [] }
            return readers(of: SQLName(table.name)).flatMap { reader in
                (isRenamed ? [finding(reader, "reads \(table.name)", "renames to \(table.shape.name)")] : [])
                    + columns.filter { SQLName($0.value).isMentioned(in: reader.sql ?? "") }.map { new, old in
                        finding(
                            reader, "reads \(table.name).\(old)",
                            "renames to \(table.shape.column(new)?.name ?? new.text)")
                    }
            }
        }
    }

    /// Returns findings about a change that gives the rows different rowids, or a new column the name of the rowid.
    func findings(after target: TableShape, of found: PresentSchema.Table) throws -> [Plan.Finding] {
        let readers = readers(of: SQLName(found.name)).filter { $0.keyColumn(in: found.shape) == nil }
        let use = "finds the rows of \(found.name) by rowid"
        if target.facts.isWithoutRowID, !found.shape.facts.isWithoutRowID {
            return readers.map { finding($0, use, "removes") }
        }
        var newKey: String?
        if !readers.isEmpty, let key = found.shape.newRowIDs(in: target), try changesRowIDs(of: found, to: key) {
            newKey = key.name
        }
        return readers.compactMap { reader in
            let hiding = reader.keyColumn(in: target).flatMap { target.isRowID($0) ? nil : $0.name }
            return (hiding ?? newKey).map { finding(reader, use, "replaces with the values of \($0)") }
        }
    }

    /// Returns whether a row has a different rowid once the column's values are the rowids.
    private func changesRowIDs(of found: PresentSchema.Table, to key: ColumnState) throws -> Bool {
        guard let alias = found.shape.rowIDAlias, let column = found.column(SQLName(key.name)) else { return false }
        return try state.connection.value(
            Bool.self,
            """
            SELECT EXISTS (SELECT 1 FROM main.\(identifier: found.name)
            WHERE \(SQL(text: alias)) IS NOT CAST(\(SQL(text: SQL.quoted(column: column))) AS INTEGER))
            """) == true
    }

    private func readers(of table: SQLName) -> [TableState] { state.tables.filter { $0.reads(table) } }

    private func finding(_ reader: TableState, _ use: String, _ change: String) -> Plan.Finding {
        Plan.Finding(
            .removesSchema, table: reader.name,
            message: "the virtual table \(reader.name) \(use), which the migration \(change)")
    }
}

extension TableShape {
    /// Returns the column whose values become the rowids if the table is rebuilt as another one; `nil` if the rows keep
    /// their rowids.
    fileprivate func newRowIDs(in target: TableShape) -> ColumnState? {
        guard !facts.isWithoutRowID, let key = target.rowIDColumn else { return nil }
        let name = SQLName(key.name)
        return rowIDColumn.map { SQLName($0.name) } == name ? nil : column(name)
    }
}

extension TableState {
    /// Returns whether a virtual table may read rows of another table.
    ///
    /// A full-text index reads only the table that its option `content` names, and an R-tree none; any other module may
    /// read every table that its arguments name.
    fileprivate func reads(_ table: SQLName) -> Bool {
        guard isVirtual, let sql else { return false }
        let tokens = SQLTokens(sql).tokens
        guard let using = tokens.firstIndex(where: { $0.isKeyword("USING") }), using + 2 < tokens.count else {
            return false
        }
        let module = SQLName(tokens[using + 1].content)
        guard ![SQLName("rtree"), SQLName("rtree_i32"), SQLName("geopoly")].contains(module) else { return false }
        let isFullText = module.hasPrefix("fts")
        return tokens.indices.dropFirst(using + 2).contains { index in
            let isContent =
                tokens[index - 1].isKeyword("=") && tokens[index - 2].isNamed(SQLName("content")) || !isFullText
            return isContent && (tokens[index].isNamed(table) || tokens[index].isText(table))
        }
    }

    /// Returns the column by which a virtual table finds the rows of another table: the one that its option
    /// `content_rowid` names, or `rowid` without that option; `nil` if this is the name of the rowid itself.
    fileprivate func keyColumn(in table: TableShape) -> ColumnState? {
        let tokens = SQLTokens(sql ?? "").tokens
        let option = tokens.indices.dropLast(2).first {
            tokens[$0].isNamed(SQLName("content_rowid")) && tokens[$0 + 1].isKeyword("=")
        }
        guard let option else { return table.column(SQLName("rowid")) }
        return table.columns.first { column in
            let name = SQLName(column.name)
            return tokens[option + 2].isNamed(name) || tokens[option + 2].isText(name)
        }
    }
}

extension SQLToken {
    /// Returns whether the token is a string that contains only the given name.
    fileprivate func isText(_ name: SQLName) -> Bool {
        kind == .literal && SQLName(content) == SQLName(SQL.quoted(text: name.text))
    }
}
