internal import CipherPrimitives
internal import CipherPageSealing
package import CipherSQLite

/// The key of one file, derived with its salt, and the format that it opens.
package struct FileKey: Sendable {
    package let key: CipherKey
    package let settings: CipherSettings
    private let mistakes: [KeyMistake]

    /// The warnings about a key that is probably a mistake.
    package var warnings: [String] { mistakes.map(\.description) }

    init(key: CipherKey, settings: CipherSettings) {
        self.init(key: key, settings: settings, mistakes: key.mistakes(settings))
    }

    private init(key: CipherKey, settings: CipherSettings, mistakes: [KeyMistake]) {
        self.key = key
        self.settings = settings
        self.mistakes = mistakes
    }

    /// Derives a key with a salt, or reuses it if this process already holds the key of the same file.
    init(_ key: CipherKey, salt: SecretBytes, _ settings: CipherSettings) throws {
        let derived = try DerivedKeys.inUse.rawKey(of: key, salt: salt, settings: settings)
        self.init(key: derived, settings: settings, mistakes: key.mistakes(settings))
    }
}

extension ConnectionProfile {
    /// Returns this profile with the key of a file, if it has one, and with an app's extensions.
    package func with(_ fileKey: FileKey?, _ extensions: SQLExtensions = SQLExtensions()) -> Self {
        with(key: fileKey?.key, format: fileKey?.settings ?? CipherSettings(), extensions: extensions)
    }
}
