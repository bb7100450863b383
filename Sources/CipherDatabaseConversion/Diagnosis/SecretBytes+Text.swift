internal import CipherPageOpening
internal import CipherPrimitives
internal import CipherSQLite

/// Converts the texts of keys to other forms, and leaves none of them in memory.
extension SecretBytes {
    static func joined(_ parts: [SecretBytes]) -> SecretBytes {
        SecretBytes(count: parts.reduce(0) { $0 + $1.count }) { buffer in
            var position = 0
            for part in parts {
                part.withUnsafeBytes {
                    UnsafeMutableRawBufferPointer(rebasing: buffer[position...]).copyMemory(from: $0)
                }
                position += part.count
            }
        }
    }

    func part(from start: Int, to end: Int? = nil) -> SecretBytes {
        withUnsafeBytes { SecretBytes($0[start..<(end ?? count)]) }
    }

    var last: UInt8? { withUnsafeBytes(\.last) }

    func firstIndex(of byte: UInt8) -> Int? { withUnsafeBytes { $0.firstIndex(of: byte) } }

    func starts(with bytes: [UInt8]) -> Bool { withUnsafeBytes { $0.starts(with: bytes) } }

    func ends(with bytes: [UInt8]) -> Bool { withUnsafeBytes { $0.reversed().starts(with: bytes.reversed()) } }

    private func mapped(_ transform: (UInt8) -> UInt8) -> SecretBytes {
        withUnsafeBytes { bytes in
            SecretBytes(count: count) { buffer in for index in 0..<count { buffer[index] = transform(bytes[index]) } }
        }
    }

    // MARK: The ends and the wrapping of a text

    /// Returns the text without white space and NULs at its ends, and the kinds of characters that were removed besides
    /// the one newline of a key file.
    func strippingEnds() -> (core: SecretBytes, kinds: [Diagnosis.Kind]) {
        withUnsafeBytes { bytes in
            let isPadding: (UInt8) -> Bool = { [0x20, 0x09, 0x0a, 0x0d, 0].contains($0) }
            var end = bytes.count
            if end > 0, bytes[end - 1] == 0x0a { end -= 1 + (end > 1 && bytes[end - 2] == 0x0d ? 1 : 0) }
            var (first, last) = (0, end)
            while first < last, isPadding(bytes[first]) { first += 1 }
            while last > first, isPadding(bytes[last - 1]) { last -= 1 }
            let removed = Array(bytes[..<first]) + Array(bytes[last..<end])
            var kinds: [Diagnosis.Kind] = []
            if removed.contains(0) { kinds.append(.nul) }
            if removed.contains(0x0a) || removed.contains(0x0d) { kinds.append(.newline) }
            if removed.contains(0x20) || removed.contains(0x09) { kinds.append(.whitespace) }
            return (SecretBytes(bytes[first..<last]), kinds)
        }
    }

    /// Returns the text between two matching quotes.
    func unquoted() -> SecretBytes? {
        guard count > 2, let last, [0x22, 0x27].contains(last), starts(with: [last]) else { return nil }
        return part(from: 1, to: count - 1)
    }

    /// The possible wrappings of digits: quotes, `x'…'`, or the prefix `0x`.
    enum Wrapping { case quotes, rawKey, number }

    /// Returns the digits in `x'…'`, `0x…` or quotes, and their wrapping; the whole text if there is no wrapping.
    func unwrappingDigits() -> (digits: SecretBytes, wrapping: Wrapping?) {
        if let unquoted = unquoted() { return (unquoted, .quotes) }
        guard count > 3 else { return (self, nil) }
        let isHexPrefix = withUnsafeBytes { $0[0] | 0x20 == UInt8(ascii: "x") }
        if isHexPrefix, let inner = part(from: 1).unquoted() {
            return (inner, last == UInt8(ascii: "'") ? .rawKey : .quotes)
        }
        if starts(with: Array("0x".utf8)) || starts(with: Array("0X".utf8)) { return (part(from: 2), .number) }
        return (self, nil)
    }

    /// Whether SQLCipher treats the bytes as a raw key, wherever they come from.
    ///
    /// Source: SQLCipher, `sqlcipher_cipher_ctx_key_derive`.
    var isRawForm: Bool {
        guard [67, 99].contains(count) else { return false }
        let (digits, wrapping) = unwrappingDigits()
        return wrapping == .rawKey && last == UInt8(ascii: "'") && digits.decodedHex() != nil
    }

