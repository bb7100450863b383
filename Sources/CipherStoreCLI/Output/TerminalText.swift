/// The formatting of text and numbers for a terminal.
package enum TerminalText {
    /// Returns the number of terminal columns that the text takes.
    static func width(_ text: String) -> Int {
        text.reduce(0) { $0 + (isWide($1) ? 2 : 1) }
    }

    /// Returns whether a character takes two columns, as ideographs, Hangul, full-width forms and most emoji do.
    ///
    /// Source: Unicode Standard Annex #11, "East Asian Width", by block.
    private static func isWide(_ character: Character) -> Bool {
        guard let first = character.unicodeScalars.first else { return false }
        return switch first.value {
        case 0x1100...0x115f, 0x2e80...0x303e, 0x3041...0xa4cf, 0xac00...0xd7a3, 0xf900...0xfaff, 0xfe30...0xfe6f,
            0xff00...0xff60, 0xffe0...0xffe6, 0x1f300...0x1f64f, 0x1f680...0x1f6ff, 0x1f900...0x1f9ff,
            0x20000...0x3fffd:
            true
        default: false
        }
    }

    /// Returns a number with its digits in groups of three.
    package static func grouped(_ number: some BinaryInteger) -> String {
        let digits = String(number.magnitude)
        var result = number < 0 ? "-" : ""
        for (index, digit) in digits.enumerated() {
            if index > 0, (digits.count - index).isMultiple(of: 3) { result += "," }
            result.append(digit)
        }
        return result
    }

    /// Returns a number with a fixed count of decimals.
    package static func decimal(_ number: Double, _ places: Int) -> String {
        let scale = (0..<places).reduce(1.0) { scale, _ in scale * 10 }
        let scaled = (abs(number) * scale).rounded()
        guard scaled < 1e15 else { return "\(number)" }
        let digits = String(Int64(scaled))
        let padded = String(repeating: "0", count: max(0, places + 1 - digits.count)) + digits
        let sign = number < 0 && scaled > 0 ? "-" : ""
        return sign + padded.dropLast(places) + (places > 0 ? "." + padded.suffix(places) : "")
    }

    /// Returns a number of bytes in a readable unit: 812 bytes, 8.2 KB, 433.1 MB, 12.0 GB.
    package static func size(_ bytes: some BinaryInteger) -> String {
        let units: [(Double, String)] = [(1e9, "GB"), (1e6, "MB"), (1e3, "KB")]
        guard let (unit, name) = units.first(where: { Double(bytes) >= $0.0 }) else {
            return bytes == 1 ? "1 byte" : "\(grouped(bytes)) bytes"
        }
        return "\(decimal(Double(bytes) / unit, 1)) \(name)"
    }
}
