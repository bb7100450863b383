/// One difference between a database's schema and the expected one.
public struct SchemaMismatch: Sendable, Hashable, Codable {
    /// The kind of difference.
    public enum Kind: String, Sendable, Hashable, Codable {
        /// The object was expected but does not exist.
        case missing
        /// The object exists but was not expected.
        case unexpected
        /// The object is defined differently; for a table, the difference is outside its columns, for example in a
        /// constraint or WITHOUT ROWID.
        case differs
        /// The table has the expected columns, but in another order.
        case reordered
    }

    /// The kind of difference.
    public let kind: Kind
    /// The type of the object: `table`, `view`, `index` or `trigger`.
    public let type: String
    /// The object's name.
    public let name: String
    /// The column, if a column differs.
    public let column: String?
    /// The column's expected definition, if both definitions exist.
    public let expected: String?
    /// The column's definition in the database, if both definitions exist.
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

    /// Returns the difference as a sentence.
    ///
    /// - Parameter reference: The words for an unexpected object, such as `not recorded`.
    package func sentence(unexpected reference: String) -> String {
        let subject = column.map { "\(type) \(name): column \($0)" } ?? "\(type) \(name)"
        switch kind {
        case .missing: return "\(subject) is missing"
        case .unexpected: return "\(subject) is \(reference)"
        case .reordered: return "\(subject) has its columns in a different order"
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
