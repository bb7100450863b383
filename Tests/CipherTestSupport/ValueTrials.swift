internal import CipherErrors
internal import CipherSQLite
import Foundation

/// Values of every type that are written to columns of every kind, read, written again, looked up and sorted.
///
/// Where a column can store a type, the value that is read equals the one that was written, a second write changes no
/// stored byte, and SQL compares and sorts the values as Swift does. Anywhere else, a read throws; it never returns
/// another value.
public struct ValueTrials {
    /// The differences that were found.
    public private(set) var faults: [String] = []
    /// The number of combinations of a type, a form and a column.
    public private(set) var combinations = 0
    private var random: SeededRandom
    private let count: Int

    /// - Parameter count: The number of values of each combination.
    public init(count: Int, seed: UInt64 = 1) {
        self.count = count
        random = SeededRandom(seed: seed)
    }

    /// How values of one type behave.
    private struct Kind<Item: Codable & Equatable & Bindable & ColumnReadable> {
        let name: String
        /// The column types that store every value of the type.
        let kept: [String]
        /// The column types whose values SQL sorts as Swift does.
        let sorted: [String]
        var forms = ColumnForms()
        /// Whether two values are in this order.
        var isLess: (Item, Item) -> Bool = { _, _ in false }
        /// Whether the second value is what a column may make of the first.
        var isSame: (Item, Item) -> Bool = { $0 == $1 }
        let make: (inout SeededRandom) -> Item
    }

    private struct Stored<Item: Codable>: Codable {
        var id: Int
        var value: Item
    }

    private static let columns = [
        "", "INTEGER", "BIGINT", "BOOLEAN", "REAL", "DOUBLE", "NUMERIC", "DECIMAL(10,2)", "DATETIME", "TEXT",
        "VARCHAR(20)", "BLOB",
    ]
    /// The columns that store every integer as it is.
    private static let integers = ["", "INTEGER", "BIGINT", "BOOLEAN", "NUMERIC", "DECIMAL(10,2)", "DATETIME", "BLOB"]
    private static let reals = integers + ["REAL", "DOUBLE"]
    /// The columns that store every text as it is.
    private static let texts = ["", "TEXT", "VARCHAR(20)", "BLOB"]

    /// Runs all combinations.
    public mutating func run() throws {
        try runIntegers()
        try runNumbers()
        try runTexts()
        for dates in ColumnForms.DateForm.allCases { try run(dates) }
        try runDecimals()
    }

    private mutating func run<Item>(_ kind: Kind<Item>) throws {
        for column in Self.columns { try run(kind, in: column) }
    }

    private mutating func run<Item>(_ kind: Kind<Item>, in column: String) throws {
        combinations += 1
        let isKept = kind.kept.contains(column)
        var differences: [String: (count: Int, example: String)] = [:]
        func found(_ difference: String, _ example: Any) {
            differences[difference, default: (0, "\(example)")].count += 1
        }
        let db = try Connection(inMemoryWith: [])
        defer { db.close() }
        db.columnForms = kind.forms
        try db.execute(SQL(text: "CREATE TABLE v(id INTEGER PRIMARY KEY, value \(column))"))
        try db.execute(SQL(text: "CREATE TABLE w(id INTEGER PRIMARY KEY, value \(column))"))
        let values = (0..<count).map { _ in kind.make(&random) }
        try db.execute("BEGIN")
        for (id, value) in values.enumerated() {
            try db.insert(Stored(id: id, value: value), into: "v")
            try db.execute("INSERT INTO w VALUES (\(id), \(value))")
        }
        let stored = try db.values(Value.self, "SELECT value FROM v ORDER BY id")
        if try db.values(Value.self, "SELECT value FROM w ORDER BY id") != stored {
            found("a property and an interpolated value are stored differently", kind.name)
        }
        var read: [Item] = []
        for (id, value) in values.enumerated() {
            let item: Item
            do {
                guard let row = try db.row(Stored<Item>.self, "SELECT id, value FROM v WHERE id = \(id)") else {
                    continue
                }
                item = row.value
            } catch {
                if isKept { found("cannot be read", value) }
                continue
            }
            read.append(item)
            if !kind.isSame(value, item) {
                found("another value is read", "\(value), read \(item), stored \(stored[id])")
            }
            guard isKept else { continue }
            if try db.value(Item.self, "SELECT value FROM v WHERE id = \(id)") != item {
                found("a value and a property are read differently", value)
            }
            if try !db.exists("SELECT 1 FROM v WHERE id = \(id) AND value = \(item)") { found("is not found", value) }
            try db.update(Stored(id: id, value: item), in: "v")
        }
        if isKept, read.count == count {
            for (id, value) in try db.values(Value.self, "SELECT value FROM v ORDER BY id").enumerated()
            where value != stored[id] {
                found("another value is stored when it is written again", "\(stored[id]), then \(value)")
            }
            if kind.sorted.contains(column) {
                let order = read.indices.sorted { one, other in
                    kind.isLess(read[one], read[other]) || !kind.isLess(read[other], read[one]) && one < other
                }
                if try db.values(Int.self, "SELECT id FROM v ORDER BY value, id") != order {
                    found("is sorted differently", kind.name)
                }
            }
        }
        try db.execute("ROLLBACK")
        for (difference, cases) in differences.sorted(by: { $0.key < $1.key }) {
            faults.append("\(kind.name) in \(column): \(difference): \(cases.count) of \(count), as \(cases.example)")
        }
    }

