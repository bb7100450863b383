/// One thing by which a database's schema differs from the one that was expected.
public struct SchemaMismatch: Sendable, Hashable, Codable {
    /// How it differs.
    public enum Kind: String, Sendable, Hashable, Codable {
        /// It was expected and is not there.
        case missing
        /// It is there and was not expected.
        case unexpected
        /// It is defined in another way; of a table, in what is no column, such as a constraint or WITHOUT ROWID.
        case differs
        /// The columns of a table are those expected, in another order.
        case reordered
    }

    /// How it differs.
    public let kind: Kind
    /// `table`, `view`, `index` or `trigger`.
    public let type: String
    /// The object's name.
    public let name: String
    /// The column, where it is one that differs.
    public let column: String?
    /// The column's expected definition, where both are there.
    public let expected: String?
    /// The column's definition in the database, where both are there.
    public let found: String?

    init(
        _ kind: Kind, _ object: SchemaDescription.Object, _ column: SchemaDescription.Column? = nil,
        expected: String? = nil, found: String? = nil
    ) {
        self.kind = kind
        self.type = object.type
        self.name = object.name
        self.column = column?.name
        self.expected = expected
        self.found = found
    }

    /// The difference as a sentence.
    ///
    /// - Parameter reference: Where it was not expected, such as `not recorded`.
    package func sentence(unexpected reference: String) -> String {
        let subject = column.map { "\(type) \(name): column \($0)" } ?? "\(type) \(name)"
        switch kind {
        case .missing: return "\(subject) is missing"
        case .unexpected: return "\(subject) is \(reference)"
        case .reordered: return "\(subject): the columns are in another order"
        case .differs:
            guard let expected, let found else { return "\(subject) differs" }
            return "\(subject) is \(Self.quoted(found)) instead of \(Self.quoted(expected))"
        }
    }

    private static func quoted(_ definition: String) -> String {
        definition.isEmpty ? "without a type" : "`\(definition)`"
    }
}

extension SchemaMismatch: CustomStringConvertible {
    /// The difference as a sentence.
    public var description: String { sentence(unexpected: "not expected") }
}
