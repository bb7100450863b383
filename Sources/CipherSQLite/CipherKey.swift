internal import CipherErrors
internal import CipherPlatform
public import CipherPrimitives

/// The key of an encrypted database: a passphrase, a raw key, or a raw key with its salt.
///
/// Source of the forms: SQLCipher API, `PRAGMA key`.
public struct CipherKey: Sendable, Equatable {
    /// SQLCipher's three forms of a key.
    public enum Form: Sendable, Equatable {
        /// Bytes from which SQLCipher derives the key, using PBKDF2 and the file's salt.
        case passphrase
        /// 32 bytes that are the key itself.
        case raw
        /// 32 bytes of key, followed by the file's 16 bytes of salt.
        case rawWithSalt
    }

    /// The length of a raw key in bytes.
    public static let rawKeyLength = 32
    /// The length of a database's salt in bytes.
    public static let saltLength = 16

    /// The form of the key.
    public let form: Form
    /// The bytes for `sqlite3_key_v2`: the passphrase, or the `x'…'` form of a raw key.
    package let keyBytes: SecretBytes

    package init(form: Form, keyBytes: SecretBytes) {
        self.form = form
        self.keyBytes = keyBytes
    }

    /// Returns a passphrase key, from the bytes of the passphrase.
    ///
    /// - Throws: ``KeyError/empty`` for no bytes, and ``KeyError/malformed`` for bytes that begin with `x'`, because
    ///   SQLCipher would read them as a raw key.
    public static func passphrase(_ bytes: SecretBytes) throws -> CipherKey {
        guard bytes.count > 0 else { throw KeyError.empty }
        guard !bytes.hasRawPrefix else { throw KeyError.malformed }
        return CipherKey(form: .passphrase, keyBytes: bytes)
    }

    /// Returns a passphrase key, from text; its UTF-8 bytes are the passphrase.
    ///
    /// - Throws: The same errors as ``passphrase(_:)-(SecretBytes)``.
    public static func passphrase(_ text: String) throws -> CipherKey {
        try passphrase(SecretBytes(text.utf8))
    }

    /// Returns a raw key of 32 bytes, with the salt of 16 bytes if the file does not contain it.
    ///
    /// - Throws: ``KeyError/rawLength(key:salt:)`` for other lengths.
    public static func raw(_ key: SecretBytes, salt: SecretBytes? = nil) throws -> CipherKey {
        guard key.count == rawKeyLength, salt == nil || salt?.count == saltLength else {
            throw KeyError.rawLength(key: key.count, salt: salt?.count)
        }
        let form = SecretBytes(count: 3 + 2 * (key.count + (salt?.count ?? 0))) { buffer in
            buffer[0] = UInt8(ascii: "x")
            buffer[1] = UInt8(ascii: "'")
            var position = 2
            for part in [key, salt].compactMap({ $0 }) {
                part.withUnsafeBytes { bytes in
                    for byte in bytes {
                        buffer[position] = hexDigit(byte >> 4)
                        buffer[position + 1] = hexDigit(byte & 15)
                        position += 2
                    }
                }
            }
            buffer[position] = UInt8(ascii: "'")
        }
        return CipherKey(form: salt == nil ? .raw : .rawWithSalt, keyBytes: form)
    }

    /// Returns a new random raw key.
    ///
    /// - Throws: ``KeyError/noRandomness`` if the system provides no random bytes.
    public static func random() throws -> CipherKey {
        try raw(SecretBytes.random(count: rawKeyLength))
    }

    /// Reads a key as it is stored in a key file: a passphrase, or SQLCipher's `x'64 hex'` or `x'96 hex'` form.
    ///
    /// One trailing newline (LF or CR LF) is not part of the key.
    ///
    /// Text that may be something other than a key is refused: a file that changes or disappears later, such as a
    /// database, would take every database with it that was encrypted with its bytes. If a database already has such a
    /// key, ``passphrase(_:)-(SecretBytes)`` accepts its bytes.
    ///
    /// - Throws: ``KeyError/empty``; ``KeyError/malformed`` for text that begins with `x'`, with or without white space
    ///   before it, but has neither raw form, because it is never taken as a passphrase; ``KeyError/byteOrderMark`` for
    ///   text that begins with the mark that some editors write; ``KeyError/database``, ``KeyError/binary`` or
    ///   ``KeyError/severalLines``.
    public init(text: SecretBytes) throws {
        guard !text.hasByteOrderMark else { throw KeyError.byteOrderMark }
        let trimmed = text.withoutTrailingNewline()
        guard !trimmed.hasIndentedRawPrefix else { throw KeyError.malformed }
        try trimmed.checkIsOneLine()
        guard trimmed.hasRawPrefix else {
            self = try .passphrase(trimmed)
            return
        }
        let digits = trimmed.count - 3
        let wellFormed = trimmed.withUnsafeBytes { bytes in
            bytes.count > 3 && bytes[bytes.count - 1] == UInt8(ascii: "'")
                && bytes[2..<(bytes.count - 1)].allSatisfy { hexValue($0) != nil }
        }
        guard wellFormed else { throw KeyError.malformed }
        switch digits {
        case 2 * Self.rawKeyLength: self.init(form: .raw, keyBytes: trimmed)
        case 2 * (Self.rawKeyLength + Self.saltLength): self.init(form: .rawWithSalt, keyBytes: trimmed)
        default: throw KeyError.malformed
        }
    }

