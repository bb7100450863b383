internal import CipherConfigurationText
internal import CipherHistory

extension ConfigurationNode {
    /// Reads a version: a whole number, or text such as `2.0.0`.
    func version() throws -> SchemaVersion {
        switch value {
        case .integer(let number) where number >= 0:
            return SchemaVersion(number)
        case .text(let text):
            guard let version = SchemaVersion(text) else { break }
            return version
        case .integer:
            break
        case .real:
            throw failure(
                sentence: "\(subject) must be a whole number or a dotted version such as \"2.0.0\", not \(value.kind)",
                advice: "write the version as text, because the numbers 1.1 and 1.10 are equal")
        default:
            throw mismatch("a whole number or a dotted version such as \"2.0.0\"")
        }
        throw failure(sentence: "\(subject) must be a non-negative integer, or text such as \"2.0.0\"")
    }

    /// Reads a version that a database can have.
    ///
    /// Whole numbers are stored in `PRAGMA user_version`, which has 32 bits.
    func schemaVersion() throws -> SchemaVersion {
        let version = try version()
        guard version.wholeNumber ?? 0 <= Int(Int32.max) else {
            throw failure(
                sentence: "\(subject) must be a whole number from 0 to \(Int32.max), or text such as \"2.0.0\"")
        }
        return version
    }
}
