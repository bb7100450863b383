internal import CipherErrors

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The two streams of the process.
enum Output {
    /// A line of text for people, with what a terminal would act upon made visible.
    static func line(_ text: String = "") throws {
        try standardOutput.write(SystemPath.printable(text) + "\n")
    }

    /// Text as it is.
    static func text(_ text: String) throws { try standardOutput.write(text) }

    /// Bytes as they are.
    static func bytes(_ bytes: some Sequence<UInt8>) throws { try standardOutput.write(bytes) }

    /// Whether standard output is a terminal.
    static var isTerminal: Bool { standardOutput.isTerminal }

    /// A value as one JSON object, on a line of its own.
    static func json(_ value: some Encodable) throws {
        try standardOutput.write(jsonText(value) + "\n")
    }

    /// A value as one JSON object without line ends.
    static func jsonText(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Bytes of names that are not UTF-8 would be read as characters that no name has.
        return SystemPath.printable(json: String(decoding: try encoder.encode(value), as: UTF8.self))
    }

    /// Takes what is printed from now on for a report on work that is done by then: the exit status tells of the work,
    /// also where the report cannot be written.
    static func beginReport() { standardOutput.holdsBack = true }

    /// Whether that was said.
    static var isReport: Bool { standardOutput.holdsBack }

    /// Writes what is still held back.
    static func flush() throws { try standardOutput.flush() }

    /// Whether something was said on standard output, so that nothing may be added that would spoil it.
    static var hasBegun: Bool { standardOutput.hasBegun }

    /// A line on standard error, after the name of the program.
    ///
    /// There is no one to tell when it cannot be written.
    static func complain(_ text: String) {
        FileDescriptorStream.writeAll(Array("cipherstore: \(SystemPath.printable(text))\n".utf8), to: 2)
    }

    private static let standardOutput = FileDescriptorStream(descriptor: 1)
}
