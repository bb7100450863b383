internal import CCipherEngine

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// Whether the entries of an index come in the order of its key.
///
/// Source: SQLite, "Datatypes In SQLite", sections 4 and 7.
package struct KeyOrder {
    /// One column of a key.
    package struct Part: Sendable {
        /// The collations that are SQLite's own and the same in each of its versions.
        package enum Collation: Sendable { case binary, noCase }

        let collation: Collation
        let isDescending: Bool
        /// Whether two entries of a UNIQUE index may not be equal in this column and the other ones of its key.
        let isKey: Bool

        package init(_ collation: Collation, isDescending: Bool, isKey: Bool) {
            self.collation = collation
            self.isDescending = isDescending
            self.isKey = isKey
        }
    }

    /// How an entry stands to the one before it.
    package enum Step { case ascends, repeatsKey, doesNotAscend }

    fileprivate struct Cell {
        var type = SQLITE_NULL
        var integer: Int64 = 0
        var real = 0.0
        var bytes: [UInt8] = []
    }

    private let parts: [Part]
    private var last: [Cell]
    private var isFirst = true

    /// The order of entries with these columns.
    package init(_ parts: [Part]) {
        self.parts = parts
        last = Array(repeating: Cell(), count: parts.count)
    }

    /// Takes the next entry: the current row, whose first columns are the key's.
    package mutating func take(_ statement: Statement) -> Step {
        var order = 0
        var isKeyRepeated = true
        for (index, part) in parts.enumerated() where order == 0 {
            let cell = sqlite3_column_value(statement.handle, Int32(index))
            order = Self.compare(last[index], cell, part.collation) * (part.isDescending ? -1 : 1)
            // Two NULLs are distinct keys.
            if part.isKey, order != 0 || last[index].type == SQLITE_NULL { isKeyRepeated = false }
        }
        for index in parts.indices { last[index].take(sqlite3_column_value(statement.handle, Int32(index))) }
        defer { isFirst = false }
        if isFirst { return .ascends }
        return order >= 0 ? .doesNotAscend : isKeyRepeated ? .repeatsKey : .ascends
    }

    private static func compare(_ left: Cell, _ right: OpaquePointer?, _ collation: Part.Collation) -> Int {
        let type = sqlite3_value_type(right)
        let (leftClass, rightClass) = (storageOrder(left.type), storageOrder(type))
        guard leftClass == rightClass else { return leftClass < rightClass ? -1 : 1 }
        switch leftClass {
        case 0: return 0
        case 1: return compareNumbers(left, right, type)
        default:
            let start = sqlite3_value_blob(right)
            let bytes = UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : Int(sqlite3_value_bytes(right)))
            return compare(left.bytes, bytes, foldsCase: leftClass == 2 && collation == .noCase)
        }
    }

    /// NULL, numbers, texts, blobs.
    private static func storageOrder(_ type: Int32) -> Int {
        switch type {
        case SQLITE_NULL: 0
        case SQLITE_INTEGER, SQLITE_FLOAT: 1
        case SQLITE_TEXT: 2
        default: 3
        }
    }

    private static func compareNumbers(_ left: Cell, _ right: OpaquePointer?, _ type: Int32) -> Int {
        switch (left.type == SQLITE_INTEGER, type == SQLITE_INTEGER) {
        case (true, true): order(left.integer, sqlite3_value_int64(right))
        case (false, false): order(left.real, sqlite3_value_double(right))
        case (true, false): compare(left.integer, sqlite3_value_double(right))
        case (false, true): -compare(sqlite3_value_int64(right), left.real)
        }
    }

    /// Exactly, where a conversion of the integer would round.
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
            // As SQLite does: no further than a NUL.
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
    /// Keeps a value beyond its row, in memory that is used again.
    fileprivate mutating func take(_ value: OpaquePointer?) {
        type = sqlite3_value_type(value)
        switch type {
        case SQLITE_INTEGER: integer = sqlite3_value_int64(value)
        case SQLITE_FLOAT: real = sqlite3_value_double(value)
        case SQLITE_NULL: break
        default:
            let start = sqlite3_value_blob(value)
            bytes.removeAll(keepingCapacity: true)
            bytes.append(
                contentsOf: UnsafeRawBufferPointer(
                    start: start, count: start == nil ? 0 : Int(sqlite3_value_bytes(value))))
        }
    }
}
