internal import CipherCatalog
internal import CipherErrors
internal import CipherSQLText
internal import CipherSQLite

/// Rows of the original that a UNIQUE index forbids, found when the index is filled from the rows.
///
/// Only a damaged index lets such rows in, and no copy of it could be sound.
struct DuplicateKeys {
    private let index: CopySkeleton.Index
    /// How many keys stand in more than one row; `nil` where SQL cannot list the index's columns.
    private let count: Int?

    init(_ index: CopySkeleton.Index, _ connection: Connection) throws {
        self.index = index
        let isPartial = try IndexState.read(table: index.table, from: connection).contains {
            $0.name == index.name && $0.isPartial
        }
        let parts = try IndexState.parts(of: index.name, connection).filter(\.isKey)
        // Missing collations are refused before.
        let columns = parts.compactMap { part -> SQL? in
            part.name.map { "old.\($0) COLLATE \(part.collation ?? "BINARY")" }
        }
        var keys = Keys(list: columns, condition: nil)
        if isPartial || columns.count < parts.count {
            guard let written = try Keys(of: index.name, connection), written.list.count == parts.count else {
                count = nil
                return
            }
            keys = written
        }
        let isKey = ([keys.condition].compactMap { $0 } + keys.list.map { "\($0) IS NOT NULL" }).joined(by: " AND ")
        let list = keys.list.joined(by: ", ")
        do {
            count = try connection.value(
                Int.self,
                """
                SELECT count(*) FROM (
                    SELECT 1 FROM main.\(index.table) AS old NOT INDEXED WHERE \(isKey)
                    GROUP BY \(list) HAVING count(*) > 1)
                """)
        } catch let error as DatabaseError where error.extendedCode == DatabaseError.generic {
            // What a definition may say and a query may not.
            count = nil
        }
    }

    /// What an index sorts by, and the condition of a partial one, in SQL.
    private struct Keys {
        let list: [SQL]
        let condition: SQL?

        init(list: [SQL], condition: SQL?) {
            self.list = list
            self.condition = condition
        }

        /// From the definition; `nil` where that is no text, or of another form than CREATE INDEX has.
        init?(of index: SchemaName, _ connection: Connection) throws {
            var text: String?
            try connection.forEachRow("SELECT name, sql FROM main.sqlite_master WHERE type = 'index' AND sql <> ''") {
                if try $0.get(SchemaName.self, at: 0) == index { text = try $0.get(at: 1) }
            }
            guard let text else { return nil }
            let definition = SQLTokens(text)
            let tokens = definition.tokens
            guard let open = tokens.firstIndex(where: { $0.isKeyword("(") }),
                let close = definition.closing(open), close > open + 1
            else { return nil }
            let commas = (open + 1..<close).filter {
                tokens[$0].isKeyword(",") && definition.depth(at: $0) == 1
            }
            list = zip([open] + commas, commas + [close]).map { start, end in
                let isOrder = ["ASC", "DESC"].contains(where: tokens[end - 1].isKeyword)
                let last = end - (isOrder ? 2 : 1)
                return SQL(text: definition.text(from: start + 1, through: last))
            }
            guard close + 1 < tokens.count else {
                condition = nil
                return
            }
            guard tokens[close + 1].isKeyword("WHERE"), close + 2 < tokens.count else { return nil }
            condition = SQL(text: "(\(definition.text(from: close + 2, through: tokens.count - 1)))")
        }
    }

    /// The refusal.
    func error(_ path: String, _ underlying: DatabaseError) -> StoreError {
        let keys = count.map { $0 == 1 ? "1 key occurs" : "\($0) keys occur" } ?? "some keys occur"
        return StoreError(
            .corrupt, path: path,
            "index \(index.name) of table \(index.table) is damaged: it is unique, but \(keys) more than once",
            advice: "remove the duplicate rows, or drop the index, and try again", changed: .nothing,
            underlying: underlying)
    }
}

extension SQLTokens {
    /// The text of some tokens, with what stands between them.
    ///
    /// What is not valid UTF-8 is replaced: it is for counting keys in an error, and a query that fails counts none.
    fileprivate func text(from first: Int, through last: Int) -> String {
        guard first <= last else { return "" }
        return String(decoding: bytes[tokens[first].range.lowerBound..<tokens[last].range.upperBound], as: UTF8.self)
    }
}
