public import CipherPlatform

/// The reason that a key cannot be used.
///
/// Never contains the key.
public enum KeyError: Error, Sendable, Equatable {
    /// The key has no bytes.
    case empty
    /// The key begins with `x'` and is neither `x'64 hex'` nor `x'96 hex'`.
    case malformed
    /// A raw key is not 32 bytes long, or its salt is not 16 bytes long.
    case rawLength(key: Int, salt: Int?)
    /// The text of the key begins with a byte order mark, which would be an invisible part of a passphrase.
    case byteOrderMark
    /// The text of the key is an SQLite database.
    case database
    /// The text of the key contains zero bytes, or is too long for a passphrase that is not UTF-8 text.
    case binary
    /// The text of the key has more than one line.
    case severalLines
    /// The system's random number generator failed.
    case noRandomness
    /// The cryptographic library, libcrypto or CommonCrypto, failed to derive a key.
    case derivationFailed
}

extension KeyError: CustomStringConvertible, LocalizedError {
    /// The same as ``description``.
    public var errorDescription: String? { description }

    /// What happened and what to do next.
    public var description: String {
        switch self {
        case .empty: "the key is empty; use a passphrase, or a raw key written as x'…' with 64 hex digits"
        case .malformed:
            "the key begins with x' but is not a valid raw key; use x'…' with 64 hex digits (96 if a salt follows the "
                + "key), or a passphrase that does not begin with x'"
        case .rawLength(let key, let salt):
            "the raw key has \(key) bytes\(salt.map { ", and its salt has \($0) bytes" } ?? ""); use a raw key of 32 "
                + "bytes and, optionally, a salt of 16 bytes"
        case .byteOrderMark:
            "the key begins with a byte order mark; save the key as UTF-8 without a byte order mark"
        case .database: "the key is an SQLite database; use the file that contains the key of the database"
        case .binary:
            "the key contains binary data; use a passphrase, or a raw key written as x'…' with 64 hex digits"
        case .severalLines:
            "the key has several lines; use a passphrase of one line, or a raw key written as x'…' with 64 hex digits"
        case .noRandomness: "the system returned no random bytes; try again"
        case .derivationFailed:
            "the key could not be derived from the passphrase, because the cryptographic library does not allow PBKDF2"
        }
    }
}
