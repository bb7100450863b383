extension Configuration.Encryption {
    /// Reads the `encryption` dictionary.
    init(_ node: ConfigurationNode, newestFormat: Int) throws {
        let section = try ConfigurationSection(
            node,
            keys: [
                "enabled", "sinceVersion", "unexpectedPlaintext", "whenDisabled", "cipherCompatibility",
                "plaintextHeaderSize", "keepBackup", "maximumAttempts", "onRepeatedFailure", "shadow",
            ])
        self.init()
        if let value = section["enabled"] { isEnabled = try value.boolean() }
        if let value = section["sinceVersion"] { sinceVersion = try value.version() }
        if let value = section["unexpectedPlaintext"] { unexpectedPlaintext = try value.choice() }
        if let value = section["whenDisabled"] { whenDisabled = try value.choice() }
        if let value = section["cipherCompatibility"] {
            cipherCompatibility = try Self.format(value, newest: newestFormat)
        }
        if let value = section["plaintextHeaderSize"] {
            plaintextHeaderSize = try Self.headerSize(value, format: cipherCompatibility ?? newestFormat)
        }
        if let value = section["keepBackup"] { keepBackup = try value.boolean() }
        if let value = section["maximumAttempts"] {
            maximumAttempts = try value.wholeNumber(in: 1...Int(Int32.max))
        }
        if let value = section["onRepeatedFailure"] { onRepeatedFailure = try value.choice() }
        if let value = section["shadow"] { shadow = try value.boolean() }
    }

    private static func format(_ node: ConfigurationNode, newest: Int) throws -> Int {
        let format = try node.wholeNumber(in: 3...4)
        guard format <= newest else {
            throw node.failure(
                "this SQLCipher library writes formats up to \(newest)", advice: "link SQLCipher 4 or write 3")
        }
        return format
    }

    private static func headerSize(_ node: ConfigurationNode, format: Int) throws -> Int {
        let size = try node.wholeNumber(in: 0...32)
        guard size == 0 || size == 32 else { throw node.failure("must be 0 or 32") }
        guard size == 0 || format >= 4 else {
            throw node.failure(
                "a readable header needs cipher format 4, and new files have format \(format)",
                advice: "leave it out, or set cipherCompatibility to 4")
        }
        return size
    }
}
