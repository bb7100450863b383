/// A 64-bit FNV-1a checksum of strings, which protects against mistakes, not against forgery.
///
/// Source: Fowler, Noll and Vo, "The FNV Non-Cryptographic Hash Algorithm".
package struct Checksum {

    package init() {}

    private var state: UInt64 = 0xcbf2_9ce4_8422_2325

    /// Adds a string with its length, so that moving characters from one string to the next changes the checksum.
    package mutating func add(_ text: String) {
        add(Array(text.utf8))
    }

    /// Adds bytes with their count.
    mutating func add(_ bytes: [UInt8]) {
        for byte in Array("\(bytes.count):".utf8) + bytes {
            state = (state ^ UInt64(byte)) &* 0x100_0000_01b3
        }
    }

    /// The checksum as sixteen hexadecimal digits.
    package var text: String {
        let digits = String(state, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
