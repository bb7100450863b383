import CipherSQLite

/// The key of one file, derived over its salt, with the format that it opens.
struct FileKey: Sendable {
    let key: CipherKey
    let settings: CipherSettings

    init(key: CipherKey, settings: CipherSettings) {
        self.key = key
        self.settings = settings
    }

    /// Derives a key over a salt.
    init(_ key: CipherKey, salt: SecretBytes, _ settings: CipherSettings) throws {
        self.init(key: try key.rawKey(salt: salt, settings: settings), settings: settings)
    }
}
