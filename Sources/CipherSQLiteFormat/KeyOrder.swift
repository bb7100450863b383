internal import CipherPlatform

/// Checks whether the entries of an index are in the order of its key.
///
/// Source: SQLite, "Datatypes In SQLite", sections 4 and 7.
package struct KeyOrder: Sendable {
    /// One column of a key.
    package struct Part: Sendable {
        /// The built-in collations that are the same in every version of SQLite.
        package enum Collation: Sendable { case binary, noCase }

        let collation: Collation
        let isDescending: Bool
        /// Whether the column belongs to the key.
        ///
        /// Two entries of a UNIQUE index must not be equal in all columns of the key.
        let isKey: Bool

        package init(_ collation: Collation, isDescending: Bool, isKey: Bool) {
            self.collation = collation
            self.isDescending = isDescending
            self.isKey = isKey
        }
    }

    /// The relation of an entry to the previous one.
    package enum Step { case ascends, repeatsKey, doesNotAscend }

    fileprivate struct Cell {
        enum Content {
            case null
            case integer(Int64)
            case real(Double)
            case text, blob
        }

        var content = Content.null
        var bytes: [UInt8] = []
    }

    private let parts: [Part]
    private var last: [Cell]
    private var isFirst = true

    /// Creates the order of entries with these columns.
    package init(_ parts: [Part]) {
        self.parts = parts
        last = Array(repeating: Cell(), count: parts.count)
    }

    /// Takes the next entry, whose first columns are those of the key.
    ///
    /// - Parameter entry: At least as many values as the order has columns.
    package mutating func take(_ entry: [RecordValue]) -> Step {
        var order = 0
        var isKeyRepeated = true
        for (index, part) in parts.enumerated() where order == 0 {
            order = Self.compare(last[index], entry[index], part.collation) * (part.isDescending ? -1 : 1)
            // Two NULLs are distinct keys.
            if part.isKey, order != 0 || entry[index].isNull { isKeyRepeated = false }
        }
        for index in parts.indices { last[index].take(entry[index]) }
        defer { isFirst = false }
        if isFirst { return .ascends }
        return order >= 0 ? .doesNotAscend : isKeyRepeated ? .repeatsKey : .ascends
    }

    private static func compare(_ left: Cell, _ right: RecordValue, _ collation: Part.Collation) -> Int {
        switch (left.content, right) {
        case (.null, .null): 0
        case (.integer(let left), .integer(let right)): order(left, right)
        case (.real(let left), .real(let right)): order(left, right)
        case (.integer(let left), .real(let right)): compare(left, right)
        case (.real(let left), .integer(let right)): -compare(right, left)
        case (.text, .text(let bytes)): compare(left.bytes, bytes, foldsCase: collation == .noCase)
        case (.blob, .blob(let bytes)): compare(left.bytes, bytes, foldsCase: false)
        default: order(left.rank, right.rank)
        }
    }

    /// Compares an integer and a real number exactly.
    ///
    /// Converting the integer to a real number would round it.
    private static func compare(_ integer: Int64, _ real: Double) -> Int {
        if real < -0x1p63 { return 1 }
        if real >= 0x1p63 { return -1 }
        let whole = Int64(real)
        return integer == whole ? order(Double(integer), real) : order(integer, whole)
    }

    private static func compare(_ left: [UInt8], _ right: UnsafeRawBufferPointer, foldsCase: Bool) -> Int {
        let count = min(left.count, right.count)
        var result = 0
        if foldsCase {
            // Like SQLite, this stops at a NUL.
            for index in 0..<count {
                result = order(fold(left[index]), fold(right[index]))
                if result != 0 || left[index] == 0 { break }
            }
        } else if count > 0, let start = right.baseAddress {
            result = left.withUnsafeBytes { $0.baseAddress.map { Int(memcmp($0, start, count)) } ?? 0 }
        }
        return result == 0 ? order(left.count, right.count) : result
    }

    private static func order<Number: Comparable>(_ left: Number, _ right: Number) -> Int {
        left < right ? -1 : left == right ? 0 : 1
    }

    private static func fold(_ byte: UInt8) -> UInt8 { byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte }
}

extension KeyOrder.Cell {
    /// Stores a copy of a value that outlives the row, in memory that is reused.
    fileprivate mutating func take(_ value: RecordValue) {
        switch value {
        case .null: content = .null
        case .integer(let number): content = .integer(number)
        case .real(let number): content = .real(number)
        case .text(let bytes):
            content = .text
            keep(bytes)
        case .blob(let bytes):
            content = .blob
            keep(bytes)
        }
    }

    private mutating func keep(_ value: UnsafeRawBufferPointer) {
        bytes.removeAll(keepingCapacity: true)
        bytes.append(contentsOf: value)
    }

    /// The order of the storage classes: NULL, numbers, texts, blobs.
    fileprivate var rank: Int {
        switch content {
        case .null: 0
        case .integer, .real: 1
        case .text: 2
        case .blob: 3
        }
    }
}

extension RecordValue {
    fileprivate var rank: Int {
        switch self {
        case .null: 0
        case .integer, .real: 1
        case .text: 2
        case .blob: 3
        }
    }
}
