internal import CCipherSystem

extension FileSystem {
    /// Tells this start of the system from every other one; `nil` if the system does not say.
    ///
    /// What a process wrote and did not sync is there for as long as it is the same.
    package static func bootIdentity() -> String? {
        var bytes = [CChar](repeating: 0, count: 37)
        guard cs_boot_identity(&bytes) == 0 else { return nil }
        let text = bytes.dropLast().map { UInt8(bitPattern: $0) }
        guard text.allSatisfy({ $0 > 32 && $0 < 127 }) else { return nil }
        return String(decoding: text, as: UTF8.self)
    }
}
