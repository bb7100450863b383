internal import CipherErrors
internal import CipherPlatform

/// The two streams of the process.
enum Output {
    /// Prints a line of text for people, with characters that a terminal would act upon made visible.
    static func line(_ text: String = "") throws {
        try standardOutput.write(SystemPath.printable(text) + "\n")
    }

    /// Prints text unchanged.
    static func text(_ text: String) throws { try standardOutput.write(text) }

    /// Prints bytes unchanged.
    static func bytes(_ bytes: some Sequence<UInt8>) throws { try standardOutput.write(bytes) }

    /// Whether standard output is a terminal.
    static var isTerminal: Bool { standardOutput.isTerminal }

    /// Prints a value as one JSON object, on its own line.
    static func json(_ value: some Encodable) throws {
        try standardOutput.write(jsonText(value) + "\n")
    }

    /// Returns a value as one JSON object without line breaks.
    static func jsonText(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Otherwise, bytes in names that are not UTF-8 would be read as characters that no name contains.
        return SystemPath.printable(json: String(decoding: try encoder.encode(value), as: UTF8.self))
    }

    /// Treats all output from now on as a report on work that is already done: the exit status describes the work, even
    /// if the report cannot be written.
    static func beginReport() { standardOutput.holdsBack = true }

    /// Whether ``beginReport()`` was called.
    static var isReport: Bool { standardOutput.holdsBack }

    /// Writes the output that is still held back.
    static func flush() throws { try standardOutput.flush() }

    /// Whether something was printed on standard output, so that another object would corrupt it.
    static var hasBegun: Bool { standardOutput.hasBegun }

    /// Prints a line on standard error, after the program's name.
    ///
    /// A failure to write it is ignored, because it cannot be reported anywhere. A worker process of a run on a fleet
    /// prints nothing: what it would say at its start, the run itself has said.
    static func complain(_ text: String) {
        guard !ThisProcess.isWorker else { return }
        FileDescriptorStream.writeAll(Array("cipherstore: \(SystemPath.printable(text))\n".utf8), to: 2)
    }

    private static let standardOutput = FileDescriptorStream(descriptor: 1)
}