    // MARK: Integers

    private mutating func runIntegers() throws {
        try runInteger(Int.self)
        try runInteger(Int8.self)
        try runInteger(Int16.self)
        try runInteger(Int32.self)
        try runInteger(Int64.self)
        try runInteger(UInt8.self)
        try runInteger(UInt16.self)
        try runInteger(UInt32.self)
        try run(
            Kind<Bool>(name: "Bool", kept: Self.integers, sorted: Self.integers, isLess: { !$0 && $1 }) {
                $0.oneIn(2)
            })
    }

    private mutating func runInteger<Number>(_ type: Number.Type) throws
    where Number: FixedWidthInteger & Codable & Bindable & ColumnReadable {
        try run(
            Kind<Number>(name: "\(type)", kept: Self.integers, sorted: Self.integers, isLess: <) { random in
                // The bounds, numbers near powers of 2, and any others.
                switch random.below(4) {
                case 0: [Number.min, .max, 0, 1, .max - 1, .min + 1][random.below(6)]
                case 1: Number(truncatingIfNeeded: (1 << random.below(64)) &+ random.below(3) &- 1)
                default: Number.random(in: .min ... .max, using: &random)
                }
            })
    }

    // MARK: Numbers

    private static func number(_ random: inout SeededRandom) -> Double {
        let special = [
            0, -0.0, .infinity, -.infinity, .leastNonzeroMagnitude, .greatestFiniteMagnitude, 0.1, 1e15, 1e16, 9e18,
            9_007_199_254_740_992, 0.1 + 0.2, 1e-300, -9_223_372_036_854_775_808, 9_223_372_036_854_775_808,
        ]
        switch random.below(4) {
        case 0: return special[random.below(special.count)]
        case 1: return Double(random.below(2_000_000) - 1_000_000) / 100
        case 2: return Double.random(in: -1e6...1e6, using: &random)
        default:
            let number = Double(bitPattern: random.next())
            return number.isNaN ? 1 : number
        }
    }

    private mutating func runNumbers() throws {
        try run(
            Kind<Double>(
                name: "Double", kept: Self.reals, sorted: Self.reals, isLess: <, make: Self.number))
        try run(
            Kind<Float>(name: "Float", kept: Self.reals, sorted: Self.reals, isLess: <) { Float(Self.number(&$0)) })
    }

    private mutating func runDecimals() throws {
        // Numeric columns keep 15 digits.
        let numeric = ["NUMERIC", "DECIMAL(10,2)", "REAL", "DOUBLE", "INTEGER", "BIGINT", "BOOLEAN", "DATETIME"]
        for digits in [0, 2, 6] {
            try run(
                Kind<Decimal>(
                    name: "Decimal with \(digits) digits", kept: Self.texts + numeric, sorted: numeric, isLess: <
                ) { random in
                    Decimal(Int.random(in: -999_999_999...999_999_999, using: &random)) / pow(10, digits)
                })
        }
        try run(
            Kind<Decimal>(
                name: "Decimal with up to 38 digits", kept: Self.texts, sorted: [],
                // Numeric columns round.
                isSame: { $0 == $1 || abs($0 - $1) <= abs($0) / 1_000_000_000_000_000 }
            ) { random in
                let digits = (0..<random.below(38) + 1).map { _ in "\(random.below(10))" }.joined()
                let exponent = random.below(60) - 40
                return Decimal(string: (random.oneIn(2) ? "-" : "") + digits + "e\(exponent)") ?? 0
            })
    }

