/// The formats of a configuration, which are recognized by the file's content, not by its name.
package enum ConfigurationSyntax {
    /// The reason why bytes are not a configuration, with the place of the fault.
    package struct Failure: Error, Equatable {
        package enum Reason: Equatable {
            case empty
            case unknownFormat
            /// A property list in the format of NeXTSTEP, which looks like JSON.
            case openStep
            case utf16
            case notUTF8
            /// An encoding that an XML declaration names.
            case encoding(String)
            /// The format, and the fault.
            case malformed(String, String)
            /// A key that a dictionary already has, with the place of the first occurrence; `nil` for binary files,
            /// which have no lines.
            case repeatedKey(String, first: TextPlace?)
            /// A number that no type can represent.
            case unfitNumber
            case tooDeep
            case tooManyValues
        }

        package let reason: Reason
        /// The path to the value or its dictionary, such as `dbTables[2].chat`; empty for the whole file.
        let keyPath: String
        let place: TextPlace?

        package init(_ reason: Reason, keyPath: String = "", place: TextPlace? = nil) {
            self.reason = reason
            self.keyPath = keyPath
            self.place = place
        }
    }

    /// The maximum size of a file, in bytes.
    package static let maximumSize = 4 << 20

    /// Reads a property list (XML or binary) or JSON.
    ///
    /// - Throws: The first fault, with its place. A key that occurs twice and a number that no type can represent are
    ///   also faults.
    package static func parse(_ file: [UInt8]) throws(Failure) -> ConfigurationValue {
        guard file.count <= maximumSize else { throw Failure(.tooManyValues) }
        let bytes = file.starts(with: [0xEF, 0xBB, 0xBF]) ? Array(file.dropFirst(3)) : file
        guard !isUTF16(bytes) else { throw Failure(.utf16) }
        guard let first = bytes.first(where: { ![0x20, 0x09, 0x0A, 0x0D].contains($0) }) else { throw Failure(.empty) }
        if bytes.starts(with: "bplist".utf8) { return try BinaryPropertyList.value(of: bytes) }
        switch first {
        case UInt8(ascii: "<"):
            return try XMLPropertyList.value(of: bytes)
        case UInt8(ascii: "{"), UInt8(ascii: "["):
            do {
                return try JSONText.value(of: bytes)
            } catch {
                throw isOpenStep(bytes) ? Failure(.openStep) : error
            }
        default:
            throw Failure(isOpenStep(bytes) ? .openStep : .unknownFormat)
        }
    }

    /// Returns whether bytes are text with two or four bytes per character, by the byte order mark or the zeros of the
    /// first character.
    private static func isUTF16(_ bytes: [UInt8]) -> Bool {
        if bytes.starts(with: [0xFE, 0xFF]) || bytes.starts(with: [0xFF, 0xFE]) { return true }
        guard bytes.prefix(2).contains(0), let first = bytes.prefix(4).first(where: { $0 != 0 }) else { return false }
        return "<{[ \t\r\n".utf8.contains(first)
    }

    /// Returns whether text begins like an OpenStep property list: with `key =`, with or without a brace before it, or
    /// with a parenthesis.
    private static func isOpenStep(_ bytes: [UInt8]) -> Bool {
        guard var text = try? ConfigurationText(bytes, format: "property list") else { return false }
        func skipComments() {
            text.skipBlanks()
            while text.take("//") || text.isNext("/*") {
                if text.isNext("/*") {
                    guard text.take(through: "*/") != nil else { return }
                } else {
                    _ = text.take { $0 != 0x0A }
                }
                text.skipBlanks()
            }
        }
        skipComments()
        _ = text.take("{")
        skipComments()
        if text.take("(") { return true }
        if text.take("\"") {
            guard text.take(through: "\"") != nil else { return false }
        } else {
            _ = text.take { ![0x20, 0x09, 0x0A, 0x0D, UInt8(ascii: "=")].contains($0) }
        }
        skipComments()
        return text.take("=")
    }
}

extension ConfigurationSyntax.Failure {
    /// A description of the fault, with its place.
    package var detail: String {
        [keyPath, place?.description ?? "", reason.detail].filter { !$0.isEmpty }.joined(separator: ": ")
    }

    /// Advice on what to do next.
    package var advice: String {
        switch reason {
        case .malformed("JSON", _): "check the syntax of the file, for example with `python3 -m json.tool`"
        case .malformed: "check the syntax of the file, for example with `plutil -lint`"
        case .openStep: "convert the file to XML, for example with `plutil -convert xml1` on a Mac"
        case .utf16, .notUTF8, .encoding: "save the file as UTF-8"
        case .repeatedKey: "remove one of the two keys"
        case .unfitNumber: "use a number that can be stored exactly, for example one with fewer digits"
        case .empty, .unknownFormat, .tooDeep, .tooManyValues:
            "use a property list (XML or binary) or a JSON file with the keys described in Config/README.md"
        }
    }
}

extension ConfigurationSyntax.Failure.Reason {
    fileprivate var detail: String {
        switch self {
        case .empty: "the file is empty"
        case .unknownFormat: "the file is neither a property list nor JSON"
        case .openStep: "the file is an OpenStep property list, which is not supported"
        case .utf16: "the file is UTF-16 or UTF-32 text"
        case .notUTF8: "the file is not UTF-8 text"
        case .encoding(let name): "the file declares the unsupported encoding \(name)"
        case .malformed("JSON", let what): "the file is not valid JSON: \(what)"
        case .malformed(let format, let what): "the file is not a valid \(format): \(what)"
        case .repeatedKey(let key, let first):
            "the key \"\(ConfigurationNode.shown(key))\" is specified twice" + (first.map { ", first on \($0)" } ?? "")
        case .unfitNumber: "the number is too large, too small or too long to be stored exactly as written"
        case .tooDeep: "values are nested deeper than \(ConfigurationValue.maximumDepth) levels"
        case .tooManyValues: "the file is too large for a configuration"
        }
    }
}