    /// The key as it is stored in a key file, without a newline.
    public var text: SecretBytes { keyBytes }

    /// The salt that is part of a raw key.
    package var salt: SecretBytes? {
        guard form == .rawWithSalt else { return nil }
        return keyBytes.withUnsafeBytes { bytes in
            let first = 2 + 2 * Self.rawKeyLength
            return SecretBytes(count: Self.saltLength) { buffer in
                for index in 0..<Self.saltLength {
                    let high = hexValue(bytes[first + 2 * index]) ?? 0
                    let low = hexValue(bytes[first + 2 * index + 1]) ?? 0
                    buffer[index] = high << 4 | low
                }
            }
        }
    }

    /// Returns the raw key that belongs to this key in the file with this salt: derived from the passphrase, or this
    /// key itself.
    ///
    /// The derivation is PBKDF2, as in SQLCipher; deriving the key here runs it once for a database, and not once for
    /// each connection.
    /// Source: SQLCipher Design, "Key Derivation".
    package func rawKey(salt: SecretBytes, settings: CipherSettings) throws -> CipherKey {
        switch form {
        case .rawWithSalt: return self
        case .raw:
            return CipherKey(form: .rawWithSalt, keyBytes: try Self.raw(rawBytes, salt: salt).keyBytes)
        case .passphrase:
            let derived = try SecretBytes(count: Self.rawKeyLength) { output in
                try keyBytes.withUnsafeBytes { passphrase in
                    try salt.withUnsafeBytes { salt in
                        let isDone = Cryptography.pbkdf2(
                            settings.kdfAlgorithm.function, password: passphrase, salt: salt,
                            rounds: settings.kdfIterations, into: output)
                        guard isDone else { throw KeyError.derivationFailed }
                    }
                }
            }
            return try .raw(derived, salt: salt)
        }
    }

    package var rawBytes: SecretBytes {
        keyBytes.withUnsafeBytes { bytes in
            SecretBytes(count: Self.rawKeyLength) { buffer in
                for index in 0..<Self.rawKeyLength {
                    buffer[index] =
                        (hexValue(bytes[2 + 2 * index]) ?? 0) << 4 | (hexValue(bytes[3 + 2 * index]) ?? 0)
                }
            }
        }
    }
}

extension CipherKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The form of the key, never its bytes.
    public var description: String { "CipherKey(\(form))" }
    /// The form of the key, never its bytes.
    public var debugDescription: String { description }
    /// A mirror without children.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

extension SecretBytes {
    fileprivate var hasRawPrefix: Bool {
        withUnsafeBytes { bytes in
            bytes.count >= 2 && (bytes[0] | 0x20) == UInt8(ascii: "x") && bytes[1] == UInt8(ascii: "'")
        }
    }

    /// Whether there is white space before a raw key, which is never intended as part of a passphrase.
    fileprivate var hasIndentedRawPrefix: Bool {
        withUnsafeBytes { bytes in
            let start = bytes.firstIndex { ![0x20, 0x09, 0x0a, 0x0d].contains($0) } ?? bytes.count
            return start > 0 && bytes.count >= start + 2 && (bytes[start] | 0x20) == UInt8(ascii: "x")
                && bytes[start + 1] == UInt8(ascii: "'")
        }
    }

    /// Whether the text begins with the byte order mark of UTF-8 or of either UTF-16.
    fileprivate var hasByteOrderMark: Bool {
        withUnsafeBytes { bytes in
            bytes.starts(with: [0xef, 0xbb, 0xbf]) || bytes.starts(with: [0xff, 0xfe])
                || bytes.starts(with: [0xfe, 0xff])
        }
    }

    /// Refuses the content of a database, and other content that is not one line of text.
    ///
    /// From the size of the smallest database on, the text must be UTF-8, which an encrypted database never is.
    fileprivate func checkIsOneLine() throws(KeyError) {
        let smallestDatabase = 512
        let fault: KeyError? = withUnsafeBytes { bytes in
            if bytes.starts(with: "SQLite format 3\0".utf8) { return .database }
            if bytes.contains(0) { return .binary }
            if bytes.count >= smallestDatabase,
                transcode(bytes.makeIterator(), from: UTF8.self, to: UTF8.self, stoppingOnError: true, into: { _ in })
            {
                return .binary
            }
            return bytes.contains { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") } ? .severalLines : nil
        }
        if let fault { throw fault }
    }

    fileprivate func withoutTrailingNewline() -> SecretBytes {
        withUnsafeBytes { bytes in
            var end = bytes.count
            if end > 0, bytes[end - 1] == UInt8(ascii: "\n") {
                end -= 1
                if end > 0, bytes[end - 1] == UInt8(ascii: "\r") { end -= 1 }
            }
            return SecretBytes(count: end) { $0.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<end])) }
        }
    }
}

extension CipherSettings.Digest {
    /// The hash function with this name.
    package var function: HashFunction {
        switch self {
        case .sha1: .sha1
        case .sha256: .sha256
        case .sha512: .sha512
        }
    }
}

private func hexDigit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
}

func hexValue(_ digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
    default: nil
    }
}
