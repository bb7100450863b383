internal import CipherPageOpening
internal import CipherPrimitives
internal import CipherSQLite

/// One way in which the text of a key may have been interpreted as the key of a file.
struct KeyReading {
    let form: CipherKey.Form
    /// The passphrase, or the 32 bytes of a raw key.
    let bytes: SecretBytes
    /// The salt that is part of a raw key; `nil` if there is none.
    var salt: [UInt8]?
    /// The differences between this reading and that of this library, ``CipherKey/init(text:)``; empty if there are
    /// none.
    let deviations: [Diagnosis.Kind]
    /// The text encoding of a passphrase.
    let encoding: TextEncoding

    /// The text encodings in which a passphrase may have become bytes.
    enum TextEncoding: String {
        case utf8 = "UTF-8"
        case utf16LittleEndian = "UTF-16, little-endian"
        case utf16BigEndian = "UTF-16, big-endian"
        case latin1 = "Latin-1"
        case modifiedUTF8 = "Java's modified UTF-8"
    }

    /// Returns every reading to try, beginning with the readings that have the fewest deviations.
    static func all(of text: SecretBytes) -> [KeyReading] {
        var list = KeyReadings(text)
        list.collect(text, [])
        return list.readings.enumerated()
            .sorted { ($0.element.deviations.count, $0.offset) < ($1.element.deviations.count, $1.offset) }
            .map(\.element)
    }
}

/// Collects the readings of one text.
private struct KeyReadings {
    private(set) var readings: [KeyReading] = []
    /// This library's reading of the text; `nil` if it refuses the text.
    private let given: CipherKey?

    private static let newline = UInt8(ascii: "\n")
    private static let mark: [UInt8] = [0xef, 0xbb, 0xbf]
    /// The different endings with which a passphrase may be stored.
    private static let endings: [(bytes: [UInt8], kind: Diagnosis.Kind?)] = [
        ([], nil), ([newline], .newline), ([0x0d, newline], .newline), ([0], .nul),
    ]

    init(_ text: SecretBytes) {
        given = try? CipherKey(text: text)
        guard let given else { return }
        if given.form == .passphrase {
            add(.passphrase, given.text, [])
        } else {
            add(given.form, given.rawBytes, salt: given.salt, [])
        }
    }

    mutating func collect(_ text: SecretBytes, _ kinds: [Diagnosis.Kind]) {
        if text.starts(with: Self.mark) {
            collect(text.part(from: Self.mark.count), kinds + [.byteOrderMark])
        } else if let decoded = text.decodedUTF16() {
            collect(decoded, kinds + [.textEncoding])
        }
        let (core, stripped) = text.strippingEnds()
        guard core.count > 0 else { return }
        let kinds = kinds + stripped.filter { !kinds.contains($0) }
        addBinary(text, kinds)
        addDigits(core, kinds)
        addPassphrases(core, kinds)
        // In C, a NUL ends a string.
        if let end = core.firstIndex(of: 0), end > 0 { add(.passphrase, core.part(from: 0, to: end), kinds + [.nul]) }
        addEncoded(core, kinds)
    }

    // MARK: Raw keys

    /// Adds a raw key.
    ///
    /// - Parameter isMeant: Whether the form of the text shows that it is a raw key.
    private mutating func addRaw(_ bytes: SecretBytes, isMeant: Bool = false, _ kinds: [Diagnosis.Kind]) {
        let kinds = isRawGiven || isMeant ? kinds : [.rawKeyNotPassphrase] + kinds
        let length = CipherKey.rawKeyLength
        switch bytes.count {
        case length: add(.raw, bytes, kinds)
        case length + CipherKey.saltLength:
            let (key, salt) = (bytes.part(from: 0, to: length), bytes.part(from: length))
            add(.rawWithSalt, key, salt: salt, kinds)
            add(.raw, key, kinds + [.keySalt])
        default: break
        }
    }

    private mutating func addBinary(_ text: SecretBytes, _ kinds: [Diagnosis.Kind]) {
        addRaw(text, kinds.filter { ![.newline, .nul, .whitespace].contains($0) })
        for ending in [1, 2] where text.count > ending && text.last == Self.newline {
            addRaw(text.part(from: 0, to: text.count - ending), kinds)
        }
    }

    private mutating func addDigits(_ core: SecretBytes, _ kinds: [Diagnosis.Kind]) {
        let (digits, wrapping) = core.unwrappingDigits()
        guard let bytes = digits.decodedHex() else { return }
        let isMeant = isRawGiven || wrapping == .rawKey
        addRaw(bytes, isMeant: isMeant, kinds)
        let asPassphrase = isMeant ? [.passphraseNotRawKey] + kinds : kinds
        let isOtherText = !isMeant && wrapping != nil
        for (text, changes) in [
            (digits, []), (digits.lowercased(), [Diagnosis.Kind.hexCase]), (digits.uppercased(), [.hexCase]),
        ] {
            let kinds = asPassphrase + (isOtherText ? [.quotes] : []) + changes
            add(endingsOf: text, kinds)
            // SQLCipher treats x'…' with more text after it, or with another number of digits, as a passphrase.
            add(endingsOf: SecretBytes.joined(["x'".utf8.secret, text, "'".utf8.secret]), kinds)
        }
        add(.passphrase, bytes, asPassphrase + [.encodedKey])
        if bytes.count == CipherKey.rawKeyLength { add(endingsOf: bytes.base64(), asPassphrase + [.encodedKey]) }
    }

