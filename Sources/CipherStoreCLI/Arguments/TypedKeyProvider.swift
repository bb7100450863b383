internal import CipherErrors
package import CipherKeyProviders
package import CipherSQLite
internal import CipherSystemFiles

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Provides the key from standard input: everything from a pipe or a file, or a line that is typed without echo on a
/// terminal.
///
/// The key is read once, before the run begins, and kept until the process ends, because a run requests its key several
/// times and waits only for a limited time.
package final class TypedKeyProvider: KeyTextSource, @unchecked Sendable {
    /// The only provider of the process, because there is only one standard input.
    static let shared = TypedKeyProvider()

    // Read and written only under `lock`.
    private let lock = Lock()
    private var given: SecretBytes?

    package func key(for purpose: KeyPurpose, database: String) throws -> CipherKey {
        try KeyText.parse(text(), origin: "standard input")
    }

    package func plannedKey(database: String) throws -> CipherKey? { try key(for: .existing, database: database) }

    package func keyText(database: String) throws -> SecretBytes { try text() }

    /// Returns the key, which the first call reads.
    @discardableResult
    func text() throws -> SecretBytes {
        try lock.withLock {
            let found = try given ?? (isatty(0) == 1 ? typed("Key: ") : piped())
            given = found
            return found
        }
    }

    /// Asks for the key again on a terminal, because a database is about to get it and a typing error would make the
    /// database unreadable.
    func confirm() throws {
        let first = try text()
        guard isatty(0) == 1 else { return }
        guard try typed("Repeat the key: ") == first else {
            throw StoreError(
                .keyUnavailable, "the two keys that you typed are different", advice: "run the command again")
        }
    }

    private func piped() throws -> SecretBytes {
        var bytes = [UInt8]()
        defer { Self.erase(&bytes) }
        while let byte = Self.nextByte() {
            bytes.append(byte)
            guard bytes.count <= KeyText.maximumSize else {
                throw StoreError(
                    .keyMalformed, "the key on standard input is longer than \(KeyText.maximumSize) bytes",
                    advice: "use a shorter passphrase, or a raw key written as x'…' with 64 hex digits")
            }
        }
        return SecretBytes(bytes)
    }

    /// Asks for a line on the terminal; Ctrl-C ends the process, as usual.
    private func typed(_ prompt: String) throws -> SecretBytes {
        guard let line = try line(after: prompt) else {
            raise(SIGINT)
            throw StoreError(.cancelled, "no key was entered", advice: "nothing was changed")
        }
        return line
    }

    /// Reads a line from the terminal without echo, and then restores the terminal's settings.
    ///
    /// - Returns: `nil` at Ctrl-C.
    private func line(after prompt: String) throws -> SecretBytes? {
        var before = termios()
        guard tcgetattr(0, &before) == 0 else { return try piped() }
        var quiet = before
        // Ctrl-C also arrives as a byte, so that the terminal is never left without echo.
        quiet.c_lflag &= ~tcflag_t(ECHO | ICANON | ISIG)
        tcsetattr(0, TCSAFLUSH, &quiet)
        FileDescriptorStream.writeAll(Array(prompt.utf8), to: 2)
        defer {
            tcsetattr(0, TCSAFLUSH, &before)
            FileDescriptorStream.writeAll(Array("\n".utf8), to: 2)
        }
        var line = [UInt8]()
        defer { Self.erase(&line) }
        while let byte = Self.nextByte() {
            switch byte {
            case UInt8(ascii: "\n"), UInt8(ascii: "\r"), 4: return SecretBytes(line)
            case 3: return nil
            case 8, 127:
                // A character may be several bytes.
                while let last = line.popLast(), last & 0xc0 == 0x80 {}
            case 21: line.removeAll(keepingCapacity: true)
            default: if line.count < KeyText.maximumSize { line.append(byte) }
            }
        }
        return SecretBytes(line)
    }

    private static func nextByte() -> UInt8? {
        var byte: UInt8 = 0
        while true {
            switch read(0, &byte, 1) {
            case 1: return byte
            case -1 where errno == EINTR: continue
            default: return nil
            }
        }
    }

    private static func erase(_ bytes: inout [UInt8]) {
        for index in bytes.indices { bytes[index] = 0 }
    }
}
