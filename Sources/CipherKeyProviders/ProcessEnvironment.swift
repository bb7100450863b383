package import CipherPrimitives
internal import CipherErrors
internal import CipherSQLite

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// The variables of this process.
package enum ProcessEnvironment {
    /// The value of a variable, without a copy of it as a `String`; `nil` if it is not set.
    package static func value(of variable: String) -> SecretBytes? {
        // A NUL in the name would end it, and another variable be read.
        guard !variable.utf8.contains(0), let value = variable.withSystemPath({ getenv($0) }) else { return nil }
        let bytes = UnsafeRawBufferPointer(start: value, count: strlen(value))
        return SecretBytes(count: bytes.count) { $0.copyMemory(from: bytes) }
    }
}
