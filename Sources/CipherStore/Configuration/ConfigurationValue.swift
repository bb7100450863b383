#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// A value of a property list or JSON file, before anything is known of its meaning.
///
/// Decoded instead of bridged, so that `true` is never 1 and 1 never `true`.
indirect enum ConfigurationValue: Equatable {
    case boolean(Bool)
    case integer(Int)
    case real(Double)
    case text(String)
    case list([ConfigurationValue])
    case dictionary([String: ConfigurationValue])
    /// Null, a date, data, or a number that no type holds.
    case other

    /// The kind of value in words.
    var kind: String {
        switch self {
        case .boolean: "true or false"
        case .integer: "a whole number"
        case .real: "a number with a fraction or out of range"
        case .text: "text"
        case .list: "a list"
        case .dictionary: "a dictionary"
        case .other: "null, a date, data, or an unreadable number or text"
        }
    }
}

extension ConfigurationValue: Decodable {
    /// How deep values may be nested; the known keys need five levels.
    static let maximumDepth = 32
    /// How many values a file may have; a binary property list of 300 bytes can name one value a million times.
    static let maximumCount = 50_000

    /// A failure of the limits, told apart from the decoder's own.
    enum LimitError: Error { case depth, count }

    /// Counts the values of one file.
    final class Budget: @unchecked Sendable {
        // A decoder takes only Sendable values along; it runs on one thread and nothing else holds this one.
        private var remaining = ConfigurationValue.maximumCount

        func take() throws {
            remaining -= 1
            guard remaining >= 0 else { throw LimitError.count }
        }
    }

    static let budgetKey = CodingUserInfoKey(rawValue: "configuration value budget")

    init(from decoder: any Decoder) throws {
        if let key = Self.budgetKey, let budget = decoder.userInfo[key] as? Budget { try budget.take() }
        if let container = try? decoder.container(keyedBy: AnyKey.self) {
            try Self.checkDepth(decoder)
            var entries: [String: ConfigurationValue] = [:]
            for key in container.allKeys {
                entries[key.stringValue] = try container.decode(ConfigurationValue.self, forKey: key)
            }
            self = .dictionary(entries)
        } else if var container = try? decoder.unkeyedContainer() {
            try Self.checkDepth(decoder)
            var elements: [ConfigurationValue] = []
            while !container.isAtEnd { elements.append(try container.decode(ConfigurationValue.self)) }
            self = .list(elements)
        } else {
            self.init(scalar: try decoder.singleValueContainer())
        }
    }

    private static func checkDepth(_ decoder: any Decoder) throws {
        guard decoder.codingPath.count < maximumDepth else { throw LimitError.depth }
    }

    private init(scalar container: any SingleValueDecodingContainer) {
        if let boolean = try? container.decode(Bool.self) {
            self = .boolean(boolean)
        } else if let integer = try? container.decode(Int.self) {
            self = .integer(integer)
        } else if let real = try? container.decode(Double.self) {
            self = Int(exactly: real).map(ConfigurationValue.integer) ?? .real(real)
        } else if let text = try? container.decode(String.self) {
            self = .text(text)
        } else {
            self = .other
        }
    }

    private struct AnyKey: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) {
            self.stringValue = stringValue
        }

        init?(intValue: Int) {
            nil
        }
    }
}
