internal import CipherConfigurationText
import CipherTestSupport
import Foundation
import Testing

struct BinaryPropertyListTests {
    /// Returns a binary property list of these objects, of which the first is the list's value.
    private static func list(_ objects: [[UInt8]], top: UInt8 = 0, offsetSize: UInt8 = 1) -> [UInt8] {
        var bytes = BinaryPropertyList.magic
        var offsets: [UInt8] = []
        for object in objects {
            offsets.append(UInt8(bytes.count))
            bytes += object
        }
        let table = UInt8(bytes.count)
        bytes += offsets + [0, 0, 0, 0, 0, 0, offsetSize, 1]
        for number in [UInt8(objects.count), top, table] { bytes += [0, 0, 0, 0, 0, 0, 0, number] }
        return bytes
    }

    private func read(_ bytes: [UInt8]) throws -> ConfigurationValue {
        try ConfigurationSyntax.parse(bytes)
    }

    private func reason(_ bytes: [UInt8]) -> ConfigurationSyntax.Failure.Reason? {
        #expect(throws: ConfigurationSyntax.Failure.self) { try read(bytes) }?.reason
    }

    private static let values: [([UInt8], ConfigurationValue)] = [
        ([0x08], .boolean(false)), ([0x09], .boolean(true)), ([0x00], .other),
        ([0x10, 0xFF], .integer(255)), ([0x11, 0xFF, 0xFE], .integer(65534)),
        ([0x12, 0xFF, 0xFF, 0xFF, 0xFF], .integer(4_294_967_295)),
        ([0x13] + [UInt8](repeating: 0xFF, count: 8), .integer(-1)),
        ([0x14] + [UInt8](repeating: 0xFF, count: 16), .integer(-1)),
        ([0x14] + [UInt8](repeating: 0, count: 8) + [UInt8](repeating: 0xFF, count: 8), .real(0x1p64)),
        ([0x22, 0x3F, 0xC0, 0, 0], .real(1.5)), ([0x23, 0x40, 0x08, 0, 0, 0, 0, 0, 0], .integer(3)),
        ([0x33, 0, 0, 0, 0, 0, 0, 0, 0], .other), ([0x42, 1, 2], .other), ([0x80, 1], .other),
        ([0x52, 0x61, 0x62], .text("ab")), ([0x50], .text("")), ([0x51, 0xE4], .other),
        ([0x62, 0x00, 0xE4, 0x20, 0xAC], .text("ä€")), ([0x61, 0xD8, 0x00], .other), ([0xA0], .list([])),
        ([0xD0], .dictionary([:])), ([0x5F, 0x10, 0x01, 0x61], .text("a")),
    ]

    @Test("Each kind of value in a binary property list is recognized", arguments: values)
    func kinds(object: [UInt8], value: ConfigurationValue) throws {
        #expect(try read(Self.list([object])) == value)
    }

    @Test("The example configurations mean the same in binary form as in XML")
    func examples() throws {
        let files = try #require(
            FileManager.default.enumerator(atPath: Repository.examples.path(percentEncoded: false)))
        let lists = files.compactMap { $0 as? String }.filter { $0.hasSuffix(".plist") }
        #expect(lists.count > 5)
        for name in lists {
            let xml = try Data(contentsOf: Repository.examples.appending(path: name))
            let list = try PropertyListSerialization.propertyList(from: xml, format: nil)
            let binary = try PropertyListSerialization.data(fromPropertyList: list, format: .binary, options: 0)
            let value = try ConfigurationSyntax.parse([UInt8](xml))
            #expect(try ConfigurationSyntax.parse([UInt8](binary)) == value, "\(name)")
            #expect(try ConfigurationSyntax.parse([UInt8](BinaryPropertyListWriter.data(list))) == value, "\(name)")
        }
    }

    private static let greatest: [UInt8] = [0x7F] + [UInt8](repeating: 0xFF, count: 7)
    private static let damagedLists: [[UInt8]] = [
        // Foundation's reader doubles the number of entries, and the overflow ends the process.
        list([[0xDF, 0x13] + greatest + [1], [0x51, 0x61]]),
        list([[0xDF, 0x13, 0x40, 0, 0, 0, 0, 0, 0, 0, 1], [0x51, 0x61]]),
        list([[0xAF, 0x13] + greatest + [1], [0x51, 0x61]]),
        list([[0x6F, 0x13] + greatest + [1]]), list([[0x4F, 0x13] + greatest + [1]]),
        list([[0xDF, 0x13] + [UInt8](repeating: 0xFF, count: 8) + [1], [0x51, 0x61]]),
        // Objects that are truncated, missing or of the wrong kind.
        list([[0x5F, 0x10, 0x7F]]), list([[0x5F, 0x09]]), list([[0x5F]]), list([[0x55, 0x61]]), list([[0x12, 1]]),
        list([[0x15]]), list([[0x24]]), list([[0x23, 1]]), list([[0x70]]), list([[0xC0]]), list([[0x0A]]),
        list([[0xF0]]),
        list([[0xA1, 5]]), list([[0xD1, 1, 7], [0x51, 0x61]]), list([[0xD1, 1], [0x51, 0x61]]),
        // Damaged trailers.
        list([[0x09]], top: 1), list([[0x09]], offsetSize: 0), list([[0x09]], offsetSize: 2), list([]),
        BinaryPropertyList.magic + [UInt8](repeating: 0xFF, count: 33), BinaryPropertyList.magic,
        Array(list([[0x09]]).dropLast()), Array("bplist01".utf8) + list([[0x09]]).dropFirst(8),
    ]

    @Test("A damaged binary property list throws", arguments: damagedLists)
    func damaged(bytes: [UInt8]) {
        let failure = #expect(throws: ConfigurationSyntax.Failure.self) { try read(bytes) }
        #expect(failure?.reason == .malformed("property list", "the binary data is damaged"))
    }

    @Test(
        "A key that is not text, or is repeated, is refused with the place of its dictionary",
        arguments: [
            ([[0xA1, 1], [0xD1, 2, 2], [0x10, 0x01]], .malformed("property list", "a key is not text")),
            ([[0xA1, 1], [0xD1, 2, 2], [0x61, 0xD8, 0x00]], .malformed("property list", "a key is not text")),
            ([[0xA1, 1], [0xD2, 2, 2, 3, 3], [0x51, 0x61], [0x09]], .repeatedKey("a", first: nil)),
            ([[0xA1, 1], [0xD2, 2, 3, 3, 3], [0x51, 0x61], [0x61, 0, 0x61]], .repeatedKey("a", first: nil)),
        ] as [([[UInt8]], ConfigurationSyntax.Failure.Reason)])
    func keys(objects: [[UInt8]], reason: ConfigurationSyntax.Failure.Reason) {
        let failure = #expect(throws: ConfigurationSyntax.Failure.self) { try read(Self.list(objects)) }
        #expect(failure == ConfigurationSyntax.Failure(reason, keyPath: "[0]"))
    }

    @Test("Lists that contain themselves and too many small values are refused")
    func bounded() {
        #expect(reason(Self.list([[0xA1, 0]])) == .tooDeep)
        #expect(reason(Self.list([[0xD1, 1, 0], [0x51, 0x61]])) == .tooDeep)
        let many = (1...5).map { [0xAE] + [UInt8](repeating: $0, count: 14) }
        #expect(reason(Self.list(many + [[0x51, 0x61]])) == .tooManyValues)
    }
}
