internal import CipherSQLiteFormat

/// Which storage classes the columns of a table were found to hold.
struct ObservedValues {
    /// A bit for each class, by column.
    private var columns: [UInt8]
    private var rows = 0
    /// Of fewer rows nothing is usual.
    private static let fewest = 20

    init(columns: Int) { self.columns = [UInt8](repeating: 0, count: columns) }

    static func classes(_ values: [RecordValue]) -> [UInt8] {
        values.map { value in
            switch value {
            case .null: 1
            case .integer: 2
            case .real: 4
            case .text: 8
            case .blob: 16
            }
        }
    }

    mutating func add(_ classes: [UInt8]) {
        rows += 1
        for (column, bit) in zip(columns.indices, classes) { columns[column] |= bit }
    }

    /// Whether the table has rows of such values, or too few to tell.
    func contains(_ values: [RecordValue]) -> Bool {
        rows < Self.fewest || zip(Self.classes(values), columns).allSatisfy { $0 & $1 != 0 }
    }
}
