internal import CipherErrors
public import CipherSQLite

/// Changes the key of a database from one provider's to another's, when it is next opened.
///
/// Both keys are kept until the file under the new one is on the disk. A crash at any moment leaves a file that one of
/// them opens, and the next opening continues from there. A new database, and a plaintext one, gets the new key at
/// once.
///
/// While the new key cannot be had, a file that has the old one opens with that, and a warning. So does one where both keys
/// are equal, and then the old one is kept.
public struct KeyRotation: KeyProvider {
    let old: any KeyProvider
    let new: any KeyProvider
    private let whenDone: @Sendable (String) throws -> Void

    package init(
        from old: any KeyProvider, to new: any KeyProvider,
        whenDone: @escaping @Sendable (_ database: String) throws -> Void = { _ in }
    ) {
        self.old = old
        self.new = new
        self.whenDone = whenDone
    }

    /// Gives the new key.
    ///
    /// - Throws: What the new provider throws.
    public func key(for purpose: KeyPurpose, database: String) throws -> CipherKey {
        try new.key(for: purpose, database: database)
    }

    /// Gives what the new provider gives to planning.
    public func plannedKey(database: String) throws -> CipherKey? {
        try new.plannedKey(database: database)
    }

    /// Gives the old key, `nil` if it was dropped.
    ///
    /// - Throws: What the old provider throws, except ``StoreError`` with `keyUnavailable`.
    public func previousKey(database: String) throws -> CipherKey? {
        do {
            return try old.key(for: .existing, database: database)
        } catch let error as StoreError where error.code == .keyUnavailable {
            return nil
        }
    }

    /// Tells the app.
    public func previousKeyIsObsolete(database: String) throws {
        try whenDone(database)
    }
}

extension KeyProvider where Self == KeyRotation {
    /// The key of `new`, which a database that still has that of `old` is given when it is opened.
    ///
    /// - Parameters:
    ///   - old: Gives the key that databases may still have; `keyUnavailable` once it was dropped.
    ///   - new: Gives the key that they are to have.
    ///   - whenDone: Is given the path of a database that has the new key durably, and may drop the old key, unless
    ///     another database has it. Called at each opening until `old` throws `keyUnavailable`.
    public static func rotation(
        from old: any KeyProvider, to new: any KeyProvider,
        whenDone: @escaping @Sendable (_ database: String) throws -> Void = { _ in }
    ) -> KeyRotation {
        KeyRotation(from: old, to: new, whenDone: whenDone)
    }
}
