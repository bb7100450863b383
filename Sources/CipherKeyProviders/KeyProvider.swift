internal import CipherErrors
public import CipherSQLite

/// Where the key of a database comes from.
///
/// A provider is asked anew whenever a key is needed, and holds none itself. It may open or convert another database:
/// within its call, or in a `Task` that it waits for. In a detached task or on a separate thread that may wait as long
/// as another process would, where the database is in the same folder. On the database that it is asked for it is
/// refused with `misuse`, or waits for itself in a task.
public protocol KeyProvider: Sendable {
    /// Gives the key.
    ///
    /// - Parameters:
    ///   - purpose: Whether a new key may be made. A key that is made has been stored durably before this returns.
    ///   - database: The path of the database, for providers that keep a key for each.
    /// - Throws: ``StoreError`` with `keyUnavailable`, `keyMalformed` or `keyFileInsecure`, or an error of the
    ///   provider's own, which reaches the caller as the cause.
    func key(for purpose: KeyPurpose, database: String) throws -> CipherKey

    /// The other key that an encrypted file may still have, where it is to be given that of ``key(for:database:)``.
    ///
    /// `nil` by default: no change of key is under way. Never makes a key.
    func previousKey(database: String) throws -> CipherKey?

    /// The key that a file would be encrypted with, as planning asks for it: none is made.
    ///
    /// By default ``key(for:database:)`` is asked for an existing key. If it throws ``StoreError`` with
    /// `keyUnavailable`, or an error of its own, nothing tells whether it would make one, and the answer is `nil`.
    ///
    /// - Returns: `nil` where there is none yet and ``key(for:database:)`` may make one.
    /// - Throws: What ``key(for:database:)`` throws where it makes none.
    func plannedKey(database: String) throws -> CipherKey?

    /// Is told that the database has the key of ``key(for:database:)``, and that this is on the disk.
    ///
    /// The previous key may be dropped, unless other databases have it. Called at each opening while there is a previous
    /// key, so that what a crash prevented is done at the next one. Does nothing by default.
    func previousKeyIsObsolete(database: String) throws
}

extension KeyProvider {
    /// No change of key is under way.
    public func previousKey(database: String) throws -> CipherKey? { nil }

    /// An existing key; `nil` if none is given.
    public func plannedKey(database: String) throws -> CipherKey? {
        do {
            return try key(for: .existing, database: database)
        } catch let error as StoreError where error.code != .keyUnavailable {
            throw error
        } catch let error as KeyError {
            throw error
        } catch {
            return nil
        }
    }

    /// Keeps what there is.
    public func previousKeyIsObsolete(database: String) throws {}
}

/// What a key is asked for.
public enum KeyPurpose: Sendable, Equatable {
    /// To open a file that is encrypted, or to plan: a provider must never make a key for it.
    case existing
    /// To encrypt a file: the first try, or a retry after a crash, which may find the key made already.
    case createOrExisting
}

extension KeyProvider {
    /// Asks for the key and gives every failure a type.
    package func checkedKey(for purpose: KeyPurpose, database: String) throws -> CipherKey {
        try checked(database) { try key(for: purpose, database: database) }
    }

    /// Asks for the previous key and gives every failure a type.
    package func checkedPreviousKey(database: String) throws -> CipherKey? {
        try checked(database) { try previousKey(database: database) }
    }

    /// Asks for the key that a file would be encrypted with, and gives every failure a type.
    package func checkedPlannedKey(database: String) throws -> CipherKey? {
        try checked(database) { try plannedKey(database: database) }
    }

    private func checked<Key>(_ database: String, _ ask: () throws -> Key) throws -> Key {
        do {
            return try ask()
        } catch let error as StoreError {
            throw error
        } catch let error as KeyError {
            throw StoreError(error, origin: "the answer of the key provider", path: database)
        } catch {
            // What a provider says of its own failure is not repeated: it might quote the key.
            throw StoreError(
                .keyUnavailable, path: database, "the key provider failed with \(type(of: error))",
                advice: "check the provider and try again", changed: .nothing)
        }
    }
}
