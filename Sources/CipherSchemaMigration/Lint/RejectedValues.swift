internal import CipherCatalog
internal import CipherSQLText

/// Finds values that a rebuilt table would reject.
struct RejectedValues {
    let lint: ValueLint
    let existing: TableShape
    let target: TableShape

    func findings() throws -> [Plan.Finding] {
        var findings: [Plan.Finding] = []
        for column in target.columns where column.generation == nil {
            if let old = existing.column(SQLName(column.name)) {
                findings += try target.isRowID(column) ? unsuitableRowIDs(column, old) : nulls(column, old)
                findings += try misfits(column, old)
            } else {
                findings += try missing(column)
            }
        }
        for key in target.facts.keys.subtracting(existing.facts.keys) { findings += try duplicates(key) }
        return findings
    }

    private func name(_ column: ColumnState) -> String { "\(target.name).\(column.name)" }

    private func missing(_ column: ColumnState) throws -> [Plan.Finding] {
        guard column.isNotNull, column.defaultExpression == nil, !target.isRowID(column) else { return [] }
        let rows = try lint.rows()
        guard !rows.isZero else { return [] }
        return [
            Plan.Finding(
                .impossible, table: target.name, column: column.name, count: rows.number,
                message: "the NOT NULL column \(name(column)) has no default, but the table contains \(rows.of("row"))")
        ]
    }

    private func nulls(_ column: ColumnState, _ old: ColumnState) throws -> [Plan.Finding] {
        guard column.isNotNull, !old.isNotNull else { return [] }
        let nulls = try lint.nulls(in: SQLName(column.name))
        guard !nulls.isZero else { return [] }
        let isFilled = column.defaultExpression != nil
        return [
            Plan.Finding(
                isFilled ? .note : .impossible, table: target.name, column: column.name, count: nulls.number,
                message: isFilled
                    ? "the migration replaces \(nulls.of("NULL")) of \(name(column)) with the default, because the "
                        + "column becomes NOT NULL"
                    : "\(name(column)) becomes NOT NULL without a default, but contains \(nulls.of("NULL"))")
        ]
    }

    /// Finds values that cannot be rowids: SQLite would replace NULL with a new number, and reject anything else that
    /// is not a number.
    private func unsuitableRowIDs(_ column: ColumnState, _ old: ColumnState) throws -> [Plan.Finding] {
        let name = SQLName(column.name)
        guard existing.rowIDColumn.map({ SQLName($0.name) }) != name else { return [] }
        let nulls = try lint.nulls(in: name)
        let others = try lint.misfits(of: "INTEGER", in: name)
        let duplicates = try others.isZero ? lint.duplicates(ofNumbersIn: name) : ValueLint.Count(number: 0)
        func finding(_ count: ValueLint.Count, _ problem: String) -> [Plan.Finding] {
            guard !count.isZero else { return [] }
            return [
                Plan.Finding(
                    .impossible, table: target.name, column: column.name, count: count.number,
                    message: "\(self.name(column)) becomes the INTEGER PRIMARY KEY, but \(problem)")
            ]
        }
        return finding(nulls, "contains \(nulls.of("NULL")), which SQLite would replace with numbers")
            + finding(others, "\(others.of("value")) in it cannot be converted to whole numbers")
            + finding(
                duplicates,
                "\(duplicates.of("value")) in it \(duplicates.number == 1 ? "occurs" : "occur") more than once")
    }

    private func misfits(_ column: ColumnState, _ old: ColumnState) throws -> [Plan.Finding] {
        let isAlike = existing.facts.isStrict && SQLName(old.type) == SQLName(column.type)
        guard target.facts.isStrict, !isAlike else { return [] }
        let misfits = try lint.misfits(of: column.type, in: SQLName(column.name))
        guard !misfits.isZero else { return [] }
        return [
            Plan.Finding(
                .impossible, table: target.name, column: column.name, count: misfits.number,
                message: "\(misfits.of("value")) of \(name(column)) would not fit the type \(column.type) of a strict "
                    + "table")
        ]
    }

    private func duplicates(_ key: TableShape.Key) throws -> [Plan.Finding] {
        let duplicates = try lint.duplicates(of: key)
        guard !duplicates.isZero else { return [] }
        let columns = key.parts.map(\.column.text).joined(separator: ", ")
        return [
            Plan.Finding(
                .impossible, table: target.name, count: duplicates.number,
                message: "\(target.name)(\(columns)) must be unique, but \(duplicates.of("value")) "
                    + "\(duplicates.number == 1 ? "occurs" : "occur") more than once")
        ]
    }
}
