#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// The two formats of a configuration, told apart by what the file holds and not by its name.
enum ConfigurationSyntax {
    /// Why bytes are not a configuration.
    enum Failure: Error, Equatable {
        case empty
        case unknownFormat
        case notUTF8
        case malformed(String)
        case tooDeep
        case tooManyValues
    }

    /// The largest file that is read.
    static let maximumSize = 4 << 20

    /// Reads a property list (XML or binary) or JSON.
    static func parse(_ data: Data) throws(Failure) -> ConfigurationValue {
        guard data.count <= maximumSize else { throw .tooManyValues }
        if data.starts(with: [0xFE, 0xFF]) || data.starts(with: [0xFF, 0xFE]) { throw .notUTF8 }
        let bytes = Data(data.starts(with: [0xEF, 0xBB, 0xBF]) ? data.dropFirst(3) : data[...])
        guard let first = bytes.first(where: { ![0x20, 0x09, 0x0A, 0x0D].contains($0) }) else { throw .empty }
        if bytes.starts(with: Array("bplist".utf8)) { return try BinaryPropertyList.value(of: [UInt8](bytes)) }
        switch first {
        case UInt8(ascii: "<"):
            // The depth is counted in bytes, which is right for UTF-8 and whatever extends ASCII.
            guard !bytes.contains(0) else { throw .notUTF8 }
            guard depth(ofXML: bytes) <= ConfigurationValue.maximumDepth else { throw .tooDeep }
            return try propertyList(bytes)
        case UInt8(ascii: "{"), UInt8(ascii: "["):
            return try json(bytes)
        default:
            throw .unknownFormat
        }
    }

    private static func propertyList(_ bytes: Data) throws(Failure) -> ConfigurationValue {
        let decoder = PropertyListDecoder()
        if let key = ConfigurationValue.budgetKey { decoder.userInfo[key] = ConfigurationValue.Budget() }
        do {
            return try decoder.decode(ConfigurationValue.self, from: bytes)
        } catch {
            throw failure(error, format: "property list")
        }
    }

    private static func json(_ bytes: Data) throws(Failure) -> ConfigurationValue {
        let decoder = JSONDecoder()
        if let key = ConfigurationValue.budgetKey { decoder.userInfo[key] = ConfigurationValue.Budget() }
        do {
            return try decoder.decode(ConfigurationValue.self, from: bytes)
        } catch {
            throw failure(error, format: "JSON")
        }
    }

    private static func failure(_ error: any Error, format: String) -> Failure {
        switch error as? ConfigurationValue.LimitError {
        case .depth: .tooDeep
        case .count: .tooManyValues
        case nil: .malformed(format)
        }
    }

    /// How deep the arrays and dictionaries of an XML property list are nested.
    ///
    /// Foundation's reader calls itself for each level, without a limit: some thousand levels overflow the stack.
    static func depth(ofXML bytes: Data) -> Int {
        var rest = [UInt8](bytes)[...]
        var depth = 0
        var deepest = 0
        while let start = rest.firstIndex(of: UInt8(ascii: "<")) {
            rest = rest[start...]
            if rest.starts(with: "<!--".utf8) {
                rest = after("-->", in: rest)
                continue
            }
            if rest.starts(with: "<![CDATA[".utf8) {
                rest = after("]]>", in: rest)
                continue
            }
            let end = rest.firstIndex(of: UInt8(ascii: ">")) ?? rest.endIndex
            let tag = rest[..<end]
            rest = rest[end...]
            if tag.starts(with: "</array".utf8) || tag.starts(with: "</dict".utf8) {
                depth -= 1
            } else if tag.last != UInt8(ascii: "/"), tag.starts(with: "<array".utf8) || tag.starts(with: "<dict".utf8) {
                depth += 1
                deepest = max(deepest, depth)
            }
        }
        return deepest
    }

    private static func after(_ end: String, in bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var rest = bytes
        while let first = rest.firstIndex(of: end.utf8.first ?? 0) {
            rest = rest[first...]
            if rest.starts(with: end.utf8) { return rest.dropFirst(end.utf8.count) }
            rest = rest.dropFirst()
        }
        return []
    }
}

extension ConfigurationSyntax.Failure {
    /// What is wrong with the file.
    var detail: String {
        switch self {
        case .empty: "the file is empty"
        case .unknownFormat: "the file is neither a property list nor JSON"
        case .notUTF8: "the file is not UTF-8 text"
        case .malformed(let format): "the file is not valid \(format)"
        case .tooDeep: "values are nested deeper than \(ConfigurationValue.maximumDepth) levels"
        case .tooManyValues: "the file is too large for a configuration"
        }
    }

    /// What to do next.
    var advice: String {
        switch self {
        case .malformed("JSON"): "check its syntax, for instance with `python3 -m json.tool`"
        case .malformed: "check its syntax, for instance with `plutil -lint`"
        case .notUTF8: "save it as UTF-8"
        case .empty, .unknownFormat, .tooDeep, .tooManyValues:
            "give a property list (XML or binary) or a JSON file with the keys of Config/README.md"
        }
    }
}
