internal import CipherErrors
internal import CipherPlatform
package import CipherPrimitives
public import CipherSQLite
internal import CipherSystemFiles

/// A provider that reads its key from a file: a passphrase, or SQLCipher's `x'64 hex'` or `x'96 hex'` form.
///
/// One trailing newline is not part of the key. A file is refused if its group or other users can read or write it, or
/// if it belongs to a user other than root or the user of this process.
public struct FileKeyProvider: KeyProvider {
    /// The path of the key file.
    package let path: String
    /// Whether a new random key is stored if there is no file and a key may be created.
    let createIfMissing: Bool
    /// The advice in the error for a missing file.
    private let advice: String

    package init(
        path: String, createIfMissing: Bool = false,
        advice: String = "pass the path of the file that contains the key of this database; for a database that is not "
            + "yet encrypted, set createIfMissing to create the key file"
    ) {
        self.path = path
        self.createIfMissing = createIfMissing
        self.advice = advice
    }

    /// Returns the file's key.
    ///
    /// - Throws: ``StoreError`` with the code `keyUnavailable` if the file is missing or not readable,
    ///   `keyFileInsecure` or `keyMalformed`, and `permission`, `noSpace` or `inputOutput` if a new key cannot be
    ///   stored.
    public func key(for purpose: KeyPurpose, database: String) throws -> CipherKey {
        let mayCreate = createIfMissing && purpose == .createOrExisting
        do {
            return try stored(database: database, durably: mayCreate)
        } catch SmallFile.Failure.missing where mayCreate {
            // If another process was faster, its key is used, so the file is read again in both cases.
            _ = try KeyFile.create(path, key: .generated(for: "a new key file"))
        } catch let failure as SmallFile.Failure {
            throw unavailable(failure)
        }
        do {
            return try stored(database: database, durably: true)
        } catch let failure as SmallFile.Failure {
            throw unavailable(failure)
        }
    }

    /// Returns the file's key; `nil` if there is no file and one may be created.
    public func plannedKey(database: String) throws -> CipherKey? {
        do {
            return try stored(database: database, durably: false)
        } catch SmallFile.Failure.missing where createIfMissing {
            return nil
        } catch let failure as SmallFile.Failure {
            throw unavailable(failure)
        }
    }

    private func stored(database: String, durably: Bool) throws -> CipherKey {
        try KeyText.parse(readText(database: database, durably: durably), origin: "the key file", path: path)
    }

    private func readText(database: String, durably: Bool) throws -> SecretBytes {
        try KeyText.refuseKey(path, as: "the path of a key file", database: database)
        // This is checked before the file is opened, because closing a database file here would drop SQLite's locks on
        // it.
        if SmallFile.isSame(path, database) {
            throw StoreError(
                .keyUnavailable, path: path, "the key file and the database are the same file",
                advice: "pass the path of the file that contains the key")
        }
        let file = try SmallFile(path: path)
        try checkAccess(of: file)
        let text = try file.secret(limit: KeyText.maximumSize)
        if durably {
            // The process that created the file may have been killed before the file was on the disk.
            guard file.sync() else { throw FileSystem.failure("be synced", path) }
            try FileSystem.syncFolder(of: path)
        }
        return text
    }

    private func checkAccess(of file: borrowing SmallFile) throws {
        guard !file.isOpenToOthers else {
            throw StoreError(
                .keyFileInsecure, path: path, "the key file can be read or written by other users",
                advice: "run chmod 600 on the key file; if another user could have read it, also change the key")
        }
        guard file.belongsToUser else {
            throw StoreError(
                .keyFileInsecure, path: path, "the key file belongs to another user",
                advice: "run chown to give the key file to the user who opens the database")
        }
    }

    private func unavailable(_ failure: SmallFile.Failure) -> StoreError {
        StoreError(
            failure.isTooLarge ? .keyMalformed : .keyUnavailable, path: path,
            "the key file cannot be used: \(failure)",
            advice: failure == .missing
                ? advice
                : "use a readable file that contains a passphrase, or a raw key written as x'…' with 64 hex digits")
    }
}

extension FileKeyProvider: KeyTextSource {
    package func keyText(database: String) throws -> SecretBytes {
        do {
            return try readText(database: database, durably: false)
        } catch let failure as SmallFile.Failure {
            throw unavailable(failure)
        }
    }
}

extension KeyProvider where Self == FileKeyProvider {
    /// Returns a provider for the key in a file, which is read each time a key is requested.
    ///
    /// With `createIfMissing`, a new random key is stored if there is no file and a database is about to be encrypted.
    /// A key is never created for a database that is already encrypted.
    public static func file(_ path: String, createIfMissing: Bool = false) -> FileKeyProvider {
        FileKeyProvider(path: path, createIfMissing: createIfMissing)
    }
}
