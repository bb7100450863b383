internal import CipherErrors
internal import CipherPrimitives
internal import CipherSQLite

/// The name of an account's folder: safe on every file system, readable, and unique to the account.
///
/// Lower-case letters, digits and `-`, `_`, `@`, `+` are used unchanged, and so is `.` unless it comes first. Every
/// other byte of the UTF-8 becomes `%` and two upper-case hexadecimal digits, including `%` itself and capital letters,
/// so that no two names differ only in letter case. The name for the empty account is `%`. Names longer than 200 bytes
/// are cut, and end with `%-` and the SHA-256 of the account. No other name contains `%-` or is a single `%`.
package enum AccountFolder {
    /// The maximum length in bytes; file systems allow 255.
    private static let maximumLength = 200

    /// - Throws: ``StoreError`` with the code `misuse` if the cryptographic library cannot compute the digest of a long
    ///   account name.
    package static func name(of account: String) throws -> String {
        guard !account.isEmpty else { return "%" }
        var name: [UInt8] = []
        for byte in account.utf8 {
            if isPlain(byte) || byte == UInt8(ascii: ".") && !name.isEmpty {
                name.append(byte)
            } else {
                name += [UInt8(ascii: "%")] + hexadecimal(byte, upperCase: true)
            }
        }
        guard name.count > maximumLength else { return String(decoding: name, as: UTF8.self) }
        guard let digest = Array(account.utf8).withUnsafeBytes(Cryptography.sha256) else {
            throw StoreError(
                .misuse,
                "the account name is too long for a file name, and the SHA-256 hash that would shorten the name could "
                    + "not be computed",
                advice: "choose a shorter name")
        }
        let ending = Array("%-".utf8) + digest.flatMap { hexadecimal($0, upperCase: false) }
        return String(decoding: name.prefix(maximumLength - ending.count) + ending, as: UTF8.self)
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"),
            UInt8(ascii: "_"), UInt8(ascii: "@"), UInt8(ascii: "+"):
            true
        default: false
        }
    }

    private static func hexadecimal(_ byte: UInt8, upperCase: Bool) -> [UInt8] {
        let digits = Array((upperCase ? "0123456789ABCDEF" : "0123456789abcdef").utf8)
        return [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
    }
}
