internal import CipherSQLiteFormat

/// The storage classes found in the columns of a table.
struct ObservedValues {
    /// For each column, one bit per storage class.
    private var columns: [UInt8]
    private var rows = 0
    /// The minimum number of rows at which a storage class can be unusual; with fewer rows, none is.
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

    /// Returns whether each value has a storage class found in its column, or there are too few rows to judge.
    func contains(_ values: [RecordValue]) -> Bool {
        rows < Self.fewest || zip(Self.classes(values), columns).allSatisfy { $0 & $1 != 0 }
    }
}
