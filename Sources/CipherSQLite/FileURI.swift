internal import CipherErrors

/// A file name in the form in which SQLite accepts it together with settings.
///
/// Source: SQLite, "URI Filenames".
enum FileURI {
    /// Returns a `file:` URI in which every byte with a special meaning in a URI is escaped.
    static func text(_ path: String, query: String = "") -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        // After two slashes, the first part of a relative name would be taken as a host name.
        var bytes: [UInt8] = Array((path.utf8.first == UInt8(ascii: "/") ? "file://" : "file:").utf8)
        for byte in SystemPath.bytes(path) {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "/"), UInt8(ascii: "."), UInt8(ascii: "-"),
                UInt8(ascii: "_"):
                bytes.append(byte)
            default:
                bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        if !query.isEmpty { bytes += Array("?\(query)".utf8) }
        return String(decoding: bytes, as: UTF8.self)
    }
}
