internal import CCipherSystem

extension FileSystem {
    /// Returns an identifier of the current boot of the system; `nil` if the system does not provide one.
    ///
    /// As long as the identifier is the same, data that a process wrote without syncing still exists.
    package static func bootIdentity() -> String? {
        var bytes = [CChar](repeating: 0, count: 37)
        guard cs_boot_identity(&bytes) == 0 else { return nil }
        let text = bytes.dropLast().map { UInt8(bitPattern: $0) }
        guard text.allSatisfy({ $0 > 32 && $0 < 127 }) else { return nil }
        return String(decoding: text, as: UTF8.self)
    }
}
