internal import CipherCatalog
internal import CipherSQLite
internal import CipherSQLiteFormat

/// Judges whether records can belong to a table, by the values that SQLite allows in its columns.
///
/// Source: SQLite, "Datatypes In SQLite", section 3: a column of TEXT affinity holds no number, and an INTEGER PRIMARY
/// KEY is NULL in the record.
struct RecordShape {
    enum Fit {
        case none
        /// The record fits as a record from before columns were added.
        case short
        case exact
    }

    private struct Column {
        let refusesNumbers: Bool
        let refusesNull: Bool
        let isRowID: Bool
        /// Whether `ALTER TABLE … ADD COLUMN` can have added the column.
        let canBeAdded: Bool
    }

    private let columns: [Column]
    /// The texts allowed as the first value; `nil` if any value is allowed.
    private let names: Set<[UInt8]>?

    /// Creates the shape of a table's records.
    ///
    /// - Parameter counted: The names of the tables with AUTOINCREMENT, in the database's encoding.
    init(_ table: TableForm, counted: Set<[UInt8]>) {
        names = table.name == "sqlite_sequence" ? counted : nil
        columns = table.stored.indices.map { position in
            let column = table.column(position)
            var refusesNumbers = false
            if case .text = Affinity(column.type) { refusesNumbers = true }
            let isRowID = position == table.rowidValue
            return Column(
                refusesNumbers: refusesNumbers,
                refusesNull: (column.isNotNull || table.isWithoutRowID && column.primaryKeyPosition > 0) && !isRowID,
                isRowID: isRowID,
                canBeAdded: column.primaryKeyPosition == 0 && (!column.isNotNull || column.defaultSQL != nil))
        }
    }

    /// Returns how a record fits the table.
    func fit(_ values: [RecordValue]) -> Fit {
        if let names {
            guard values.count == 2, case .text(let name) = values[0], case .integer = values[1],
                names.contains(Array(name))
            else { return .none }
        }
        guard values.count <= columns.count, zip(values, columns).allSatisfy(Self.isPossible) else { return .none }
        guard values.count < columns.count else { return .exact }
        return columns[values.count...].allSatisfy(\.canBeAdded) ? .short : .none
    }

    /// Returns how all of the records fit the table; an empty list does not fit.
    func fit(_ records: [[RecordValue]]) -> Fit {
        var result = records.isEmpty ? Fit.none : .exact
        for record in records {
            switch fit(record) {
            case .none: return .none
            case .short: result = .short
            case .exact: continue
            }
        }
        return result
    }

    private static func isPossible(_ value: RecordValue, _ column: Column) -> Bool {
        switch value {
        case .null: !column.refusesNull
        case .integer, .real: !column.refusesNumbers && !column.isRowID
        case .text, .blob: !column.isRowID
        }
    }
}

/// Judges whether records can be entries of an index: the columns' values, followed by the row's rowid or key.
struct IndexShape {
    private let refusesNumbers: [Bool]
    /// The positions of values that are rowids and therefore integers.
    private let rowids: Set<Int>

    init(_ index: IndexForm, _ table: TableForm) {
        refusesNumbers = index.parts.map { part in
            guard part.position >= 0, case .text = Affinity(table.columns[part.position].type) else { return false }
            return true
        }
        rowids = Set(index.parts.indices.filter { index.parts[$0].position == -1 })
    }

    func fits(_ values: [RecordValue]) -> Bool {
        values.count == refusesNumbers.count
            && values.indices.allSatisfy { place in
                switch values[place] {
                case .integer: !refusesNumbers[place]
                case .real: !refusesNumbers[place] && !rowids.contains(place)
                case .null, .text, .blob: !rowids.contains(place)
                }
            }
    }
}