    /// The passphrase without the NULs at its end, if they do not change the key: an HMAC pads its key with NULs to the
    /// 64 bytes of a block.
    ///
    /// Source: RFC 2104, section 2.
    var asHMACKey: SecretBytes {
        withUnsafeBytes { bytes in
            guard count <= 64, let end = bytes.lastIndex(where: { $0 != 0 }), end < count - 1 else { return self }
            let shorter = part(from: 0, to: end + 1)
            return shorter.isRawForm ? self : shorter
        }
    }

    // MARK: Digits

    func lowercased() -> SecretBytes { mapped { (0x41...0x5a).contains($0) ? $0 | 0x20 : $0 } }
    func uppercased() -> SecretBytes { mapped { (0x61...0x7a).contains($0) ? $0 & ~0x20 : $0 } }

    /// Returns the bytes that hexadecimal digits represent.
    func decodedHex() -> SecretBytes? {
        withUnsafeBytes { bytes in
            guard count >= 2, count.isMultiple(of: 2), bytes.allSatisfy({ Self.value(ofHex: $0) != nil }) else {
                return nil
            }
            return SecretBytes(count: count / 2) { buffer in
                for index in 0..<buffer.count {
                    buffer[index] =
                        (Self.value(ofHex: bytes[2 * index]) ?? 0) << 4 | (Self.value(ofHex: bytes[2 * index + 1]) ?? 0)
                }
            }
        }
    }

    /// Returns the bytes as hexadecimal digits.
    func hex() -> SecretBytes {
        let digits = Array("0123456789abcdef".utf8)
        return withUnsafeBytes { bytes in
            SecretBytes(count: 2 * count) { buffer in
                for index in 0..<count {
                    buffer[2 * index] = digits[Int(bytes[index] >> 4)]
                    buffer[2 * index + 1] = digits[Int(bytes[index] & 15)]
                }
            }
        }
    }

    private static func value(ofHex digit: UInt8) -> UInt8? {
        Character(UnicodeScalar(digit)).isASCII
            ? Character(UnicodeScalar(digit)).hexDigitValue.map(UInt8.init) : nil
    }

    /// Source: RFC 4648, sections 4 and 5.
    private static let base64Digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    func decodedBase64() -> SecretBytes? {
        withUnsafeBytes { bytes in
            let end = bytes.firstIndex(of: UInt8(ascii: "=")) ?? count
            guard end > 0, end % 4 != 1, count - end <= 2,
                bytes[end...].allSatisfy({ $0 == UInt8(ascii: "=") })
            else { return nil }
            var isWhole = true
            let decoded = SecretBytes(count: end * 6 / 8) { buffer in
                var (bits, held, position) = (UInt32(0), 0, 0)
                for byte in bytes[..<end] {
                    let digit = byte == UInt8(ascii: "-") ? UInt8(ascii: "+") : byte == UInt8(ascii: "_") ? 0x2f : byte
                    guard let value = Self.base64Digits.firstIndex(of: digit) else { return isWhole = false }
                    bits = bits << 6 | UInt32(value)
                    held += 6
                    if held >= 8, position < buffer.count {
                        held -= 8
                        buffer[position] = UInt8(truncatingIfNeeded: bits >> held)
                        position += 1
                    }
                }
            }
            return isWhole ? decoded : nil
        }
    }

    func base64() -> SecretBytes {
        withUnsafeBytes { bytes in
            SecretBytes(count: (count + 2) / 3 * 4) { buffer in
                for group in 0..<(count + 2) / 3 {
                    let part = (0..<3).map { 3 * group + $0 < count ? UInt32(bytes[3 * group + $0]) : 0 }
                    let bits = part[0] << 16 | part[1] << 8 | part[2]
                    for digit in 0..<4 {
                        let isPadding = 3 * group + digit > count
                        buffer[4 * group + digit] =
                            isPadding ? UInt8(ascii: "=") : Self.base64Digits[Int(bits >> (18 - 6 * digit) & 63)]
                    }
                }
            }
        }
    }

    // MARK: Encodings

