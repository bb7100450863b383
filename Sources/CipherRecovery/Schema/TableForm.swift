package import CipherCatalog
internal import CipherSQLText
package import CipherSQLite
internal import CipherSQLiteFormat

/// The form of a table's records according to the schema.
package struct TableForm {
    package let name: SchemaName
    /// The table's definition, as UTF-8 bytes.
    package let definition: [UInt8]
    /// The root page in the schema; `nil` if only a template names the table.
    package let root: UInt32?
    /// Whether the definition comes from a template.
    package let isGiven: Bool
    package let isWithoutRowID: Bool
    /// All columns, including virtual ones.
    package let columns: [ColumnState]
    /// The positions of the columns that a record stores, in the record's order.
    package let stored: [Int]
    /// The position of the value in a record that stands for the rowid and is NULL.
    package let rowidValue: Int?
    /// The columns of the key of a table WITHOUT ROWID.
    package let key: [IndexState.Part]
    /// The places in ``stored`` without repetitions: a key that contains a column twice, with two collations, stores it
    /// twice.
    let distinct: [Int]
    package var indexes: [IndexForm] = []
    /// The values that SQLite reads for the columns that a record from before `ALTER TABLE … ADD COLUMN` lacks, in the
    /// order of ``stored``.
    let defaults: [HeldValue]

    func column(_ value: Int) -> ColumnState { columns[stored[value]] }

    /// Returns the order of the keys of a table WITHOUT ROWID; `nil` if a key has a collation other than BINARY, because
    /// the app may have its own version.
    ///
    /// - Parameter ignoresDescending: Whether the schema format is older than descending keys. Source: SQLite,
    ///   "Database File Format", section 1.3.9.
    func keyOrder(ignoresDescending: Bool) -> KeyOrder? {
        let isBinary = key.allSatisfy { $0.collation.map { $0.folded == SchemaName("binary").folded } ?? true }
        guard isBinary else { return nil }
        return KeyOrder(
            key.map { KeyOrder.Part(.binary, isDescending: $0.isDescending && !ignoresDescending, isKey: true) })
    }
}

/// The form of an index according to the schema.
package struct IndexForm {
    package let name: SchemaName
    /// The index's definition; `nil` for an index that SQLite created for a constraint.
    package let sql: [UInt8]?
    package let isUnique: Bool
    package let root: UInt32?
    package let parts: [IndexState.Part]
    /// Whether the index has an entry for every row, and its entries hold only values of stored columns.
    package let isPlain: Bool
}

/// A copy of bytes in its own memory.
final class HeldBytes {
    let bytes: UnsafeRawBufferPointer
    private let memory: UnsafeMutableRawBufferPointer

    init(_ bytes: [UInt8]) {
        memory = .allocate(byteCount: max(1, bytes.count), alignment: 1)
        memory.copyBytes(from: bytes)
        self.bytes = UnsafeRawBufferPointer(rebasing: memory[..<bytes.count])
    }

    deinit { memory.deallocate() }
}

/// A value in its own memory.
final class HeldValue {
    private let held: HeldBytes
    let value: RecordValue

    /// - Parameter isText: Whether the bytes of a BLOB are those of a text.
    init(_ value: Value, _ encoding: TextEncoding = .utf8, isText: Bool = false) {
        switch value {
        case .text(let text): held = HeldBytes(encoding.bytes(text))
        case .blob(let blob): held = HeldBytes(blob)
        default: held = HeldBytes([])
        }
        self.value =
            switch value {
            case .null: .null
            case .integer(let number): .integer(number)
            case .real(let number): .real(number)
            case .text: .text(held.bytes)
            case .blob: isText ? .text(held.bytes) : .blob(held.bytes)
            }
    }
}

extension TextEncoding {
    /// The statement that gives an empty database this encoding.
    var pragma: SQL {
        switch self {
        case .utf8: "PRAGMA encoding = 'UTF-8'"
        case .utf16LittleEndian: "PRAGMA encoding = 'UTF-16le'"
        case .utf16BigEndian: "PRAGMA encoding = 'UTF-16be'"
        }
    }

    func bytes(_ text: String) -> [UInt8] {
        switch self {
        case .utf8: Array(text.utf8)
        case .utf16LittleEndian: text.utf16.flatMap { [UInt8($0 & 0xff), UInt8($0 >> 8)] }
        case .utf16BigEndian: text.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xff)] }
        }
    }

    /// Returns the text, with invalid parts replaced.
    func text(_ bytes: some Collection<UInt8>) -> String {
        switch self {
        case .utf8: return String(decoding: bytes, as: UTF8.self)
        case .utf16LittleEndian:
            return String(decoding: Self.units(bytes) { UInt16($1) << 8 | UInt16($0) }, as: UTF16.self)
        case .utf16BigEndian:
            return String(decoding: Self.units(bytes) { UInt16($0) << 8 | UInt16($1) }, as: UTF16.self)
        }
    }

    private static func units(_ bytes: some Collection<UInt8>, _ unit: (UInt8, UInt8) -> UInt16) -> [UInt16] {
        let bytes = Array(bytes)
        return stride(from: 0, to: bytes.count - 1, by: 2).map { unit(bytes[$0], bytes[$0 + 1]) }
    }
}

extension TableForm {
    /// Whether SQLite maintains a counter of the table's rowids.
    ///
    /// The definition need not be valid UTF-8, because the keyword that is looked for is ASCII.
    var countsRowIDs: Bool {
        SQLTokens(String(decoding: definition, as: UTF8.self)).tokens.contains { $0.isKeyword("autoincrement") }
    }
}
