internal import CipherPageOpening
internal import CipherPrimitives
internal import CipherSQLite

/// Reports how the key and the format of a file differ from those that were passed.
extension Diagnostician {
    // MARK: The format

    mutating func addFormat(_ sealed: PageProbe.Sealed, _ derivation: KeySearch.Derivation?) {
        let seal = sealed.seal
        let given = options.format
        let headerSize = sealed.hasPlaintextHeader ? sealed.firstPageStart ?? 32 : 0
        if headerSize != 0, headerSize != 32 {
            diagnosis.add(
                .plaintextHeader, "the first \(headerSize) bytes of the file are not encrypted",
                "open the file with SQLCipher directly, using PRAGMA cipher_plaintext_header_size = \(headerSize)")
        }
        if !seal.isUsual {
            let mask = String(seal.saltMask, radix: 16)
            diagnosis.add(
                .hmacDetail, "the page HMACs are computed with settings that no SQLCipher format uses",
                "open the file with SQLCipher directly, using "
                    + [
                        seal.saltMask == PageSeal.usualMask
                            ? nil : "PRAGMA cipher_hmac_salt_mask = \"x'\(mask.count < 2 ? "0" : "")\(mask)'\"",
                        seal.isBigEndian ? "PRAGMA cipher_hmac_pgno = be" : nil,
                    ].compactMap { $0 }.joined(separator: " and "))
        }
        let nearest = CipherSettings.nearest(
            to: seal, rounds: derivation?.rounds, headerSize: headerSize == 32 ? 32 : 0, given: given)
        guard let format = nearest else {
            return diagnosis.add(
                .noHMAC, "the pages have no HMAC; the other settings are those of SQLCipher format 4",
                "open the file with SQLCipher directly, using PRAGMA cipher_use_hmac = OFF")
        }
        if seal.hmac == nil, !format.isEqual(to: given) {
            diagnosis.add(
                .noHMAC,
                "the pages have no HMAC, as in SQLCipher format 1, so anyone who can write the file can have changed "
                    + "its rows",
                "if you trust the file, open it with the reported format")
        }
        if seal.isUsual, headerSize == 0 || headerSize == 32 { diagnosis.format = format }
        addDifferences(format, given, isDerived: derivation != nil, hasHMAC: seal.hmac != nil)
    }

    private mutating func addDifferences(
        _ format: CipherSettings, _ given: CipherSettings, isDerived: Bool, hasHMAC: Bool
    ) {
        let isOther = format.compatibility != given.compatibility
        let base = isOther ? CipherSettings(compatibility: format.compatibility) : given
        let advice = "open the file with the reported format"
        if isOther {
            let engine = Engine.current
            diagnosis.add(
                .cipherFormat,
                "the file uses SQLCipher format \(format.compatibility), but format \(given.compatibility) "
                    + "was specified",
                format.compatibility > engine.defaultCompatibility
                    ? "use SQLCipher \(format.compatibility) or later; the linked version is \(engine.cipherVersion)"
                    : advice)
        }
        if format.pageSize != base.pageSize {
            diagnosis.add(
                .pageSize, "the page size of the file is \(format.pageSize) bytes, not \(base.pageSize)", advice)
        }
        if isDerived, format.kdfIterations != base.kdfIterations {
            diagnosis.add(
                .rounds,
                "the file's key is derived with \(format.kdfIterations) rounds of PBKDF2, not \(base.kdfIterations)",
                advice)
        }
        var algorithms: [String] = []
        if hasHMAC, format.hmacAlgorithm != base.hmacAlgorithm {
            algorithms.append(
                "the page HMACs are computed with \(format.hmacAlgorithm.rawValue), not \(base.hmacAlgorithm.rawValue)")
        }
        if hasHMAC || isDerived, format.kdfAlgorithm != base.kdfAlgorithm {
            algorithms.append(
                "the key is derived with \(format.kdfAlgorithm.rawValue), not \(base.kdfAlgorithm.rawValue)")
        }
        if !algorithms.isEmpty { diagnosis.add(.algorithm, algorithms.joined(separator: ", and "), advice) }
    }

    // MARK: The key

    mutating func addDeviations(_ reading: KeyReading) {
        for kind in reading.deviations {
            let (detail, advice) = Self.texts(kind, reading)
            diagnosis.add(kind, detail, reading.isTold ? advice : Self.untold)
        }
    }

    private static let untold =
        "CipherStore cannot use the file's passphrase, because the passphrase begins with x', as a raw key does: "
        + "pass the passphrase to sqlite3_key, and then change the file's key with sqlite3_rekey"

