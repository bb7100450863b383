/// The fields of a database header that have one of a few values in every database.
///
/// Source: SQLite, "Database File Format", section 1.3.
package enum FixedHeaderFields {
    /// The number of bytes in a header.
    package static let length = 100
    /// The bytes that SQLite sets to zero.
    ///
    /// It reads files in which they have other values.
    package static let zeros = 72..<92

    /// Returns whether each of these fields has one of its values.
    ///
    /// The magic string and ``zeros`` are not examined. Random bytes pass with a probability of less than one in 2^100.
    ///
    /// - Parameter bytes: The header, ``length`` bytes or more.
    package static func areValid(_ bytes: [UInt8]) -> Bool {
        guard bytes.count >= length else { return false }
        let pageSize = pageSize(bytes)
        return (512...65_536).contains(pageSize) && pageSize & (pageSize - 1) == 0 && pageSize - Int(bytes[20]) >= 480
            && (1...2).contains(bytes[18]) && (1...2).contains(bytes[19])
            && bytes[21..<24].elementsEqual([64, 32, 32])
            // The schema format and the text encoding are 0 before the first table is created.
            && bytes[44..<47].allSatisfy { $0 == 0 } && bytes[47] <= 4
            && bytes[56..<59].allSatisfy { $0 == 0 } && bytes[59] <= 3
    }

    /// Returns the page size that a header states, in bytes.
    package static func pageSize(_ bytes: [UInt8]) -> Int {
        let size = Int(bytes[16]) << 8 | Int(bytes[17])
        return size == 1 ? 65_536 : size
    }
}
