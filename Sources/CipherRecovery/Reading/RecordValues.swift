internal import CipherErrors
internal import CipherSQLiteFormat

extension RecordReader {
    /// Returns all values of a record; they are valid as long as its payload.
    ///
    /// - Throws: ``DamagedPage`` if the record does not have the length that its header states.
    static func values(_ payload: UnsafeRawBufferPointer, page: UInt32) throws(DamagedPage) -> [RecordValue] {
        var record = try RecordReader(payload, page: page)
        var values: [RecordValue] = []
        while let value = try record.next() { values.append(value) }
        return values
    }

    /// Returns the serial types of a record if all of them are on the cell's own page; `nil` if they continue on
    /// another page or are invalid.
    static func types(_ cell: TreeCell) -> [UInt64]? {
        var offset = 0
        guard let length = cell.local.varint(&offset), length >= offset, length <= cell.local.count else { return nil }
        var types: [UInt64] = []
        while offset < Int(length) {
            guard let type = cell.local.varint(&offset), offset <= Int(length), Self.length(of: type) != nil else {
                return nil
            }
            types.append(type)
        }
        return types
    }

    /// Returns whether a serial type is that of an integer.
    ///
    /// Source: SQLite's "Database File Format", section 2.1.
    static func isInteger(_ type: UInt64) -> Bool { (1...6).contains(type) || type == 8 || type == 9 }
}

extension [RecordValue] {
    /// Returns a number that is the same for equal values within one process.
    ///
    /// - Parameter isExact: Whether an integer differs from an equal real number; SQLite stores a whole number either
    ///   way.
    func fingerprint(isExact: Bool = false) -> UInt64 {
        var hasher = Hasher()
        for value in self {
            switch value {
            case .null: hasher.combine(0)
            case .integer(let number):
                hasher.combine(1)
                hasher.combine(number)
            case .real(let number):
                if !isExact, let whole = Int64(exactly: number) {
                    hasher.combine(1)
                    hasher.combine(whole)
                } else {
                    hasher.combine(2)
                    hasher.combine(number.bitPattern)
                }
            case .text(let bytes):
                hasher.combine(3)
                hasher.combine(bytes: bytes)
                hasher.combine(bytes.count)
            case .blob(let bytes):
                hasher.combine(4)
                hasher.combine(bytes: bytes)
                hasher.combine(bytes.count)
            }
        }
        return UInt64(truncatingIfNeeded: hasher.finalize())
    }

    /// Returns whether one of the texts is implausible on an undamaged page: it contains a NUL or, in UTF-8, is
    /// invalid.
    func hasImplausibleText(_ encoding: TextEncoding) -> Bool {
        contains { value in
            guard case .text(let bytes) = value else { return false }
            switch encoding {
            case .utf8: return bytes.contains(0) || String(utf8: bytes) == nil
            default:
                return stride(from: 0, to: bytes.count - 1, by: 2).contains { bytes[$0] == 0 && bytes[$0 + 1] == 0 }
            }
        }
    }
}
