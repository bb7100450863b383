package import CipherKeyProviders
public import CipherSQLite
package import CipherSystemFiles

/// How a database is encrypted, decrypted or given another key, and how long to wait for others.
public struct ConversionOptions: Sendable {
    /// The cipher format of the new file; by default the newest that the engine writes.
    public var format = CipherSettings()
    /// The collations that the schema uses, as the app registers them.
    public var collations: [Collation] = []
    /// The functions that the schema calls, as the app registers them.
    ///
    /// Rows are copied without them, too. An index that is filled anew from its rows needs those that it computes with.
    public var functions: [SQLFunction] = []
    /// The tokenizers of the schema's full-text tables, as the app registers them.
    ///
    /// Full-text tables are copied without them, too.
    public var tokenizers: [Tokenizer] = []
    /// Whether the plaintext file is kept beside the encrypted one as `NAME-plaintext`, or as `NAME-plaintext-2` and so
    /// on where something has that name.
    public var keepBackup = false
    /// How the copy is compared with the original.
    public var proof = ProofReader.records
    /// What becomes of a database whose indexes, free list or pointer map are damaged.
    public var onDamage = OnDamage.rebuildIndexes
    /// After how many conversions that did not end (a watchdog, a crash) the next throws `repeatedFailure`; `nil` for as
    /// many as it takes.
    ///
    /// The file is still as it was then.
    public var maximumAttempts: Int? = 5
    /// How long to wait for other connections to the same file.
    public var busyTimeout: Duration = .seconds(5)
    /// How long to wait for another upgrade of a database in the same directory, in this process or another.
    public var upgradeTimeout: Duration = .seconds(120)
    /// How long to wait for each answer of the key provider, which may have to ask the user.
    public var keyTimeout: Duration = .seconds(120)
    /// Whether a file that is missing is no error, but a database without tables.
    package var createsMissingFile = false
    package var progress: (@Sendable (UpgradeProgress) -> Void)?
    package var cancellation: UpgradeCancellation?

    /// The defaults.
    public init() {}

    /// What is registered on each connection.
    package var extensions: SQLExtensions {
        get { SQLExtensions(collations: collations, functions: functions, tokenizers: tokenizers) }
        set { (collations, functions, tokenizers) = (newValue.collations, newValue.functions, newValue.tokenizers) }
    }

    /// Looks at a file.
    ///
    /// - Parameter isAlone: Whether no other connection of this process is opened to the file meanwhile.
    package func inspector(_ paths: DatabasePaths, isAlone: Bool = false) -> Inspector {
        Inspector(paths, extensions: extensions, busyTimeout: busyTimeout, isAlone: isAlone)
    }

    /// A provider that is waited for no longer than that.
    package func waiting(for provider: any KeyProvider) -> any KeyProvider {
        TimeLimitedKeyProvider(provider, timeout: keyTimeout, cancellation: cancellation)
    }
}
