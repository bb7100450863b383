internal import CipherPrimitives

/// A sign that a key is not the one that was meant, or that it protects nothing.
///
/// The key is used all the same, because a file may already have it.
package enum KeyMistake: Sendable, Equatable, CaseIterable {
    /// A passphrase of zero bytes: a key file after a power loss.
    case zeroPassphrase
    /// A raw key of zero bytes.
    case zeroRawKey
    /// A passphrase that consists of the digits of a raw key.
    case digits
    /// A passphrase that is a raw key in quotes other than `x'…'`, such as curly ones.
    case otherQuotes
    /// A passphrase that is a raw key written as a number, with `0x`.
    case number
    /// A passphrase of one character.
    case oneCharacter
    /// A passphrase from which the key is derived with fewer rounds than in any of SQLCipher's formats.
    case fewRounds

    /// The fewest rounds of PBKDF2 in a format of SQLCipher; formats 1 and 2 have this number.
    static let fewestRounds = 4_000
}

extension KeyMistake: CustomStringConvertible {
    /// What the key was taken for, and what to do next; never the key.
    package var description: String {
        switch self {
        case .zeroPassphrase:
            "the key consists of zero bytes and was used as a passphrase, which anyone can guess: the place where it is "
                + "stored may have lost its content" + Self.change
        case .zeroRawKey:
            "the raw key consists of zeros, so anyone can read the database: the place where the key is stored may have "
                + "lost its content" + Self.change
        case .digits: Self.taken("consists of hex digits without x'…'")
        case .otherQuotes: Self.taken("is a raw key in quotes other than x'…'")
        case .number: Self.taken("is a raw key that begins with 0x instead of x'")
        case .oneCharacter: "the key is a passphrase of one character, which anyone can guess" + Self.change
        case .fewRounds:
            "the key is derived from the passphrase with fewer than \(Self.fewestRounds) rounds of PBKDF2, so the "
                + "passphrase is easy to guess; use the default number of rounds, or a raw key"
        }
    }

    private static let change = "; change the key of the database, with cipherstore rekey or a key rotation"

    private static func taken(_ form: String) -> String {
        "the key \(form), so it was used as a passphrase; if a raw key was meant, write it as x'…' with the digits "
            + "between the quotes, and change the key of the database, with cipherstore rekey or a key rotation"
    }
}

extension CipherKey {
    /// Returns the signs that this key is a mistake in a file with these settings.
    package func mistakes(_ settings: CipherSettings) -> [KeyMistake] {
        guard form == .passphrase else { return rawBytes.isZero ? [.zeroRawKey] : [] }
        let rounds: [KeyMistake] = settings.kdfIterations < KeyMistake.fewestRounds ? [.fewRounds] : []
        if keyBytes.isZero { return [.zeroPassphrase] + rounds }
        if let likeness = keyBytes.likenessToRawKey { return [likeness] + rounds }
        return (keyBytes.characterCount == 1 ? [.oneCharacter] : []) + rounds
    }
}

extension SecretBytes {
    fileprivate var isZero: Bool { withUnsafeBytes { $0.allSatisfy { $0 == 0 } } }

    /// The number of characters, if the bytes are UTF-8.
    fileprivate var characterCount: Int { withUnsafeBytes { $0.count { $0 & 0xc0 != 0x80 } } }

    /// The form of a text that contains exactly the digits of a raw key, with or without a salt, but not as SQLCipher
    /// expects them.
    fileprivate var likenessToRawKey: KeyMistake? {
        // Quotes in UTF-8: ASCII, acute and grave accents, guillemets, and U+2018 to U+201F.
        let core = withUnsafeBytes { bytes in
            SecretBytes(bytes.lazy.filter { !Self.quoteBytes.contains($0) })
        }
        return core.withUnsafeBytes { bytes -> KeyMistake? in
            let isNumber = bytes.count > 2 && bytes[0] == UInt8(ascii: "0") && bytes[1] | 0x20 == UInt8(ascii: "x")
            let isMarked = bytes.first.map { $0 | 0x20 == UInt8(ascii: "x") } ?? false
            let digits = bytes.dropFirst(isNumber ? 2 : isMarked ? 1 : 0)
            let lengths = [2 * CipherKey.rawKeyLength, 2 * (CipherKey.rawKeyLength + CipherKey.saltLength)]
            guard lengths.contains(digits.count), digits.allSatisfy({ hexValue($0) != nil }) else { return nil }
            if core.count < count || isMarked { return .otherQuotes }
            return isNumber ? .number : .digits
        }
    }

    /// The bytes of which quotes consist; none of them is a hex digit.
    private static let quoteBytes: Set<UInt8> = [
        0x20, 0x22, 0x27, 0x60, 0xe2, 0x80, 0x98, 0x99, 0x9a, 0x9b, 0x9c, 0x9d, 0x9e, 0x9f, 0xc2, 0xb4, 0xab, 0xbb,
    ]
}
