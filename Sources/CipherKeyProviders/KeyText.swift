package import CipherPrimitives
internal import CipherErrors
package import CipherSQLite
internal import CipherSystemFiles

/// The single conversion from text to a key, for every provider that reads text.
package enum KeyText {
    /// The maximum size of a key text, in bytes.
    package static let maximumSize = 64 << 10

    /// Parses a passphrase or raw key.
    ///
    /// - Parameter origin: The source of the text, in words for an error message.
    /// - Throws: ``StoreError`` with the code `keyMalformed`.
    package static func parse(_ text: SecretBytes, origin: String, path: String? = nil) throws -> CipherKey {
        do {
            return try CipherKey(text: text)
        } catch let error as KeyError {
            throw StoreError(error, origin: origin, path: path)
        }
    }

    /// Returns whether a text is a raw key, with or without `x'…'`, and not the path of a file.
    package static func isRawKey(_ text: String) -> Bool {
        let isMarked = text.lowercased().hasPrefix("x'") && text.hasSuffix("'")
        let digits = isMarked ? text.dropFirst(2).dropLast() : text[...]
        guard digits.count >= 32, digits.allSatisfy(\.isHexDigit) else { return false }
        return isMarked || [64, 96].contains(digits.count) && (try? FileSystem.exists(text)) != true
    }

    /// Refuses a raw key where a provider expects a name, because names appear in errors and on the disk.
    ///
    /// - Throws: ``StoreError`` with the code `keyUnavailable`, which does not repeat the key.
    package static func refuseKey(_ name: String, as expected: String, database: String?) throws {
        guard isRawKey(name) else { return }
        throw StoreError(
            .keyUnavailable, path: database, "the key provider takes \(expected), but was given the key itself",
            advice: "store the key, and pass \(expected)")
    }
}

extension StoreError {
    /// Creates the error for a key that cannot be used or could not be created.
    init(_ error: KeyError, origin: String, path: String? = nil) {
        switch error {
        case .empty:
            self.init(
                .keyMalformed, path: path, "the key from \(origin) is empty",
                advice: "use a passphrase, or a raw key written as x'…' with 64 hex digits")
        case .malformed:
            self.init(
                .keyMalformed, path: path, "the key from \(origin) begins with x' but is not a valid raw key",
                advice: "use a raw key written as x'…' with 64 hex digits (or 96, if a salt follows the key), or use a "
                    + "passphrase that does not begin with x'")
        case .rawLength(let key, let salt):
            self.init(
                .keyMalformed, path: path,
                "the raw key from \(origin) has \(key) bytes\(salt.map { ", and its salt has \($0) bytes" } ?? "")",
                advice: "use a raw key of 32 bytes, optionally followed by a salt of 16 bytes")
        case .byteOrderMark:
            self.init(
                .keyMalformed, path: path, "the key from \(origin) begins with a byte order mark",
                advice: "save the key as UTF-8 without a byte order mark")
        case .database:
            self.init(
                .keyMalformed, path: path, "the key from \(origin) is an SQLite database",
                advice: "use the file that contains the key of the database", changed: .nothing)
        case .binary, .severalLines:
            self.init(
                .keyMalformed, path: path,
                "the key from \(origin) \(error == .binary ? "contains binary data" : "has several lines")",
                advice: "use a passphrase of one line, or a raw key written as x'…' with 64 hex digits; if a database "
                    + "already has this key, open it in Swift with CipherKey.passphrase, and change its key",
                changed: .nothing)
        case .noRandomness:
            self.init(
                .keyUnavailable, path: path, "the system returned no random bytes for a new key", advice: "try again")
        case .derivationFailed:
            self.init(
                .keyUnavailable, path: path,
                "the cryptographic library could not derive a key from the passphrase that \(origin) provided",
                advice: "check that the cryptographic library allows PBKDF2")
        }
    }
}
