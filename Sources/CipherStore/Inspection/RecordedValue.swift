internal import CipherSQLite

/// A version as databases and property lists hold it.
struct RecordedValue {
    private enum Form {
        case number(Int)
        case text(String)
    }

    private let form: Form

    /// The value of a column; `nil` for NULL and blobs.
    init?(_ value: Value) {
        switch value {
        case .integer(let integer):
            // On a system of 32 bits a larger number is no version.
            guard let number = Int(exactly: integer) else { return nil }
            form = .number(number)
        case .real(let real): form = Self.form(real)
        case .text(let text): form = .text(text)
        case .null, .blob: return nil
        }
    }

    /// The value of a property list's key; `nil` for what is neither number nor text.
    init?(_ value: ConfigurationValue) {
        switch value {
        case .integer(let integer): form = .number(integer)
        case .real(let real): form = Self.form(real)
        case .text(let text): form = .text(text)
        case .boolean, .list, .dictionary, .other: return nil
        }
    }

    // 1.0 is version 1; 1.4 is version 1.4, as the apps that kept their versions as DOUBLE meant it.
    private static func form(_ real: Double) -> Form {
        Int(exactly: real).map(Form.number) ?? .text("\(real)")
    }

    /// The version; `nil` where it is none, or negative.
    ///
    /// - Parameter offset: What is added to a version of one number. One of several numbers has no successor to count
    ///   from, so with an offset it is no version.
    func version(offset: Int) -> SchemaVersion? {
        let number: Int
        switch form {
        case .number(let integer): number = integer
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
