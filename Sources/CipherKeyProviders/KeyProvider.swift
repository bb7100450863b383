internal import CipherErrors
public import CipherSQLite

/// A source of database keys.
///
/// A provider is called each time a key is needed, and caches none. It may open or convert another database, within its
/// call or in a `Task` that it waits for. In a detached task or on a separate thread, the opening of a database in the
/// same folder may wait as long as another process would. An attempt to open the database whose key is requested fails
/// with `misuse` or, in a task, waits for itself.
public protocol KeyProvider: Sendable {
    /// Returns the key.
    ///
    /// - Parameters:
    ///   - purpose: Whether a new key may be created. A key that is created has been stored durably before this
    ///     returns.
    ///   - database: The path of the database, for providers that hold a separate key for each database.
    /// - Throws: ``StoreError`` with the code `keyUnavailable`, `keyMalformed` or `keyFileInsecure`, or the provider's
    ///   own error, which reaches the caller as `keyUnavailable` with the name of its type.
    func key(for purpose: KeyPurpose, database: String) throws -> CipherKey

    /// Returns the key that an encrypted file may still have before it is changed to the key of ``key(for:database:)``.
    ///
    /// Returns `nil` by default, which means that no key change is under way. Must never create a key.
    func previousKey(database: String) throws -> CipherKey?

    /// Returns the key that a file would be encrypted with, for planning. Must never create a key.
    ///
    /// By default, this requests an existing key from ``key(for:database:)``. If that throws ``StoreError`` with
    /// `keyUnavailable`, or an error of another type, it is unknown whether the provider would create a key, and this
    /// returns `nil`.
    ///
    /// - Returns: `nil` if there is no key yet and ``key(for:database:)`` may create one.
    /// - Throws: The same errors as ``key(for:database:)`` for an existing key.
    func plannedKey(database: String) throws -> CipherKey?

    /// Called when the database has the key of ``key(for:database:)`` and this change is on the disk.
    ///
    /// The previous key may then be dropped, unless other databases use it. This is called at each opening while there
    /// is a previous key, so that work that a crash prevented is done at the next opening. It is not called while an
    /// encrypted damaged original is kept next to the database. Does nothing by default.
    func previousKeyIsObsolete(database: String) throws
}

extension KeyProvider {
    /// Returns `nil`: no key change is under way.
    public func previousKey(database: String) throws -> CipherKey? { nil }

    /// Returns the existing key; `nil` if it is not available.
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

    /// Does nothing.
    public func previousKeyIsObsolete(database: String) throws {}
}

/// The purpose for which a key is requested.
public enum KeyPurpose: Sendable, Equatable {
    /// To open an encrypted file, or to plan. A provider must never create a key for this purpose.
    case existing
    /// To encrypt a file, either at the first attempt or at a retry after a crash, when the key may already exist.
    case createOrExisting
}

extension KeyProvider {
    /// Requests the key and converts every failure to a typed error.
    package func checkedKey(for purpose: KeyPurpose, database: String) throws -> CipherKey {
        try checked(database) { try key(for: purpose, database: database) }
    }

    /// Requests the previous key and converts every failure to a typed error.
    package func checkedPreviousKey(database: String) throws -> CipherKey? {
        try checked(database) { try previousKey(database: database) }
    }

    /// Requests the key that a file would be encrypted with, and converts every failure to a typed error.
    package func checkedPlannedKey(database: String) throws -> CipherKey? {
        try checked(database) { try plannedKey(database: database) }
    }

    private func checked<Key>(_ database: String, _ ask: () throws -> Key) throws -> Key {
        do {
            return try ask()
        } catch let error as StoreError {
            throw error
        } catch let error as KeyError {
            throw StoreError(error, origin: "the key provider", path: database)
        } catch {
            // The provider's own error text is not repeated, because it might quote the key.
            throw StoreError(
                .keyUnavailable, path: database, "the key provider threw an error of type \(type(of: error))",
                advice: "check the provider and try again", changed: .nothing)
        }
    }
}
