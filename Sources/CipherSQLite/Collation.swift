internal import CCipherEngine

/// A comparison of texts that an app registers under a name for use in its schema.
public struct Collation: Sendable {
    /// The name in the schema.
    public let name: String
    /// A closure that compares two texts in UTF-8; its result is negative, 0 or positive.
    public let compare: @Sendable (UnsafeRawBufferPointer, UnsafeRawBufferPointer) -> Int

    /// Creates a collation from its comparison, which must be the one with which the database's indexes were built.
    public init(
        name: String, compare: @escaping @Sendable (UnsafeRawBufferPointer, UnsafeRawBufferPointer) -> Int
    ) {
        self.name = name
        self.compare = compare
    }
}

extension Connection {
    /// Registers a collation that the app's schema names.
    ///
    /// The corresponding C function is `sqlite3_create_collation_v2`.
    ///
    /// - Parameter compare: Returns a negative number, 0 or a positive number if the first text sorts before, with or
    ///   after the second. It must be the comparison with which the database's indexes were built.
    /// - Throws: ``DatabaseError``, with `SQLITE_MISUSE` on a connection that is closed or lent to a closure, and for a
    ///   name that is empty or contains a NUL character.
    public func register(_ collation: Collation) throws {
        try checkRegistration(of: collation.name)
        let box = Unmanaged.passRetained(CollationBox(collation))
        let result = sqlite3_create_collation_v2(
            handle, collation.name, SQLITE_UTF8, box.toOpaque(),
            { context, leftCount, left, rightCount, right in
                guard let context else { return 0 }
                let collation = Unmanaged<CollationBox>.fromOpaque(context).takeUnretainedValue().collation
                return Int32(
                    collation.compare(
                        UnsafeRawBufferPointer(start: left, count: Int(leftCount)),
                        UnsafeRawBufferPointer(start: right, count: Int(rightCount))
                    ).signum())
            },
            { context in
                guard let context else { return }
                Unmanaged<CollationBox>.fromOpaque(context).release()
            })
        if result != SQLITE_OK { box.release() }
        try check(result)
        registeredCollations.insert(SchemaName(bytes: collation.name.utf8))
    }
}

private final class CollationBox {
    let collation: Collation

    init(_ collation: Collation) {
        self.collation = collation
    }
}
