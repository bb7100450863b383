/// The values of a property list in XML.
///
/// Foundation's reader is not used because it accepts a key that occurs twice, reports no line, and recurses without
/// a limit.
///
/// Source: Apple's PropertyList-1.0.dtd, and XML 1.0 for its syntax.
struct XMLPropertyList {
    /// An element's start tag.
    private struct Tag {
        let name: String
        /// Whether the element is empty and needs no end tag, as in `<true/>`.
        let isWhole: Bool
        let position: Int
    }

    private var text: ConfigurationText

    /// Reads all values.
    static func value(of bytes: [UInt8]) throws(ConfigurationSyntax.Failure) -> ConfigurationValue {
        var list = XMLPropertyList(text: try ConfigurationText(bytes, format: "property list"))
        try list.skipProlog()
        var tag = try list.tag(at: "")
        let root = tag.name == "plist" ? tag : nil
        if let root {
            guard !root.isWhole else {
                throw list.text.fault("<plist/> contains no value", at: "", position: root.position)
            }
            try list.skipBlanks(at: "")
            tag = try list.tag(at: "")
        }
        let value = try list.value(tag, at: "", depth: 0)
        if let root { try list.end(root, at: "") }
        try list.skipBlanks(at: "")
        guard list.text.next == nil else {
            throw list.text.fault("there is extra text after the end of the property list", at: "")
        }
        return value
    }

    // MARK: Values

    private mutating func value(
        _ tag: Tag, at path: String, depth: Int
    ) throws(ConfigurationSyntax.Failure) -> ConfigurationValue {
        let isNested = ["dict", "array"].contains(tag.name)
        try text.count(at: path, depth: isNested ? depth + 1 : depth)
        switch tag.name {
        case "dict": return try dictionary(tag, at: path, depth: depth + 1)
        case "array": return try list(tag, at: path, depth: depth + 1)
        case "string": return .text(try content(tag, at: path))
        case "integer", "real": return try number(tag, at: path)
        case "true", "false":
            if !tag.isWhole { try end(tag, at: path) }
            return .boolean(tag.name == "true")
        case "date", "data":
            _ = try content(tag, at: path)
            return .other
        default:
            throw text.fault(
                "<\(ConfigurationNode.shown(tag.name))> is not a property list element", at: path,
                position: tag.position)
        }
    }

    private mutating func dictionary(
        _ tag: Tag, at path: String, depth: Int
    ) throws(ConfigurationSyntax.Failure) -> ConfigurationValue {
        var entries = ConfigurationEntries()
        guard !tag.isWhole else { return .dictionary([:]) }
        try skipBlanks(at: path)
        while !text.isNext("</") {
            let name = try self.tag(at: path)
            guard name.name == "key" else {
                throw text.fault("a <key> is missing before the value", at: path, position: name.position)
            }
            let key = try content(name, at: path)
            try entries.add(key, position: name.position, of: text, at: path)
            try skipBlanks(at: path)
            let below = ConfigurationNode.path(path, key: key)
            guard !text.isNext("</") else { throw text.fault("the value of the key is missing", at: below) }
            entries.set(key, try value(try self.tag(at: below), at: below, depth: depth))
            try skipBlanks(at: path)
        }
        try end(tag, at: path)
        return .dictionary(entries.values)
    }

    private mutating func list(
        _ tag: Tag, at path: String, depth: Int
    ) throws(ConfigurationSyntax.Failure) -> ConfigurationValue {
        var elements: [ConfigurationValue] = []
        guard !tag.isWhole else { return .list([]) }
        try skipBlanks(at: path)
        while !text.isNext("</") {
            let below = ConfigurationNode.path(path, index: elements.count)
            elements.append(try value(try self.tag(at: below), at: below, depth: depth))
            try skipBlanks(at: path)
        }
        try end(tag, at: path)
        return .list(elements)
    }

