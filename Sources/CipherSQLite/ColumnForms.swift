internal import CCipherEngine
internal import CipherErrors
public import CipherPlatform

/// The forms in which dates and UUIDs are written to columns, and in which numbers there are read as dates.
///
/// Other forms are also read if the value itself shows its form: text as one of SQLite's date strings, 16 bytes as a
/// UUID. A number does not show its meaning, so a date stored as a number is read in the form that is set. This
/// includes a number that a column of type TEXT has stored as text with its first 15 digits.
///
/// | written by | dates | UUIDs |
/// |---|---|---|
/// | CipherStore, if nothing else is set | `secondsSince1970` | `text` |
/// | GRDB | `text` | `blob` |
/// | SQLite.swift | `textWithT` | `text` |
/// | Core Data | `secondsSince2001` | `blob` |
public struct ColumnForms: Sendable, Equatable {
    /// The form of a date.
    public enum DateForm: String, Sendable, CaseIterable {
        /// A REAL: the `unixepoch` of SQLite's date functions. A `Date` counts from 2001, so the date that is read may
        /// differ from the one that was written by less than a microsecond.
        case secondsSince1970
        /// An INTEGER, rounded.
        case millisecondsSince1970
        /// A REAL: the `timeIntervalSinceReferenceDate`.
        case secondsSince2001
        /// Text in UTC, such as `2026-11-23 09:30:00.125`, which sorts by time and is rounded to milliseconds. Only the
        /// years 1 to 9999 can be written. A number is read as seconds since 1970.
        case text
        /// The same as ``text``, but with a T between day and time, such as `2026-11-23T09:30:00.125`.
        case textWithT
    }

    /// The form of a UUID.
    public enum UUIDForm: String, Sendable, CaseIterable {
        /// Text in uppercase.
        case text
        /// Its 16 bytes.
        case blob
    }

    /// The form of dates.
    public var dates: DateForm
    /// The form of UUIDs.
    public var uuids: UUIDForm

    /// Creates the forms; by default, dates are seconds since 1970 and UUIDs are text.
    public init(dates: DateForm = .secondsSince1970, uuids: UUIDForm = .text) {
        self.dates = dates
        self.uuids = uuids
    }

    // MARK: Writing

    /// Returns a date's value; `nil` if the date has no value in this form.
    func value(_ date: Date) -> Value? {
        switch dates {
        case .secondsSince1970: .real(date.timeIntervalSince1970)
        case .millisecondsSince1970:
            // A date this distant does not fit into an integer; as a REAL it can be read back.
            Int64(exactly: (date.timeIntervalSince1970 * 1_000).rounded()).map(Value.integer)
                ?? .real(date.timeIntervalSince1970 * 1_000)
        case .secondsSince2001: .real(date.timeIntervalSinceReferenceDate)
        case .text: Self.text(date, Self.texts[0])
        case .textWithT: Self.text(date, Self.textWithT)
        }
    }

    private static func text(_ date: Date, _ form: Date.ISO8601FormatStyle) -> Value? {
        let milliseconds = (date.timeIntervalSince1970 * 1_000).rounded()
        // Some calendars begin year 1 two days earlier; year 10000 has five digits.
        guard -62_135_769_600_000..<253_402_300_800_000 ~= milliseconds else { return nil }
        // Foundation cuts the rest of a millisecond off, and most numbers of milliseconds are slightly less than that
        // number as seconds in a `Date`.
        let text = Date(timeIntervalSince1970: (milliseconds + 0.25) / 1_000).formatted(form)
        return text.hasPrefix("0000") ? nil : .text(text)
    }

    /// The error for other dates.
    static let beyondText = "a date is written as text only if its year is 1 to 9999"

    func value(_ uuid: UUID) -> Value {
        switch uuids {
        case .text: .text(uuid.uuidString)
        case .blob: withUnsafeBytes(of: uuid.uuid) { .blob([UInt8]($0)) }
        }
    }

    // MARK: Reading

    func date(_ value: Value) -> Date? {
        switch value {
        case .integer(let number): date(Double(number))
        case .real(let number): date(number)
        case .text(let text): Self.date(text) ?? Self.number(text).map(date)
        case .blob, .null: nil
        }
    }

    /// Returns the number in text to which a column of type TEXT has converted a number.
    private static func number(_ text: String) -> Double? {
        guard text.utf8.allSatisfy({ 0x30...0x39 ~= $0 || [0x2b, 0x2d, 0x2e, 0x65].contains($0) }) else { return nil }
        return Double(text)
    }

    private func date(_ number: Double) -> Date {
        switch dates {
        case .secondsSince1970, .text, .textWithT: Date(timeIntervalSince1970: number)
        case .millisecondsSince1970: Date(timeIntervalSince1970: number / 1_000)
        case .secondsSince2001: Date(timeIntervalSinceReferenceDate: number)
        }
    }

