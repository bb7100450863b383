internal import CipherSQLite
internal import CipherSQLiteFormat

extension Statement {
    /// Binds a value of a record; the first parameter has index 1.
    func bind(_ value: RecordValue, at index: Int32, _ encoding: TextEncoding) throws {
        switch value {
        case .null: try bindNull(at: index)
        case .integer(let number): try bind(number, at: index)
        case .real(let number): try bind(number, at: index)
        case .text(let bytes): try bind(text: bytes, encoding.form, at: index)
        case .blob(let bytes): try bind(blob: bytes, at: index)
        }
    }

    /// Returns whether a column of the current row holds a value of a record; the first column has index 0.
    ///
    /// In a column of REAL affinity, SQLite stores a whole number as an integer and reads it back as a real number.
    func column(_ column: Int32, holds value: RecordValue, _ encoding: TextEncoding) -> Bool {
        switch (storageClass(column), value) {
        case (.null, .null): true
        case (.integer, .integer(let number)): integer(column) == number
        case (.real, .real(let number)): real(column).bitPattern == number.bitPattern
        case (.real, .integer(let number)): real(column) == Double(number)
        case (.text, .text(let bytes)): self.bytes(column).elementsEqual(encoding.whole(bytes))
        case (.blob, .blob(let bytes)): self.bytes(column).elementsEqual(bytes)
        default: false
        }
    }
}

extension TextEncoding {
    var form: Statement.TextForm {
        switch self {
        case .utf8: .utf8
        case .utf16LittleEndian: .utf16LittleEndian
        case .utf16BigEndian: .utf16BigEndian
        }
    }

    /// Returns the bytes that SQLite uses; SQLite ignores half a UTF-16 code unit at the end.
    fileprivate func whole(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer.SubSequence {
        self == .utf8 ? bytes[...] : bytes.prefix(bytes.count & ~1)
    }
}

extension TableForm {
    /// Returns a stored value of a row, or the column's default if the record ends before that value.
    func value(_ place: Int, of row: ReadRow) -> RecordValue {
        place < row.values.count ? row.values[place] : defaults[place].value
    }

    /// Returns a number that is the same for rows with the same key.
    func keyPrint(_ rowid: Int64?, _ values: [RecordValue]) -> UInt64 {
        if let rowid { return UInt64(bitPattern: rowid) }
        return Array(values.prefix(key.count)).fingerprint()
    }
}
