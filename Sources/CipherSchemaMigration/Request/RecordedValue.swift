internal import CipherConfigurationText
internal import CipherErrors
package import CipherHistory
internal import CipherSQLite

/// A version as databases and property lists store it.
struct RecordedValue {
    private enum Form {
        case number(Int)
        case fraction(Double)
        case text(String)
    }

    private let form: Form

    /// Creates the value of a column; `nil` for NULL and blobs.
    init?(_ value: Value) {
        switch value {
        case .integer(let integer):
            // On a 32-bit system, a number that does not fit is not a valid version.
            guard let number = Int(exactly: integer) else { return nil }
            form = .number(number)
        case .real(let real): form = Self.form(real)
        case .text(let text): form = .text(text)
        case .null, .blob: return nil
        }
    }

    /// Creates the value of a property list's key; `nil` for anything that is neither a number nor text.
    init?(_ value: ConfigurationValue) {
        switch value {
        case .integer(let integer): form = .number(integer)
        case .real(let real): form = Self.form(real)
        case .text(let text): form = .text(text)
        case .boolean, .list, .dictionary, .other: return nil
        }
    }

    // 1.0 is version 1.
    private static func form(_ real: Double) -> Form {
        Int(exactly: real).map(Form.number) ?? .fraction(real)
    }

    /// Returns the version; `nil` if the value is not a valid version, or is negative.
    ///
    /// - Parameters:
    ///   - fractions: How to read a number that is not whole.
    ///   - offset: The number that is added to a version of one number. A version of several numbers has no definite
    ///     successor, so with an offset it is not a valid version.
    ///   - place: A description of where the value is, for errors.
    /// - Throws: ``StoreError`` with the code `recordedVersion` if `fractions` refuses the value.
    func version(
        _ fractions: RecordedVersion.Fractions, offset: Int = 0, of place: String, path: String
    ) throws -> SchemaVersion? {
        let number: Int
        switch form {
        case .number(let integer): number = integer
        case .fraction(let real):
            guard real > 0, real.isFinite else { return nil }
            switch fractions {
            case .asWritten: return offset == 0 ? SchemaVersion("\(real)") : nil
            case .assumed(let version): return version
            case .refused:
                throw StoreError.unknownVersion(
                    path,
                    "\(place) contains a number with a fraction, which is ambiguous: as numbers, the versions 1.1 and "
                        + "1.10 are equal",
                    last: "return the version from a closure (RecordedVersion.custom)")
            }
        case .text(let text):
            guard let version = SchemaVersion(text) else { return nil }
            if offset == 0 { return version }
            guard version.components.count <= 1 else { return nil }
            number = version.components.first ?? 0
        }
        let (sum, overflow) = number.addingReportingOverflow(offset)
        return overflow || sum < 0 ? nil : SchemaVersion(sum)
    }
}

extension RecordedVersion {
    /// How to read a number that is not whole as a version.
    ///
    /// A column of type REAL, NUMERIC or DECIMAL stores the text 1.10 as the number 1.1, and so does JSON without
    /// quotes.
    package enum Fractions {
        /// The version with the number's digits, as intended by apps without dotted versions that stored a version as
        /// DOUBLE.
        case asWritten
        /// The associated version.
        case assumed(SchemaVersion)
        /// An error, because the version cannot be determined.
        case refused
    }
}
