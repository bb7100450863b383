public import Foundation

/// Writes binary property lists with sorted keys, so that the same list has the same bytes in every process.
///
/// Foundation writes a dictionary in the order of the process's hashes.
public enum BinaryPropertyListWriter {
    /// Returns the bytes of a property list that `PropertyListSerialization` can read.
    ///
    /// The list may contain text, numbers, Booleans, lists and dictionaries.
    public static func data(_ list: Any) -> Data {
        var objects: [[UInt8]] = []
        let top = append(list, to: &objects)
        var data = Data("bplist00".utf8)
        var table = Data()
        for object in objects {
            table.append(contentsOf: big(data.count, 4))
            data.append(contentsOf: object)
        }
        let start = data.count
        data.append(table)
        data.append(contentsOf: [0, 0, 0, 0, 0, 0, 4, 2])
        for number in [objects.count, top, start] { data.append(contentsOf: big(number, 8)) }
        return data
    }

    /// Appends a value after all its elements, and returns its number.
    private static func append(_ value: Any, to objects: inout [[UInt8]]) -> Int {
        let bytes: [UInt8]
        switch value {
        case let text as String:
            bytes =
                text.utf8.allSatisfy { $0 < 0x80 }
                ? header(0x50, text.utf8.count) + text.utf8
                : header(0x60, text.utf16.count) + text.utf16.flatMap { big(Int($0), 2) }
        case let list as [Any]:
            bytes = header(0xA0, list.count) + list.flatMap { big(append($0, to: &objects), 2) }
        case let dictionary as [String: Any]:
            let entries = dictionary.sorted { $0.key < $1.key }
            let keys = entries.flatMap { big(append($0.key, to: &objects), 2) }
            bytes = header(0xD0, entries.count) + keys + entries.flatMap { big(append($0.value, to: &objects), 2) }
        case let number as NSNumber where String(cString: number.objCType) == "c":
            bytes = [number.boolValue ? 9 : 8]
        case let number as NSNumber where ["d", "f"].contains(String(cString: number.objCType)):
            bytes = [0x23] + big(Int(bitPattern: UInt(number.doubleValue.bitPattern)), 8)
        case let number as NSNumber: bytes = [0x13] + big(number.intValue, 8)
        default: bytes = [0]
        }
        objects.append(bytes)
        return objects.count - 1
    }

    private static func header(_ kind: UInt8, _ count: Int) -> [UInt8] {
        count < 15 ? [kind | UInt8(count)] : [kind | 15, 0x12] + big(count, 4)
    }

    private static func big(_ number: Int, _ size: Int) -> [UInt8] {
        (0..<size).reversed().map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }
}
