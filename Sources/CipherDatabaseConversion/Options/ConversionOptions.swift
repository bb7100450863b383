package import CipherKeyProviders
public import CipherSQLite
package import CipherSystemFiles

/// The options for encrypting or decrypting a database or changing its key, including how long to wait for other
/// connections.
public struct ConversionOptions: Sendable {
    /// The cipher format of the new file.
    ///
    /// The default is the newest format that the engine writes.
    public var format = CipherSettings()
    /// The collations that the schema uses, as the app registers them.
    public var collations: [Collation] = []
    /// The functions that the schema calls, as the app registers them.
    ///
    /// Rows can be copied without them. An index that is rebuilt from its rows needs the functions that it uses.
    public var functions: [SQLFunction] = []
    /// The tokenizers of the schema's full-text tables, as the app registers them.
    ///
    /// Full-text tables can be copied without them.
    public var tokenizers: [Tokenizer] = []
    /// Whether the plaintext file is kept next to the encrypted one as `NAME-plaintext`, or as `NAME-plaintext-2` and
    /// so on if that name is taken.
    public var keepBackup = false
    /// How the copy is compared with the original.
    public var proof = ProofReader.records
    /// What to do with a database whose indexes, free list or pointer map are damaged.
    public var onDamage = OnDamage.rebuildIndexes
    /// The number of unfinished conversions, ended by a watchdog or a crash, after which the next one throws
    /// `repeatedFailure`; `nil` for no limit.
    ///
    /// The file is unchanged when this error is thrown.
    public var maximumAttempts: Int? = 5
    /// How long to wait for other connections to the same file.
    public var busyTimeout: Duration = .seconds(5)
    /// How long to wait for another upgrade of a database in the same directory, in this process or another.
    public var upgradeTimeout: Duration = .seconds(120)
    /// How long to wait for each response of the key provider, which may have to prompt the user.
    public var keyTimeout: Duration = .seconds(120)
    /// Whether a missing file is treated as a database without tables instead of an error.
    package var createsMissingFile = false
    package var progress: (@Sendable (UpgradeProgress) -> Void)?
    package var cancellation: UpgradeCancellation?

    /// Creates the default options.
    public init() {}

    /// The extensions that are registered on each connection.
    package var extensions: SQLExtensions {
        get { SQLExtensions(collations: collations, functions: functions, tokenizers: tokenizers) }
        set { (collations, functions, tokenizers) = (newValue.collations, newValue.functions, newValue.tokenizers) }
    }

    /// Returns an inspector for a file.
    ///
    /// - Parameter isAlone: Whether this process opens no other connection to the file meanwhile.
    package func inspector(_ paths: DatabasePaths, isAlone: Bool = false) -> Inspector {
        Inspector(paths, extensions: extensions, busyTimeout: busyTimeout, isAlone: isAlone)
    }

    /// Returns a provider that waits for each response no longer than ``keyTimeout``.
    package func waiting(for provider: any KeyProvider) -> any KeyProvider {
        TimeLimitedKeyProvider(provider, timeout: keyTimeout, cancellation: cancellation)
    }
}
