internal import CipherSQLite

#if canImport(FoundationEssentials)
    package import FoundationEssentials
#else
    package import Foundation
#endif

extension URL {
    /// The path of a file URL, byte by byte.
    ///
    /// `path(percentEncoded: false)` is empty where the bytes are not UTF-8.
    package var systemPath: String {
        var bytes: [UInt8] = []
        var rest = Array(path(percentEncoded: true).utf8)[...]
        while let byte = rest.popFirst() {
            let digits = rest.prefix(2)
            if byte == UInt8(ascii: "%"), digits.count == 2,
                let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
            {
                bytes.append(value)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return SystemPath.text(bytes)
    }
}