    // MARK: Passphrases

    private mutating func addPassphrases(_ core: SecretBytes, _ kinds: [Diagnosis.Kind]) {
        add(endingsOf: core, isRawGiven ? [.passphraseNotRawKey] + kinds : kinds)
        guard !isRawGiven else { return }
        if let unquoted = core.unquoted() { add(endingsOf: unquoted, kinds + [.quotes]) }
        let marked = SecretBytes.joined([Self.mark.secret, core])
        add(.passphrase, marked, kinds + [.byteOrderMark])
        add(.passphrase, SecretBytes.joined([marked, [Self.newline].secret]), kinds + [.byteOrderMark, .newline])
        for isBigEndian in [false, true] {
            guard let encoded = core.encodedUTF16(isBigEndian: isBigEndian) else { continue }
            let newline: [UInt8] = isBigEndian ? [0, Self.newline] : [Self.newline, 0]
            let mark: [UInt8] = isBigEndian ? [0xfe, 0xff] : [0xff, 0xfe]
            let encoding: KeyReading.TextEncoding = isBigEndian ? .utf16BigEndian : .utf16LittleEndian
            let kinds = kinds + [.textEncoding]
            add(.passphrase, encoded, kinds, encoding)
            add(.passphrase, SecretBytes.joined([encoded, [0, 0].secret]), kinds + [.nul], encoding)
            add(.passphrase, SecretBytes.joined([encoded, newline.secret]), kinds + [.newline], encoding)
            add(.passphrase, SecretBytes.joined([mark.secret, encoded]), kinds + [.byteOrderMark], encoding)
        }
        if let other = core.latin1() {
            add(endingsOf: other, kinds + [.textEncoding], .latin1)
        } else if let other = core.fromLatin1() {
            add(endingsOf: other, kinds + [.textEncoding])
        }
        // SQLCipher for Android gets its passphrases from Java strings.
        if let other = core.modifiedUTF8() { add(endingsOf: other, kinds + [.textEncoding], .modifiedUTF8) }
        for quote in ["'", "\""] {
            add(.passphrase, SecretBytes.joined([quote.utf8.secret, core, quote.utf8.secret]), kinds + [.quotes])
        }
        for space in [" ", "\t"] {
            add(.passphrase, SecretBytes.joined([core, space.utf8.secret]), kinds + [.whitespace])
        }
    }

    private mutating func addEncoded(_ core: SecretBytes, _ kinds: [Diagnosis.Kind]) {
        guard let bytes = core.decodedBase64(), bytes.count >= 12 else { return }
        addRaw(bytes, kinds + [.encodedKey])
        add(.passphrase, bytes, kinds + [.encodedKey])
        // These may be the digits of a raw key that is stored as base64.
        if bytes.count == CipherKey.rawKeyLength { add(.passphrase, bytes.hex(), kinds + [.encodedKey]) }
    }

    private var isRawGiven: Bool { given.map { $0.form != .passphrase } ?? false }

    // MARK: The list

    private mutating func add(
        endingsOf text: SecretBytes, _ kinds: [Diagnosis.Kind], _ encoding: KeyReading.TextEncoding = .utf8
    ) {
        for ending in Self.endings {
            // A newline of the text may be the one with which the file's passphrase ends.
            let others = kinds.filter { $0 != ending.kind }
            add(
                .passphrase, SecretBytes.joined([text, ending.bytes.secret]),
                others + [ending.kind].compactMap { $0 }, encoding)
        }
    }

    private mutating func add(
        _ form: CipherKey.Form, _ bytes: SecretBytes, salt: SecretBytes? = nil, _ kinds: [Diagnosis.Kind],
        _ encoding: KeyReading.TextEncoding = .utf8
    ) {
        let salt = salt.map { $0.withUnsafeBytes { Array($0) } }
        let bytes = form == .passphrase ? bytes.asHMACKey : bytes
        guard bytes.count > 0, form != .passphrase || !bytes.isRawForm,
            !readings.contains(where: { $0.form == form && $0.salt == salt && $0.bytes == bytes })
        else { return }
        var unique: [Diagnosis.Kind] = []
        for kind in kinds where !unique.contains(kind) { unique.append(kind) }
        readings.append(
            KeyReading(form: form, bytes: bytes, salt: salt, deviations: unique, encoding: encoding))
    }
}