    /// Converts UTF-16 to UTF-8, if a byte order mark or the NULs between the letters identify it as UTF-16.
    func decodedUTF16() -> SecretBytes? {
        withUnsafeBytes { bytes in
            guard count >= 4, count.isMultiple(of: 2) else { return nil }
            let isMarked = [[0xff, 0xfe], [0xfe, 0xff]].contains { bytes.starts(with: $0 as [UInt8]) }
            let nulls: [Int] = (0..<count).filter { bytes[$0] == 0 }
            let isBigEndian = isMarked ? bytes[0] == 0xfe : nulls.allSatisfy { $0.isMultiple(of: 2) }
            let hasHalf = nulls.count * 2 == count && Set(nulls.map { $0 % 2 }).count == 1
            guard isMarked || hasHalf else { return nil }
            let units = stride(from: isMarked ? 2 : 0, to: count, by: 2).lazy.map { (offset: Int) -> UInt16 in
                let (first, second) = (UInt16(bytes[offset]), UInt16(bytes[offset + 1]))
                return isBigEndian ? first << 8 | second : second << 8 | first
            }
            return Self.collecting(most: 3 * count) { take in
                !transcode(
                    units.makeIterator(), from: UTF16.self, to: UTF8.self, stoppingOnError: true, into: take)
            }
        }
    }

    /// Converts UTF-8 to UTF-16, without a byte order mark.
    func encodedUTF16(isBigEndian: Bool) -> SecretBytes? {
        withUnsafeBytes { bytes in
            Self.collecting(most: 4 * count) { take in
                !transcode(bytes.makeIterator(), from: UTF8.self, to: UTF16.self, stoppingOnError: true) { unit in
                    let (high, low) = (UInt8(unit >> 8), UInt8(truncatingIfNeeded: unit))
                    take(isBigEndian ? high : low)
                    take(isBigEndian ? low : high)
                }
            }
        }
    }

    /// Converts UTF-8 to Latin-1; `nil` if the result is the same text, or the conversion is impossible.
    func latin1() -> SecretBytes? {
        guard withUnsafeBytes({ $0.contains { $0 >= 0x80 } }) else { return nil }
        return withUnsafeBytes { bytes in
            Self.collecting(most: count) { take in
                var fits = true
                let failed = transcode(
                    bytes.makeIterator(), from: UTF8.self, to: UTF32.self, stoppingOnError: true
                ) { unit in
                    if unit > 0xff { fits = false } else { take(UInt8(unit)) }
                }
                return fits && !failed
            }
        }
    }

    /// Converts Latin-1 to UTF-8; `nil` if the result is the same text.
    func fromLatin1() -> SecretBytes? {
        guard withUnsafeBytes({ $0.contains { $0 >= 0x80 } }) else { return nil }
        return withUnsafeBytes { bytes in
            Self.collecting(most: 2 * count) { take in
                for byte in bytes { for unit in String(UnicodeScalar(byte)).utf8 { take(unit) } }
                return true
            }
        }
    }

    /// Converts UTF-8 to Java's modified UTF-8, in which NUL has two bytes, and a character beyond U+FFFF six; `nil` if
    /// the result is the same text, or the conversion is impossible.
    ///
    /// Source: Java Virtual Machine Specification, section 4.4.7.
    func modifiedUTF8() -> SecretBytes? {
        withUnsafeBytes { bytes in
            guard bytes.contains(where: { $0 == 0 || $0 >= 0xf0 }) else { return nil }
            return Self.collecting(most: 2 * count) { take in
                !transcode(bytes.makeIterator(), from: UTF8.self, to: UTF16.self, stoppingOnError: true) { unit in
                    func tail(_ shift: UInt16) -> UInt8 { 0x80 | UInt8(truncatingIfNeeded: unit >> shift) & 0x3f }
                    switch unit {
                    case 1..<0x80: take(UInt8(unit))
                    case ..<0x800:
                        take(0xc0 | UInt8(unit >> 6))
                        take(tail(0))
                    default:
                        take(0xe0 | UInt8(unit >> 12))
                        take(tail(6))
                        take(tail(0))
                    }
                }
            }
        }
    }

    /// Collects the bytes that `body` passes one by one; `nil` if `body` returns `false`.
    private static func collecting(most: Int, _ body: ((UInt8) -> Void) -> Bool) -> SecretBytes? {
        var (length, isWhole) = (0, false)
        let all = SecretBytes(count: most) { buffer in
            isWhole = body { byte in
                guard length < buffer.count else { return }
                buffer[length] = byte
                length += 1
            }
        }
        return isWhole ? all.part(from: 0, to: length) : nil
    }
}

extension Sequence where Element == UInt8 {
    /// A copy of bytes that are not secret themselves.
    var secret: SecretBytes { SecretBytes(Array(self)) }
}