    func uuid(_ value: Value) -> UUID? {
        switch value {
        case .text(let text): return UUID(uuidString: text)
        case .blob(let bytes):
            guard bytes.count == 16 else { return nil }
            return bytes.withUnsafeBytes { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
        default: return nil
        }
    }

    /// The time strings that SQLite's date functions accept, beginning with the one that is written.
    ///
    /// Source: SQLite, "Date And Time Functions", section 2.
    private static let texts: [Date.ISO8601FormatStyle] = {
        let day = Date.ISO8601FormatStyle(timeZone: .gmt).year().month().day()
        let forms = [Date.ISO8601FormatStyle.DateTimeSeparator.space, .standard].flatMap { separator in
            [true, false].map { day.dateTimeSeparator(separator).time(includingFractionalSeconds: $0) }
        }
        return forms + forms.map { $0.timeZone(separator: .colon) } + [day]
    }()

    private static let textWithT = texts[0].dateTimeSeparator(.standard)

    private static func date(_ text: String) -> Date? {
        // The whole text must match, because parsing alone accepts a matching prefix.
        for form in texts {
            if let found = try? form.consuming(text, startingAt: text.startIndex, in: text.startIndex..<text.endIndex),
                found.upperBound == text.endIndex
            {
                return found.output
            }
        }
        return nil
    }
}

extension Date: Bindable, ColumnReadable {
    /// Seconds since 1970 as a REAL; a date interpolated into SQL is bound in the connection's ``ColumnForms`` instead.
    public var databaseValue: Value { .real(timeIntervalSince1970) }

    /// Reads a date in the connection's form, or as text.
    public static func read(from row: borrowing Row, at index: Int) throws -> Date {
        guard let date = row.forms.date(row.value(at: index)) else { throw row.mismatch(at: index, wanted: Date.self) }
        return date
    }
}

extension UUID: Bindable, ColumnReadable {
    /// The text form, in uppercase; a UUID interpolated into SQL is bound in the connection's ``ColumnForms`` instead.
    public var databaseValue: Value { ColumnForms().value(self) }

    /// Reads text or 16 bytes.
    public static func read(from row: borrowing Row, at index: Int) throws -> UUID {
        guard let uuid = row.forms.uuid(row.value(at: index)) else { throw row.mismatch(at: index, wanted: UUID.self) }
        return uuid
    }
}

extension Data: Bindable, ColumnReadable {
    /// The bytes.
    public var databaseValue: Value { .blob([UInt8](self)) }

    /// Reads a BLOB or TEXT column.
    public static func read(from row: borrowing Row, at index: Int) throws -> Data {
        switch sqlite3_column_type(row.statement.handle, Int32(index)) {
        case SQLITE_BLOB, SQLITE_TEXT: row.withBytes(at: index) { Data($0) }
        default: throw row.mismatch(at: index, wanted: Data.self)
        }
    }
}

extension URL: Bindable, ColumnReadable {
    /// The absolute URL as text.
    public var databaseValue: Value { .text(absoluteString) }

    /// Reads a TEXT column.
    public static func read(from row: borrowing Row, at index: Int) throws -> URL {
        guard let url = URL(string: try String.read(from: row, at: index)) else {
            throw row.mismatch(at: index, wanted: URL.self)
        }
        return url
    }
}

extension Decimal: Bindable, ColumnReadable {
    /// The digits as text, because a REAL would round them; NaN is NULL.
    ///
    /// A column of type DECIMAL, NUMERIC or MONEY has SQLite's numeric affinity and stores the number as an INTEGER or a
    /// REAL, which keeps 15 digits. A column of type TEXT keeps all digits, but compares and sorts them as text.
    public var databaseValue: Value { isNaN ? .null : .text(description) }

    /// Reads a TEXT column that contains a number, or an INTEGER or REAL column.
    ///
    /// A REAL is read as the shortest number that is stored as this REAL: 0.07 and not 0.07000000000000001.
    public static func read(from row: borrowing Row, at index: Int) throws -> Decimal {
        switch row.value(at: index) {
        case .integer(let number): return Decimal(number)
        case .real(let number):
            guard number.isFinite,
                let decimal = Decimal(string: try row.statement.connection.decimalText(number)), !decimal.isNaN
            else { throw row.mismatch(at: index, wanted: Decimal.self) }
            return decimal
        case .text(let text):
            // The whole text must be a number, not only its beginning.
            guard text.utf8.allSatisfy({ 0x30...0x39 ~= $0 || [0x2b, 0x2d, 0x2e, 0x45, 0x65].contains($0) }),
                let number = Decimal(string: text), !number.isNaN
            else { fallthrough }
            return number
        default: throw row.mismatch(at: index, wanted: Decimal.self)
        }
    }
}

extension Connection {
    /// Returns the shortest decimal number that SQLite stores as a REAL.
    ///
    /// SQLite does not convert every text to the nearest REAL. So a REAL whose shortest number has more than 15 digits
    /// may be what SQLite made of a number with 15. Source: SQLite, "Floating Point Numbers", section 2.1.
    fileprivate func decimalText(_ number: Double) throws -> String {
        let shortest = number.description
        let digits = shortest.utf8.filter { 0x30...0x39 ~= $0 }.drop { $0 == 0x30 }
        guard digits.count > 15 else { return shortest }
        let rounded: String? = try value(
            "SELECT CAST(\(number) AS TEXT) WHERE CAST(CAST(\(number) AS TEXT) AS REAL) = \(number)")
        return rounded ?? shortest
    }
}

extension Row {
    /// The forms of dates and UUIDs.
    var forms: ColumnForms { statement.connection.columnForms }
}