    private mutating func number(_ tag: Tag, at path: String) throws(ConfigurationSyntax.Failure) -> ConfigurationValue
    {
        let word = Self.trimmed(try content(tag, at: path))
        let number: ConfigurationValue?
        if tag.name == "integer", let parts = word.wholeMatch(of: /([+-]?)(0[xX])?([0-9a-fA-F]+)/),
            parts.2 != nil || parts.3.allSatisfy({ ("0"..."9").contains($0) })
        {
            number = Int("\(parts.1)\(parts.3)", radix: parts.2 == nil ? 10 : 16).map(ConfigurationValue.integer)
        } else if tag.name == "real",
            word.wholeMatch(of: /[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?/) != nil
        {
            number = ConfigurationValue(number: word)
        } else if tag.name == "real", Double(word)?.isFinite == false {
            // Foundation writes an infinity or NaN as a word.
            number = .other
        } else {
            throw text.fault("<\(tag.name)> does not contain a valid number", at: path, position: tag.position)
        }
        guard let number else { throw text.failure(.unfitNumber, at: path, position: tag.position) }
        return number
    }

    private static func trimmed(_ word: String) -> String {
        func isBlank(_ byte: UInt8) -> Bool { byte <= 0x20 }
        return String(
            decoding: word.utf8.drop(while: isBlank).reversed().drop(while: isBlank).reversed(), as: UTF8.self)
    }

    // MARK: Text

    /// Returns the text between an element's start tag and its end tag.
    private mutating func content(_ tag: Tag, at path: String) throws(ConfigurationSyntax.Failure) -> String {
        guard !tag.isWhole else { return "" }
        var bytes: [UInt8] = []
        while true {
            bytes += text.take { $0 != UInt8(ascii: "<") && $0 != UInt8(ascii: "&") }
            if text.next == UInt8(ascii: "&") {
                bytes += String(try reference(at: path)).utf8
            } else if text.isNext("<![CDATA[") {
                bytes += try pass("<![CDATA[", to: "]]>", "CDATA section", at: path)
            } else if text.isNext("<!--") {
                _ = try pass("<!--", to: "-->", "comment", at: path)
            } else {
                try end(tag, at: path)
                return String(decoding: bytes, as: UTF8.self)
            }
        }
    }

    private static let entities: [String: Unicode.Scalar] = [
        "lt": "<", "gt": ">", "amp": "&", "quot": "\"", "apos": "'",
    ]

    /// Reads `&lt;`, `&#60;` or `&#x3C;`.
    private mutating func reference(at path: String) throws(ConfigurationSyntax.Failure) -> Unicode.Scalar {
        let start = text.position
        text.skip()
        let name = String(
            decoding: text.take { $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: "<") && $0 > 0x20 }, as: UTF8.self)
        let scalar =
            if let digits = name.wholeMatch(of: /#x([0-9a-fA-F]+)/) {
                UInt32(digits.1, radix: 16).flatMap(Unicode.Scalar.init)
            } else if let digits = name.wholeMatch(of: /#([0-9]+)/) {
                UInt32(digits.1).flatMap(Unicode.Scalar.init)
            } else {
                Self.entities[name]
            }
        guard text.take(";"), let scalar else {
            throw text.fault(
                "& does not begin a valid character or entity reference; to write an ampersand, use &amp;", at: path,
                position: start)
        }
        return scalar
    }

    // MARK: Tags

    private mutating func tag(at path: String) throws(ConfigurationSyntax.Failure) -> Tag {
        let position = text.position
        guard text.take("<"), let first = text.next, first != UInt8(ascii: "/") else {
            throw text.fault("an element is missing", at: path, position: position)
        }
        let name = text.take { $0 > 0x20 && $0 != UInt8(ascii: ">") && $0 != UInt8(ascii: "/") }
        var isWhole = false
        var quote: UInt8?
        while let byte = text.next {
            text.skip()
            if let open = quote {
                if byte == open { quote = nil }
            } else if byte == UInt8(ascii: ">") {
                return Tag(name: String(decoding: name, as: UTF8.self), isWhole: isWhole, position: position)
            } else {
                if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") { quote = byte }
                guard byte != UInt8(ascii: "<") else { break }
                isWhole = byte == UInt8(ascii: "/")
            }
        }
        throw text.fault("the tag that begins here is not closed", at: path, position: position)
    }

    /// Skips the end tag of an element.
    private mutating func end(_ tag: Tag, at path: String) throws(ConfigurationSyntax.Failure) {
        try skipBlanks(at: path)
        let position = text.position
        if text.take("</\(tag.name)") {
            text.skipBlanks()
            if text.take(">") { return }
        }
        let begun = text.place(of: tag.position)
        throw text.fault(
            "the closing tag </\(tag.name)> is missing for the element that begins on \(begun)", at: path,
            position: position)
    }

    // MARK: Prolog, comments and blanks

    private mutating func skipBlanks(at path: String) throws(ConfigurationSyntax.Failure) {
        text.skipBlanks()
        while text.isNext("<!--") || text.isNext("<?") {
            if text.isNext("<!--") {
                _ = try pass("<!--", to: "-->", "comment", at: path)
            } else {
                _ = try pass("<?", to: "?>", "processing instruction", at: path)
            }
            text.skipBlanks()
        }
    }

    /// Skips everything before the first element.
    private mutating func skipProlog() throws(ConfigurationSyntax.Failure) {
        text.skipBlanks()
        if text.isNext("<?xml") {
            let declaration = String(decoding: try pass("<?", to: "?>", "XML declaration", at: ""), as: UTF8.self)
            let encoding = declaration.firstMatch(of: /encoding\s*=\s*["']([^"']*)["']/)?.1.uppercased() ?? "UTF-8"
            // For a file with only ASCII, every encoding that extends ASCII is the same.
            guard encoding == "UTF-8" || text.bytes.allSatisfy({ $0 < 0x80 }) else {
                throw ConfigurationSyntax.Failure(.encoding(ConfigurationNode.shown(encoding)))
            }
        }
        try skipBlanks(at: "")
        guard text.isNext("<!DOCTYPE") else { return }
        let start = text.position
        guard let type = text.take(through: ">"), !type.contains(UInt8(ascii: "[")) else {
            throw text.fault(
                "the DOCTYPE is not closed, or it contains declarations of entities or elements, which are not "
                    + "supported", at: "", position: start)
        }
        try skipBlanks(at: "")
    }

    private mutating func pass(
        _ begin: String, to end: String, _ what: String, at path: String
    ) throws(ConfigurationSyntax.Failure) -> ArraySlice<UInt8> {
        let start = text.position
        text.skip(begin.utf8.count)
        guard let content = text.take(through: end) else {
            throw text.fault("the \(what) that begins here is not closed", at: path, position: start)
        }
        return content
    }
}
