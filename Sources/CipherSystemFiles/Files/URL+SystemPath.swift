internal import CipherErrors
package import CipherPlatform

extension URL {
    /// The path of a file URL, byte for byte.
    ///
    /// `path(percentEncoded: false)` is empty if the bytes are not UTF-8.
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

    /// Returns the path of a file URL that the caller passed.
    ///
    /// - Throws: ``StoreError`` with the code `configuration` if the URL is not a file URL, or its path is empty or
    ///   contains a NUL.
    package func requiredPath() throws -> String {
        guard isFileURL else {
            throw StoreError(
                .configuration, path: absoluteString, "the URL is not a file URL",
                advice: "create the URL with URL(fileURLWithPath:) or URL(filePath:)")
        }
        let path = systemPath
        guard !path.isEmpty, !path.utf8.contains(0) else {
            throw StoreError(
                .configuration, path: absoluteString,
                "the URL does not refer to a file: its path is empty or contains a NUL character",
                advice: "create the URL with URL(fileURLWithPath:) or URL(filePath:)")
        }
        return path
    }
}
