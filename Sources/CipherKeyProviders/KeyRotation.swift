internal import CipherErrors
public import CipherSQLite

/// A provider that changes a database's key from one provider's to another's the next time the database is opened.
///
/// Both keys must stay available until the file under the new key is on the disk. After a crash at any moment, one of
/// the two keys opens the file, and the next opening continues the change. A new database, or a plaintext one that is
/// encrypted, has the new key from the start.
///
/// While the new key is unavailable, a file that has the old key is opened with it, and a warning is reported. The same
/// happens if both keys are equal; the old key is then not reported as obsolete.
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

    /// Returns the new key.
    ///
    /// - Throws: Any error thrown by the new provider.
    public func key(for purpose: KeyPurpose, database: String) throws -> CipherKey {
        try new.key(for: purpose, database: database)
    }

    /// Returns the new provider's planned key.
    public func plannedKey(database: String) throws -> CipherKey? {
        try new.plannedKey(database: database)
    }

    /// Returns the old key; `nil` if it was dropped.
    ///
    /// - Throws: Any error thrown by the old provider, except ``StoreError`` with the code `keyUnavailable`.
    public func previousKey(database: String) throws -> CipherKey? {
        do {
            return try old.key(for: .existing, database: database)
        } catch let error as StoreError where error.code == .keyUnavailable {
            return nil
        }
    }

    /// Calls the `whenDone` closure.
    public func previousKeyIsObsolete(database: String) throws {
        try whenDone(database)
    }
}

extension KeyProvider where Self == KeyRotation {
    /// Returns a provider that changes the key of a database from that of `old` to that of `new` when it is opened.
    ///
    /// - Parameters:
    ///   - old: The provider of the key that databases may still have; it throws `keyUnavailable` after that key has
    ///     been dropped.
    ///   - new: The provider of the key that databases should have.
    ///   - whenDone: A closure that receives the path of a database that is durably encrypted with the new key. It may
    ///     drop the old key, unless another file needs it, such as an earlier backup. Called at each opening that
    ///     finds or changes an encrypted database, until `old` throws `keyUnavailable`.
    public static func rotation(
        from old: any KeyProvider, to new: any KeyProvider,
        whenDone: @escaping @Sendable (_ database: String) throws -> Void = { _ in }
    ) -> KeyRotation {
        KeyRotation(from: old, to: new, whenDone: whenDone)
    }
}
