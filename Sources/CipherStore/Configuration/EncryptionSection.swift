internal import CipherConfigurationText
internal import CipherSQLite

extension Configuration.Encryption {
    private static let formatKeys = [
        "cipherCompatibility", "pageSize", "kdfIterations", "hmacAlgorithm", "kdfAlgorithm",
    ]

    /// Reads the `encryption` dictionary.
    init(_ node: ConfigurationNode, newestFormat: Int) throws {
        let section = try ConfigurationSection(
            node,
            keys: [
                "enabled", "sinceVersion", "unexpectedPlaintext", "whenDisabled", "plaintextHeaderSize",
                "formerFormats",
                "whenFormerFormat", "keepBackup", "when", "maximumAttempts", "onDamage", "onRepeatedFailure",
                "shadow",
            ] + Self.formatKeys)
        self.init(format: try Self.format(section, newest: newestFormat))
        if let value = section["enabled"] { isEnabled = try value.boolean() }
        if let value = section["sinceVersion"] { sinceVersion = try value.version() }
        if let value = section["unexpectedPlaintext"] { unexpectedPlaintext = try value.choice() }
        if let value = section["whenDisabled"] { whenDisabled = try value.choice() }
        if let value = section["plaintextHeaderSize"] {
            format.plaintextHeaderSize = try Self.headerSize(value, format: format.compatibility)
        }
        if let value = section["formerFormats"] {
            formerFormats = try value.elements().map { try Self.formerFormat($0, newest: newestFormat) }
        }
        if let value = section["whenFormerFormat"] { whenFormerFormat = try value.choice() }
        if let value = section["keepBackup"] { keepBackup = try value.boolean() }
        if let value = section["when"] { when = try value.choice() }
        if let value = section["onDamage"] { onDamage = try value.choice() }
        if let value = section["maximumAttempts"] {
            maximumAttempts = try value.wholeNumber(in: 1...Int(Int32.max))
        }
        if let value = section["onRepeatedFailure"] { onRepeatedFailure = try value.choice() }
        if let value = section["shadow"] { shadow = try value.boolean() }
    }

    private static func format(_ section: ConfigurationSection, newest: Int) throws -> CipherSettings {
        let compatibility =
            try section["cipherCompatibility"]?.wholeNumber(
                in: CipherFormat.written[0].number...CipherFormat.newest.number) ?? newest
        if let value = section["cipherCompatibility"], compatibility > newest {
            throw value.failure(
                "this SQLCipher library supports cipher formats up to \(newest)",
                advice: "link SQLCipher 4, or set cipherCompatibility to 3")
        }
        return try details(section, compatibility)
    }

    /// Reads a format of older versions: its number, or a dictionary of the keys that describe it.
    private static func formerFormat(_ node: ConfigurationNode, newest: Int) throws -> CipherSettings {
        if case .integer = node.value {
            return CipherSettings(compatibility: try node.wholeNumber(in: 1...newest))
        }
        let section = try ConfigurationSection(node, keys: formatKeys)
        return try details(section, try section.required("cipherCompatibility").wholeNumber(in: 1...newest))
    }

    /// Reads the settings that differ from the defaults of a format.
    private static func details(_ section: ConfigurationSection, _ compatibility: Int) throws -> CipherSettings {
        let settings = CipherSettings(
            compatibility: compatibility,
            pageSize: try section["pageSize"]?.wholeNumber(in: 512...65_536),
            kdfIterations: try section["kdfIterations"]?.wholeNumber(in: 1...Int(Int32.max)),
            hmacAlgorithm: try section["hmacAlgorithm"]?.choice(), kdfAlgorithm: try section["kdfAlgorithm"]?.choice())
        guard let fault = settings.fault(newest: compatibility) else { return settings }
        throw section.failure(fault)
    }

    private static func headerSize(_ node: ConfigurationNode, format: Int) throws -> Int {
        let size = try node.wholeNumber(in: 0...32)
        guard size == 0 || size == 32 else { throw node.failure(sentence: "\(node.subject) must be 0 or 32") }
        guard size == 0 || CipherFormat.numbered(format).canHaveReadableHeader else {
            throw node.failure(
                "a plaintext header requires cipher format 4, but new files have format \(format)",
                advice: "omit plaintextHeaderSize, or set cipherCompatibility to 4")
        }
        return size
    }
}
