/// A value of a record in one of SQLite's storage classes.
///
/// In a column with REAL affinity, a whole number may be stored as an integer. An INTEGER PRIMARY KEY is stored as
/// NULL.
package enum RecordValue {
    case null
    case integer(Int64)
    case real(Double)
    /// Text in the database's encoding, valid or not.
    case text(UnsafeRawBufferPointer)
    case blob(UnsafeRawBufferPointer)

    package var isNull: Bool { if case .null = self { true } else { false } }
}

/// Reads a record value by value, without a copy.
///
/// A record may have fewer values than its table has columns, if columns were added later.
/// Source: SQLite, "Database File Format", section 2.
package struct RecordReader {
    private let payload: UnsafeRawBufferPointer
    private let page: UInt32
    private let headerLength: Int
    /// The offsets of the next serial type and of its value.
    private var header: Int
    private var body: Int

    /// Creates a reader at the first value of a record.
    ///
    /// - Parameters:
    ///   - payload: The complete payload of a cell.
    ///   - page: The page of the cell, for errors.
    /// - Throws: ``DamagedPage`` if the record's header is invalid.
    package init(_ payload: UnsafeRawBufferPointer, page: UInt32) throws(DamagedPage) {
        var offset = 0
        guard let length = payload.varint(&offset), length >= offset, length <= payload.count else {
            throw DamagedPage(page, .recordHeader)
        }
        self.payload = payload
        self.page = page
        header = offset
        headerLength = Int(length)
        body = headerLength
    }

    /// Returns the next value; `nil` after the last value.
    ///
    /// - Throws: ``DamagedPage`` if the record ends before the value does, or continues after the last value. No value
    ///   follows an error.
    package mutating func next() throws(DamagedPage) -> RecordValue? {
        guard header < headerLength else {
            guard header == headerLength, body == payload.count else { throw end(.recordLength) }
            return nil
        }
        guard let type = payload.varint(&header), header <= headerLength else { throw end(.recordHeader) }
        guard let length = Self.length(of: type) else { throw end(.recordHeader) }
        guard length <= payload.count - body else { throw end(.recordLength) }
        let bytes = payload.part(body, length)
        body += length
        switch type {
        case 0: return .null
        case 1...6: return .integer(Self.integer(bytes))
        // SQLite has no NaN, and reads a stored NaN as NULL.
        case 7:
            let number = Double(bitPattern: bytes.big64(0))
            return number.isNaN ? .null : .real(number)
        case 8, 9: return .integer(Int64(type - 8))
        default: return type & 1 == 0 ? .blob(bytes) : .text(bytes)
        }
    }

    /// Checks the rest of the header without reading the values that it describes.
    ///
    /// The buffer that was passed to the initializer may lack the end of the payload, but not the end of the header.
    ///
    /// - Parameter length: The length of the complete payload.
    /// - Throws: ``DamagedPage`` if the header is invalid, or if the values do not end where the payload does.
    package mutating func checkRest(ofPayload length: Int) throws(DamagedPage) {
        while header < headerLength {
            let byte = payload.byte(header)
            // Most types take one byte: text, blobs and small integers.
            if byte < 0x80, byte >= 12 || byte < 5 {
                header += 1
                body += byte < 12 ? Int(byte) : Int(byte - 12) / 2
                continue
            }
            guard let type = payload.varint(&header), header <= headerLength, let size = Self.length(of: type) else {
                throw end(.recordHeader)
            }
            guard size <= length - body else { throw end(.recordLength) }
            body += size
        }
        guard header == headerLength, body == length else { throw end(.recordLength) }
    }

    private mutating func end(_ reason: DamagedPage.Reason) -> DamagedPage {
        (header, body) = (headerLength, payload.count)
        return DamagedPage(page, reason)
    }

    /// Returns the number of bytes that a value of a serial type takes; `nil` for the two reserved types, and for a
    /// value that no record can hold.
    package static func length(of type: UInt64) -> Int? {
        switch type {
        case 0, 8, 9: return 0
        case 1...4: return Int(type)
        case 5: return 6
        case 6, 7: return 8
        case 10, 11: return nil
        default: return type > 1 << 32 ? nil : Int(type - 12) / 2
        }
    }

    private static func integer(_ bytes: UnsafeRawBufferPointer) -> Int64 {
        var value = Int64(Int8(bitPattern: bytes.byte(0)))
        for index in 1..<max(1, bytes.count) { value = value << 8 | Int64(bytes.byte(index)) }
        return value
    }
}
