/// A version of an app or its schema: whole numbers with dots between, compared as numbers.
///
/// `24` and `24.0` are equal, and `1.10.0` is later than `1.9.2`.
public struct SchemaVersion: Sendable {
    /// The numbers, most significant first, without trailing zeros.
    public let components: [Int]

    /// The version before all others, which a database without any record has.
    public static let zero = SchemaVersion(0)

    /// A version of one number.
    public init(_ number: Int) {
        components = number == 0 ? [] : [number]
    }

    /// A version in text, such as `24` or `1.10.0`; `nil` for anything else.
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
    }
}

extension SchemaVersion: Hashable, Comparable {
    /// Compares number by number; a missing number counts as zero.
    public static func < (left: SchemaVersion, right: SchemaVersion) -> Bool {
        left.components.lexicographicallyPrecedes(right.components)
    }
}

extension SchemaVersion: CustomStringConvertible, ExpressibleByIntegerLiteral {
    /// The numbers with dots between.
    public var description: String { components.isEmpty ? "0" : components.map(String.init).joined(separator: ".") }

    /// A version of one number.
    public init(integerLiteral value: Int) {
        self.init(value)
    }
}
