internal import CipherSQLite
internal import CipherSQLiteFormat

/// The fingerprints of rows or entries in any order: their number and their sum.
package struct Fingerprints: Equatable, Sendable {
    package private(set) var count: Int64 = 0
    private var sum: UInt64 = 0

    mutating func add(_ fingerprint: UInt64) {
        count += 1
        sum &+= fingerprint
    }

    mutating func add(_ other: Fingerprints) {
        count += other.count
        sum &+= other.sum
    }

    mutating func remove(_ fingerprint: UInt64) {
        count -= 1
        sum &-= fingerprint
    }
}

/// A fingerprint of some values, by storage class and bytes: equal values have equal fingerprints.
///
/// Numbers are compared by value, because a record stores a REAL without a fraction as an integer. A record and a
/// statement with the same values have the same fingerprint. It is valid within one process and compares values of one
/// file only, because text is fingerprinted in the encoding of the database.
struct ValueFingerprint {
    private var hasher = Hasher()
    /// The storage classes of the values, as base-6 digits.
    ///
    /// They are added last and together, because each addition takes as long as that of a number.
    private var storageClasses: UInt64 = 0

    mutating func add(_ value: RecordValue) {
        switch value {
        case .null: add(storageClass: 1)
        case .integer(let number): add(number)
        case .real(let number):
            if let whole = Int64(exactly: number) { return add(whole) }
            add(storageClass: 3)
            hasher.combine(number.bitPattern)
        case .text(let bytes): add(storageClass: 4, bytes)
        case .blob(let bytes): add(storageClass: 5, bytes)
        }
    }

    private mutating func add(_ number: Int64) {
        add(storageClass: 2)
        hasher.combine(number)
    }

    private mutating func add(storageClass: UInt64, _ bytes: UnsafeRawBufferPointer) {
        add(storageClass: storageClass)
        hasher.combine(bytes.count)
        hasher.combine(bytes: bytes)
    }

    private mutating func add(storageClass: UInt64) {
        storageClasses = storageClasses &* 6 &+ storageClass
    }

    consuming func finish() -> UInt64 {
        hasher.combine(storageClasses)
        return UInt64(truncatingIfNeeded: hasher.finalize())
    }
}

extension RecordValue {
    /// Creates the value of a column of a statement's current row, which is valid until the statement's next step.
    init(_ statement: Statement, _ column: Int32) {
        self =
            switch statement.storageClass(column) {
            case .null: .null
            case .integer: .integer(statement.integer(column))
            case .real: .real(statement.real(column))
            case .text: .text(statement.bytes(column))
            case .blob: .blob(statement.bytes(column))
            }
    }
}

extension Statement {
    /// Returns the fingerprint of some columns of the current row.
    func fingerprint(of columns: [Int32]) -> UInt64 {
        var fingerprint = ValueFingerprint()
        for column in columns { fingerprint.add(RecordValue(self, column)) }
        return fingerprint.finish()
    }
}