    private static func texts(_ kind: Diagnosis.Kind, _ reading: KeyReading) -> (detail: String, advice: String) {
        let bytes = reading.bytes
        switch kind {
        case .rawKeyNotPassphrase:
            return (
                "the file's key is a raw key, but it was passed as a passphrase",
                "pass the raw key as x'…' with \(reading.form == .rawWithSalt ? 96 : 64) hex digits"
            )
        case .passphraseNotRawKey:
            return (
                "the file's key is a passphrase, but it was passed as a raw key",
                "pass the text of the passphrase, not x'…'"
            )
        case .newline:
            return bytes.ends(with: [0x0a])
                ? (
                    "the file's passphrase ends with a "
                        + "\(bytes.ends(with: [0x0d, 0x0a]) ? "carriage return and a " : "")newline, but the given "
                        + "key does not",
                    "end the key file with this line ending and one more newline, because the last newline in a key "
                        + "file is ignored"
                )
                : (
                    "the given key ends with a newline that is not part of the file's passphrase",
                    "remove the newline"
                )
        case .nul:
            return bytes.last == 0
                ? (
                    "the file's passphrase ends with a NUL character, but the given key does not",
                    "add a NUL character to the end of the key"
                )
                : (
                    "the given key contains a NUL character that is not part of the file's passphrase",
                    "remove the NUL character and everything after it"
                )
        case .whitespace:
            let end = bytes.last == 0x20 ? "a space" : bytes.last == 0x09 ? "a tab" : nil
            return end.map {
                (
                    "the file's passphrase ends with \($0), but the given key does not",
                    "add \($0) to the end of the key"
                )
            } ?? (
                "the given key begins or ends with spaces or tabs that are not part of the file's key",
                "remove the spaces and tabs at both ends"
            )
        case .quotes:
            return bytes.unquoted() != nil
                ? (
                    "the file's passphrase is enclosed in quotes, but the given key is not",
                    "put \(bytes.last == 0x22 ? "double quotes (\")" : "single quotes (')") around the key"
                )
                : ("the given key is enclosed in quotes that are not part of the file's key", "remove the quotes")
        case .hexCase:
            return (
                "the given key and the file's passphrase differ only in the case of their hexadecimal digits",
                "write the hexadecimal digits of the key in \(bytes.lowercased() == bytes ? "lower" : "upper")case"
            )
        case .encodedKey:
            let advice =
                switch true {
                case reading.form != .passphrase: "pass the raw key in hexadecimal digits, as x'…'"
                case bytes.decodedHex() != nil: "pass the key as hexadecimal digits"
                case bytes.decodedBase64() != nil: "pass the key as base64"
                default: "pass the bytes that the given key represents, without encoding them"
                }
            return (
                "the given key and the file's key differ only in their encoding: one is the hexadecimal or base64 "
                    + "form of the other", advice
            )
        case .byteOrderMark:
            return bytes.starts(with: [0xef, 0xbb, 0xbf]) || bytes.starts(with: [0xff, 0xfe])
                || bytes.starts(with: [0xfe, 0xff])
                ? (
                    "the file's passphrase begins with a byte order mark, but the given key does not",
                    "CipherStore cannot use a key that begins with a byte order mark: pass this passphrase to "
                        + "sqlite3_key, and then change the file's key with sqlite3_rekey"
                )
                : (
                    "the given key begins with a byte order mark that is not part of the file's key",
                    "save the key without the byte order mark"
                )
        case .textEncoding:
            return (
                "the file's passphrase is the given key in another text encoding: \(reading.encoding.rawValue)",
                "save the key in this text encoding"
            )
        default: return ("", "")
        }
    }
}

extension KeyReading {
    /// Whether some text yields this key through ``CipherKey/init(text:)``.
    fileprivate var isTold: Bool { form != .passphrase || (try? CipherKey.passphrase(bytes)) != nil }
}

extension CipherSettings {
    /// Returns the settings that describe a seal with the fewest differences from a format; `nil` if no settings
    /// describe it.
    ///
    /// - Parameters:
    ///   - rounds: The number of rounds that derived the key from a passphrase; `nil` for a raw key.
    ///   - given: The settings that are preferred if they describe the seal.
    static func nearest(
        to seal: PageSeal, rounds: Int?, headerSize: Int, given: CipherSettings
    ) -> CipherSettings? {
        let formats = ([given.traits] + CipherFormat.all.reversed()).filter { ($0.hmac == nil) == (seal.hmac == nil) }
        let settings = formats.map(\.number).map { compatibility in
            let usual = CipherSettings(compatibility: compatibility)
            return CipherSettings(
                compatibility: compatibility, pageSize: seal.pageSize,
                // A raw key is not derived, so any number will do.
                kdfIterations: rounds
                    ?? (compatibility == given.compatibility ? given.kdfIterations : usual.kdfIterations),
                hmacAlgorithm: seal.hmac ?? usual.hmacAlgorithm,
                kdfAlgorithm: seal.hmac == nil && rounds == nil ? usual.kdfAlgorithm : seal.kdf,
                plaintextHeaderSize: headerSize)
        }.filter { $0.fault(newest: CipherFormat.newest.number) == nil }
        if let same = settings.first(where: { $0.isEqual(to: given) }) { return same }
        return settings.min { $0.differences < $1.differences }
    }

    /// Returns whether two settings differ in nothing but the plaintext header, which is visible in the file itself.
    fileprivate func isEqual(to other: CipherSettings) -> Bool {
        var same = self
        same.plaintextHeaderSize = other.plaintextHeaderSize
        return same == other
    }

    /// The number of settings that differ from the defaults of their format.
    fileprivate var differences: Int {
        let usual = CipherSettings(compatibility: compatibility)
        return [
            pageSize != usual.pageSize, kdfIterations != usual.kdfIterations, hmacAlgorithm != usual.hmacAlgorithm,
            kdfAlgorithm != usual.kdfAlgorithm,
        ].count { $0 }
    }
}
