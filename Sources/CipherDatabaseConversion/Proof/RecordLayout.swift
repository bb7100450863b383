internal import CipherSQLite
internal import CipherSQLiteFormat

/// The positions, in the records of a table, of the values that the proof examines beyond comparing bytes.
struct RecordLayout: Sendable {
    enum Field: Sendable {
        case rowid
        /// A value of the record, numbered from 0.
        case value(Int)
    }

    /// The columns of each index that is compared with the rows.
    let indexes: [[Field]]
    /// The columns that are declared NOT NULL: their positions among the stored columns and in the record.
    let notNull: [(number: Int, field: Int)]
    /// The number of leading values of a record that include every value to examine.
    let fieldCount: Int
    /// The key of a WITHOUT ROWID table, in the order of its records; `nil` if rows have rowids.
    let key: IndexLayout?
    /// The order of the rows of a WITHOUT ROWID table by their key; `nil` if it is unknown.
    let keyOrder: KeyOrder?

    /// Creates the layout; `nil` for a table whose rows SQL cannot look up one by one.
    ///
    /// - Parameters:
    ///   - key: The layout of the key of a WITHOUT ROWID table.
    ///   - keyOrder: The order of the rows by that key; `nil` if it is unknown.
    ///   - hasKeyIndex: Whether the primary key is an index, or the table itself if it is WITHOUT ROWID.
    ///     Otherwise the primary key is the rowid, for which records hold NULL.
    init?(
        _ reading: TableReading, indexes: [IndexLayout], key: IndexLayout?, keyOrder: KeyOrder?, hasKeyIndex: Bool
    ) {
        let stored = reading.columns.stored
        let positions: [Int]
        var rowidPosition: Int?
        self.key = key
        self.keyOrder = keyOrder
        if reading.key != nil {
            guard reading.rowid == nil, let key else { return nil }
            positions = key.parts.compactMap(\.position)
        } else {
            guard reading.rowid != nil, !reading.isWide else { return nil }
            positions = stored.map(\.position)
            let keyColumns = stored.filter(\.isInKey)
            if !hasKeyIndex, keyColumns.count == 1 { rowidPosition = keyColumns[0].position }
        }
        guard positions.count == stored.count else { return nil }
        var places: [Int: Int] = [:]
        for (field, position) in positions.enumerated() { places[position] = field }
        var fields: [[Field]] = []
        for index in indexes {
            var columns: [Field] = []
            for part in index.parts {
                if part.position == nil || part.position == rowidPosition {
                    columns.append(.rowid)
                } else {
                    guard let place = part.position.flatMap({ places[$0] }) else { return nil }
                    columns.append(.value(place))
                }
            }
            fields.append(columns)
        }
        var notNull: [(number: Int, field: Int)] = []
        for (number, column) in stored.enumerated() where column.isNotNull && column.position != rowidPosition {
            guard let place = places[column.position] else { return nil }
            notNull.append((number, place))
        }
        self.indexes = fields
        self.notNull = notNull
        let last = fields.joined().map { field in if case .value(let place) = field { place } else { -1 } }
        // The columns of the key come first.
        let keyCount = key?.parts.filter(\.isKey).count ?? 0
        fieldCount = max(keyCount, (last + notNull.map(\.field)).max().map { $0 + 1 } ?? 0)
    }
}
