internal import CCipherSystem
internal import CipherErrors
package import CipherKeyProviders
internal import CipherPlatform
package import CipherSQLite
internal import CipherSystemFiles

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

    /// Asks for a line on the terminal, which edits the line and does not echo it; Ctrl-C ends the process, as usual.
    ///
    /// - Throws: ``StoreError`` with the code `keyMalformed` for a line that the terminal may have cut, or that contains
    ///   a control character; `keyUnavailable` if the line cannot be read.
    private func typed(_ prompt: String) throws -> SecretBytes {
        var (count, reason): (Int, Int32) = (0, 0)
        let line = SecretBytes(count: Int(CS_LONGEST_TERMINAL_LINE)) { buffer in
            count = cs_read_hidden_line(0, prompt, buffer.baseAddress, buffer.count)
            reason = errno
        }
        guard count >= 0 else {
            throw StoreError(
                .keyUnavailable, "the key could not be read from the terminal: \(String(cString: strerror(reason)))",
                advice: "run the command again, or put the key in a file", changed: .nothing)
        }
        guard count <= line.count else {
            throw StoreError(
                .keyMalformed, "the typed key is longer than \(line.count) bytes, the limit of a line on the terminal",
                advice: "put the key in a file", changed: .nothing)
        }
        let typed = line.withUnsafeBytes { SecretBytes($0[..<count]) }
        guard typed.withUnsafeBytes({ $0.allSatisfy { $0 >= 0x20 && $0 != 0x7f } }) else {
            throw StoreError(
                .keyMalformed, "the typed key contains a control character, such as an arrow key types",
                advice: "run the command again and type the key without it; if the control character is part of the "
                    + "key, put the key in a file", changed: .nothing)
        }
        return typed
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
