internal import CipherPlatform
package import CipherPrimitives
internal import CipherErrors
internal import CipherSQLite

/// The environment variables of this process.
package enum ProcessEnvironment {
    /// Returns the value of a variable without copying it into a `String`; `nil` if it is not set.
    package static func value(of variable: String) -> SecretBytes? {
        // A NUL would end the name, and another variable would be read.
        guard !variable.utf8.contains(0), let value = variable.withSystemPath({ getenv($0) }) else { return nil }
        let bytes = UnsafeRawBufferPointer(start: value, count: strlen(value))
        return SecretBytes(count: bytes.count) { $0.copyMemory(from: bytes) }
    }
}
