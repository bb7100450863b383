/// The values of a binary property list.
///
/// Foundation's reader is not used because it ends the process on some damaged files. The format has a header, objects
/// that refer to each other by number, a table of the objects' offsets, and a trailer with the positions of the table
/// and of the first object.
/// Source: CoreFoundation, CFBinaryPList.c.
package struct BinaryPropertyList {
    package static let magic = Array("bplist00".utf8)

    typealias Failure = ConfigurationSyntax.Failure

    private let bytes: [UInt8]
    /// The offset of each object.
    private let offsets: [Int]
    /// The offset at which the objects end.
    private let end: Int
    private let referenceSize: Int
    private let top: Int
    /// The strings that were already read, because a small file can refer to a long string many times.
    private var texts: [Int: ConfigurationValue] = [:]
    private var budget = ConfigurationValue.maximumCount

    private static let damaged = Failure(.malformed("property list", "the binary data is damaged"))

    /// Reads all values.
    static func value(of bytes: [UInt8]) throws(ConfigurationSyntax.Failure) -> ConfigurationValue {
        var list = try BinaryPropertyList(bytes)
        return try list.value(list.top, at: "", depth: 0)
    }

    private init(_ bytes: [UInt8]) throws(Failure) {
        let trailer = bytes.count - 32
        guard bytes.starts(with: Self.magic), trailer > Self.magic.count else { throw Self.damaged }
        func number(_ start: Int) -> UInt64 { Self.number(bytes[start..<(start + 8)]) }
        let offsetSize = Int(bytes[trailer + 6])
        referenceSize = Int(bytes[trailer + 7])
        guard (1...8).contains(offsetSize), (1...8).contains(referenceSize),
            let count = Int(exactly: number(trailer + 8)), let top = Int(exactly: number(trailer + 16)),
            let table = Int(exactly: number(trailer + 24)),
            (Self.magic.count..<trailer).contains(table), (1...((trailer - table) / offsetSize + 1)).contains(count),
            count * offsetSize <= trailer - table, (0..<count).contains(top)
        else { throw Self.damaged }
        var offsets: [Int] = []
        offsets.reserveCapacity(count)
        for index in 0..<count {
            let start = table + index * offsetSize
            guard let offset = Int(exactly: Self.number(bytes[start..<(start + offsetSize)])),
                (Self.magic.count..<table).contains(offset)
            else { throw Self.damaged }
            offsets.append(offset)
        }
        self.bytes = bytes
        self.offsets = offsets
        self.top = top
        end = table
    }

    // MARK: Objects

    private mutating func value(
        _ object: Int, at path: String, depth: Int
    ) throws(Failure) -> ConfigurationValue {
        budget -= 1
        guard budget >= 0 else { throw Failure(.tooManyValues, keyPath: path) }
        let start = offsets[object]
        let marker = bytes[start]
        switch (marker >> 4, marker & 15) {
        case (0, 8): return .boolean(false)
        case (0, 9): return .boolean(true)
        case (0, 0): return .other
        case (1, let power) where power <= 4: return try integer(bytes(behind: start, 1 << Int(power)))
        case (2, 2): return try real(single(bytes(behind: start, 4)))
        case (2, 3): return try real(Double(bitPattern: Self.number(bytes(behind: start, 8))))
        case (3, 3):
            _ = try bytes(behind: start, 8)
            return .other
        case (4, _):
            _ = try content(start, width: 1)
            return .other
        case (5, _), (6, _): return try text(object)
        case (8, let size):
            _ = try bytes(behind: start, Int(size) + 1)
            return .other
        case (10, _): return try list(content(start, width: referenceSize), at: path, depth: depth)
        case (13, _): return try dictionary(content(start, width: 2 * referenceSize), at: path, depth: depth)
        default: throw Self.damaged
        }
    }

    /// Converts an integer; integers of fewer than eight bytes are unsigned.
    private func integer(_ bytes: ArraySlice<UInt8>) -> ConfigurationValue {
        let low = Self.number(bytes.suffix(8))
        guard bytes.count == 16 else { return .integer(Int(Int64(bitPattern: low))) }
        let high = Int64(bitPattern: Self.number(bytes.prefix(8)))
        if high == Int64(bitPattern: low) >> 63 { return .integer(Int(Int64(bitPattern: low))) }
        return .real(Double(high) * 0x1p64 + Double(low))
    }

    /// Converts a four-byte number to the decimal that was written: 1.4 rather than 1.399999976158142.
    private func single(_ bytes: ArraySlice<UInt8>) -> Double {
        let number = Float(bitPattern: UInt32(Self.number(bytes)))
        return Double(number.description) ?? Double(number)
    }

    private func real(_ number: Double) -> ConfigurationValue {
        Int(exactly: number).map(ConfigurationValue.integer) ?? .real(number)
    }

    private mutating func text(_ object: Int) throws(Failure) -> ConfigurationValue {
        if let known = texts[object] { return known }
        let start = offsets[object]
        let text: String?
        if bytes[start] >> 4 == 5 {
            let content = try content(start, width: 1)
            text = content.allSatisfy { $0 < 0x80 } ? String(decoding: content, as: UTF8.self) : nil
        } else {
            let content = try content(start, width: 2)
            let units = stride(from: content.startIndex, to: content.endIndex, by: 2)
                .map { UInt16(content[$0]) << 8 | UInt16(content[$0 + 1]) }
            let decoded = String(decoding: units, as: UTF16.self)
            text = decoded.utf16.elementsEqual(units) ? decoded : nil
        }
        let value = text.map(ConfigurationValue.text) ?? .other
        texts[object] = value
        return value
    }

    private mutating func list(
        _ references: ArraySlice<UInt8>, at path: String, depth: Int
    ) throws(Failure) -> ConfigurationValue {
        guard depth < ConfigurationValue.maximumDepth else { throw Failure(.tooDeep, keyPath: path) }
        var elements: [ConfigurationValue] = []
        for object in try objects(references) {
            let below = ConfigurationNode.path(path, index: elements.count)
            elements.append(try value(object, at: below, depth: depth + 1))
        }
        return .list(elements)
    }

    private mutating func dictionary(
        _ references: ArraySlice<UInt8>, at path: String, depth: Int
    ) throws(Failure) -> ConfigurationValue {
        guard depth < ConfigurationValue.maximumDepth else { throw Failure(.tooDeep, keyPath: path) }
        let objects = try objects(references)
        let count = objects.count / 2
        var entries: [String: ConfigurationValue] = [:]
        for (key, object) in zip(objects[..<count], objects[count...]) {
            guard [5, 6].contains(bytes[offsets[key]] >> 4), case .text(let name) = try text(key) else {
                throw Failure(.malformed("property list", "a key is not text"), keyPath: path)
            }
            guard entries[name] == nil else { throw Failure(.repeatedKey(name, first: nil), keyPath: path) }
            entries[name] = try value(object, at: ConfigurationNode.path(path, key: name), depth: depth + 1)
        }
        return .dictionary(entries)
    }

    // MARK: Bytes

    private func objects(_ references: ArraySlice<UInt8>) throws(Failure) -> [Int] {
        guard references.count <= budget * 2 * referenceSize else { throw Failure(.tooManyValues) }
        var objects: [Int] = []
        for start in stride(from: references.startIndex, to: references.endIndex, by: referenceSize) {
            guard let object = Int(exactly: Self.number(references[start..<(start + referenceSize)])),
                offsets.indices.contains(object)
            else { throw Self.damaged }
            objects.append(object)
        }
        return objects
    }

    /// Returns the content of an object that consists of units of `width` bytes.
    ///
    /// The number of units is in the first byte, or after that byte if it contains 15.
    private func content(
        _ start: Int, width: Int
    ) throws(Failure) -> ArraySlice<UInt8> {
        let short = Int(bytes[start] & 15)
        guard short == 15 else { return try bytes(behind: start, short * width) }
        let marker = try bytes(behind: start, 1)
        guard let kind = marker.first, kind >> 4 == 1, kind & 15 <= 3 else { throw Self.damaged }
        let size = 1 << Int(kind & 15)
        guard let count = Int(exactly: Self.number(try bytes(behind: start + 1, size))), count <= bytes.count else {
            throw Self.damaged
        }
        return try bytes(behind: start + 1 + size, count * width)
    }

    private func bytes(behind start: Int, _ count: Int) throws(Failure) -> ArraySlice<UInt8> {
        guard count <= end - start - 1 else { throw Self.damaged }
        return bytes[(start + 1)..<(start + 1 + count)]
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 {
        bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }
}
