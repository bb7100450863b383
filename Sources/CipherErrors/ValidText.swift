extension String {
    /// Creates text of bytes; `nil` if they are not valid UTF-8.
    ///
    /// Swift's own initializer for this needs macOS 15 and iOS 18. Decoding replaces invalid bytes with U+FFFD, so only
    /// valid bytes are the same after it.
    @inlinable
    package init?(utf8 bytes: some Collection<UInt8>) {
        var text = String(decoding: bytes, as: UTF8.self)
        guard text.withUTF8({ $0.elementsEqual(bytes) }) else { return nil }
        self = text
    }
}
