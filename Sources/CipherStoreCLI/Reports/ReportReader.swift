internal import CipherErrors
internal import CipherPlatform

/// Reads reports line by line.
enum ReportReader {
    /// A length in bytes that is greater than that of any line of a report.
    private static let longestLine = 8 << 20

    /// Calls `body` with each line of a report.
    ///
    /// - Returns: The number of lines that are incomplete or otherwise not lines of a report; a run that was killed
    ///   may leave one.
    /// - Throws: ``StoreError`` if the file cannot be read, and ``CommandFailure`` if it is not a report.
    static func read(_ path: String, _ body: (ReportLine.Content) throws -> Void) throws -> Int {
        var reader = try LineReader(path)
        let decoder = JSONDecoder()
        var (hasHeader, unreadable) = (false, 0)
        while let bytes = try reader.next(separator: UInt8(ascii: "\n"), longest: longestLine) {
            guard let line = try? decoder.decode(ReportLine.self, from: Data(bytes)) else {
                unreadable += 1
                // A file of another kind is not read to its end.
                guard hasHeader || unreadable < 10 else { throw notAReport(path) }
                continue
            }
            if case .header = line.content { hasHeader = true }
            guard hasHeader else { throw notAReport(path) }
            try body(line.content)
        }
        guard hasHeader || unreadable == 0 else { throw notAReport(path) }
        return unreadable
    }

    private static func notAReport(_ path: String) -> CommandFailure {
        CommandFailure(
            .badData, "notAReport", path: path,
            "this file is not a fleet report: the run header is missing from the start of the file",
            advice: "pass a report that was created with --report")
    }
}
