internal import CipherCatalog
internal import CipherSQLiteFormat

/// Whether records can be a table's, by what SQLite lets into its columns.
///
/// Source: SQLite, "Datatypes In SQLite", section 3: a column of TEXT affinity holds no number, and an INTEGER PRIMARY KEY is
/// NULL in the record.
struct RecordShape {
    enum Fit {
        case none
        /// As a record from before columns were added.
        case short
        case exact
    }

    private struct Column {
        let refusesNumbers: Bool
        let refusesNull: Bool
        let isRowID: Bool
        /// Whether `ALTER TABLE … ADD COLUMN` can have added it.
        let canBeAdded: Bool
    }

    private let columns: [Column]

    init(_ table: TableForm) {
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

    /// How a record fits.
    func fit(_ values: [RecordValue]) -> Fit {
        guard values.count <= columns.count, zip(values, columns).allSatisfy(Self.isPossible) else { return .none }
        guard values.count < columns.count else { return .exact }
        return columns[values.count...].allSatisfy(\.canBeAdded) ? .short : .none
    }

    /// How all of some records fit; of none they fit in no way.
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
