/// A version of an app or its schema: whole numbers separated by dots, compared as numbers.
///
/// `24` and `24.0` are equal, and `1.10.0` is later than `1.9.2`. The original text is kept.
public struct SchemaVersion: Sendable, CustomStringConvertible {
    /// The numbers, most significant first, without trailing zeros.
    public let components: [Int]
    /// The original text.
    public let description: String

    /// The version before all others, which a database without any record has.
    public static let zero = SchemaVersion(0)

    /// Creates a version of one number.
    public init(_ number: Int) {
        components = number == 0 ? [] : [number]
        description = "\(number)"
    }

    /// Creates a version from text such as `24` or `1.10.0`; returns `nil` for any other text.
    public init?(_ text: String) {
        var components: [Int] = []
        for part in text.split(separator: ".", omittingEmptySubsequences: false) {
            guard !part.isEmpty, part.allSatisfy({ $0.isASCII && $0.isNumber }), let number = Int(part) else {
                return nil
            }
            components.append(number)
        }
        while components.last == 0 { components.removeLast() }
        self.components = components
        description = text
    }
}

extension SchemaVersion: Hashable, Comparable {
    /// Returns whether the numbers are equal, even if the texts differ.
    public static func == (left: SchemaVersion, right: SchemaVersion) -> Bool { left.components == right.components }

    /// Hashes the numbers.
    public func hash(into hasher: inout Hasher) { hasher.combine(components) }

    /// Compares number by number; a missing number counts as zero.
    public static func < (left: SchemaVersion, right: SchemaVersion) -> Bool {
        left.components.lexicographicallyPrecedes(right.components)
    }
}

extension SchemaVersion {
    /// The number of a version of one number; `nil` if the version has several numbers.
    package var wholeNumber: Int? { components.count > 1 ? nil : components.first ?? 0 }

    /// Whether the text contains a dot, even if only zeros follow it.
    package var isDotted: Bool { description.utf8.contains(UInt8(ascii: ".")) }
}

extension SchemaVersion: Codable {
    /// Decodes a number, or text such as `1.10.0`.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let number = try? container.decode(Int.self) {
            self.init(number)
            return
        }
        let text = try container.decode(String.self)
        guard let version = SchemaVersion(text) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "\(text) is not a valid version")
        }
        self = version
    }

    /// Encodes the text.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}

extension SchemaVersion: ExpressibleByIntegerLiteral {
    /// Creates a version of one number.
    public init(integerLiteral value: Int) {
        self.init(value)
    }
}