    // MARK: Texts and bytes

    private static func text(_ random: inout SeededRandom) -> String {
        let pieces = [
            "a", "Z", "é", "e\u{301}", "\u{feff}", "\u{0}", "😀", "👨‍👩‍👧", "\u{fffd}", "\u{10ffff}", "\u{d7ff}", "'", "\"",
            "ß", "İ", "中", " ", "\n", "1", "0", ".", "e", "-", "\u{7f}", "\u{80}", "\u{ffff}",
        ]
        switch random.below(5) {
        case 0: return "\(random.below(1_000))"
        case 1: return random.pick(["1e3", "0x10", "1.50", "-0", "007", "+1", " 1", "1 ", "NULL", "", "Inf", "9e999"])
        default: return (0..<random.below(12)).map { _ in random.pick(pieces) }.joined()
        }
    }

    private mutating func runTexts() throws {
        let isLess: (String, String) -> Bool = { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        try run(
            Kind<String>(
                name: "String", kept: Self.texts, sorted: Self.texts, isLess: isLess,
                isSame: { $0.utf8.elementsEqual($1.utf8) }, make: Self.text))
        let bytes: (inout SeededRandom) -> Data = { random in
            Data((0..<random.below(20)).map { _ in UInt8.random(in: 0...255, using: &random) })
        }
        try run(
            Kind<Data>(
                name: "Data", kept: Self.columns, sorted: Self.columns,
                isLess: { $0.lexicographicallyPrecedes($1) }, make: bytes))
        for form in ColumnForms.UUIDForm.allCases {
            try run(
                Kind<UUID>(
                    name: "UUID as \(form)", kept: form == .blob ? Self.columns : Self.texts,
                    sorted: form == .blob ? Self.columns : Self.texts, forms: ColumnForms(uuids: form),
                    isLess: { $0.uuidString < $1.uuidString }
                ) { random in
                    withUnsafeBytes(of: (random.next(), random.next())) {
                        UUID(uuid: $0.loadUnaligned(as: uuid_t.self))
                    }
                })
        }
        try run(
            Kind<URL>(
                name: "URL", kept: Self.columns, sorted: Self.texts,
                isLess: { isLess($0.absoluteString, $1.absoluteString) }
            ) {
                URL(string: "https://example.org/\($0.next())?q=\($0.below(100))%20x") ?? URL(filePath: "/")
            })
    }

    // MARK: Dates

    private mutating func run(_ form: ColumnForms.DateForm) throws {
        let isText = [.text, .textWithT].contains(form)
        // What a form rounds to, and half a microsecond because a date counts from 2001.
        let precision = form == .secondsSince2001 ? 0 : form == .secondsSince1970 ? 1e-6 : 0.000_6
        let kept = isText ? Self.texts + ["DATETIME"] : form == .millisecondsSince1970 ? Self.integers : Self.reals
        try run(
            Kind<Date>(
                name: "Date as \(form)", kept: kept, sorted: kept, forms: ColumnForms(dates: form), isLess: <,
                // A column of type TEXT keeps the first 15 digits of a number.
                isSame: { date, other in
                    let largest = max(abs(date.timeIntervalSince1970), abs(date.timeIntervalSinceReferenceDate))
                    return abs(date.timeIntervalSince(other)) <= max(precision, largest / 1e14)
                }
            ) { random in
                switch random.below(4) {
                // Every millisecond of a second.
                case 0: Date(timeIntervalSince1970: 1_795_422_400 + Double(random.below(1_000)) / 1_000)
                case 1: Date(timeIntervalSince1970: Double(random.below(4_000_000) - 2_000_000) / 1_000)
                case 2: Date(timeIntervalSince1970: .random(in: -2_000_000_000...4_000_000_000, using: &random))
                default: Date(timeIntervalSince1970: .random(in: -62_135_500_000..<253_402_300_799, using: &random))
                }
            })
    }
}
