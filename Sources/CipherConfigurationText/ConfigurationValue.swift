/// A value of a property list or JSON file, before it is interpreted.
package indirect enum ConfigurationValue: Equatable {
    case boolean(Bool)
    case integer(Int)
    case real(Double)
    case text(String)
    case list([ConfigurationValue])
    case dictionary([String: ConfigurationValue])
    /// Null, a date, data, or a number that no type can represent.
    case other

    /// A description of the kind of value.
    package var kind: String {
        switch self {
        case .boolean: "true or false"
        case .integer: "a whole number"
        case .real: "a number that has a fraction or is out of range"
        case .text: "text"
        case .list: "a list"
        case .dictionary: "a dictionary"
        case .other: "an unsupported value, such as null, a date or data"
        }
    }
}

extension ConfigurationValue {
    /// The maximum depth of nested values; the known keys need five levels.
    static let maximumDepth = 32
    /// The maximum number of values in a file; a binary property list of 300 bytes can refer to one value a million
    /// times.
    static let maximumCount = 50_000

    /// Creates the value of a decimal number, which may have a fraction and an exponent.
    ///
    /// The result is `nil` for a number that no type can represent: a number out of range, or a number that would be
    /// read as another whole number, such as `1e-400000`, read as 0, and `9007199254740993.0`, read as the preceding
    /// number.
    init?(number text: String) {
        if let integer = Int(text) {
            self = .integer(integer)
            return
        }
        guard let real = Double(text), real.isFinite else { return nil }
        guard let integer = Int(exactly: real) else {
            self = .real(real)
            return
        }
        guard DecimalDigits(text) == DecimalDigits("\(integer)") else { return nil }
        self = .integer(integer)
    }

    /// The digits of a decimal number, without zeros at either end, and the power of ten of the last digit.
    private struct DecimalDigits: Equatable {
        let isNegative: Bool
        let digits: [UInt8]
        let exponent: Int?

        init(_ text: String) {
            let parts = text.utf8.split { $0 | 0x20 == UInt8(ascii: "e") }
            let mantissa = parts.first ?? Substring().utf8
            let point = mantissa.firstIndex(of: UInt8(ascii: ".")) ?? mantissa.endIndex
            let all = mantissa.filter { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
            let significant = all.drop { $0 == UInt8(ascii: "0") }
            let zeros = significant.reversed().prefix { $0 == UInt8(ascii: "0") }.count
            digits = Array(significant.dropLast(zeros))
            isNegative = !digits.isEmpty && mantissa.first == UInt8(ascii: "-")
            let moved = zeros - mantissa[point...].dropFirst().count
            let power = parts.count < 2 ? 0 : Int(String(decoding: parts[1], as: UTF8.self))
            exponent = digits.isEmpty ? 0 : power.flatMap { Int(exactly: Double($0) + Double(moved)) }
        }
    }
}
