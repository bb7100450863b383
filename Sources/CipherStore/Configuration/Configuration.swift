public import CipherDatabaseConversion
internal import CipherErrors
public import CipherHistory
public import CipherPriorSystems
public import CipherSQLite
public import CipherSchemaMigration
internal import CipherSystemFiles

/// The description of an app's database: name, version, encryption, and the source of the schema.
///
/// Written in Swift, or read from a property list or JSON file with ``init(contentsOf:)``.
public struct Configuration: Sendable {
    /// The file name of the database inside the app's directory: not a path.
    public var databaseName: String
    /// The version of the schema that the app wants: a whole number, or an app's version such as `1.10.0`.
    public var version: SchemaVersion
    /// Whether and how the file is encrypted.
    public var encryption: Encryption
    /// Where the version of a legacy file is recorded.
    public var recordedVersion: RecordedVersion
    /// The version of a legacy file that has tables and records none.
    ///
    /// By default a source that must know the version refuses such a file.
    public var assumedVersion: SchemaVersion?
    /// Where the wanted schema comes from.
    public var schema: SchemaSourceKind
    /// How to treat changes that would lose tables, columns or values.
    public var destructiveChanges: DestructiveChanges
    /// The app's own steps that may lose rows or values, by their names, such as `sql_update_3.plist`.
    ///
    /// If ``destructiveChanges`` is not `allow`, a migration in which any other step does is refused. The names are
    /// those of ``MigrationSteps/Update/name``, `baseline`, and `at the upgrade` for ``LaunchHooks/upgrade``.
    public var destructiveSteps: Set<String> = []
    /// The collations that the app's schema uses, as the app registers them.
    public var collations: [Collation]
    /// The app's own functions that its schema and its statements call.
    ///
    /// They are available on every connection of a store, and wherever its file is converted, migrated, planned or
    /// checked. A schema may call only those that are innocuous.
    public var functions: [SQLFunction] = []
    /// The app's own tokenizers that its full-text tables name.
    ///
    /// They are available wherever ``functions`` are.
    public var tokenizers: [Tokenizer] = []
    /// The form in which the store writes and reads dates and UUIDs.
    public var columnForms = ColumnForms()
    /// The app's hooks that run while its database is opened.
    public var launch = LaunchHooks()
    /// The file that it was read from, for errors.
    var file: String?

    /// A configuration in Swift.
    ///
    /// By default the version of a legacy file is read from where the app's former system kept it.
    public init(
        databaseName: String, version: SchemaVersion, encryption: Encryption = Encryption(),
        recordedVersion: RecordedVersion? = nil, schema: SchemaSourceKind = .none,
        destructiveChanges: DestructiveChanges = .withhold, collations: [Collation] = []
    ) {
        self.databaseName = databaseName
        self.version = version
        self.encryption = encryption
        self.recordedVersion = recordedVersion ?? schema.defaultRecordedVersion
        self.schema = schema
        self.destructiveChanges = destructiveChanges
        self.collations = collations
    }

    /// Whether and how the file is encrypted.
    public struct Encryption: Sendable, Equatable {
        /// The flag that toggles encryption.
        public var isEnabled: Bool
        /// The first version that never shipped in plaintext: a plaintext file below it is a legacy one.
        ///
        /// Without it, every plaintext file that CipherStore has neither created nor encrypted before is a legacy file.
        public var sinceVersion: SchemaVersion?
        /// What to do with a plaintext file that is not a legacy file.
        public var unexpectedPlaintext: UnexpectedPlaintext
        /// What to do with an encrypted file when encryption is off.
        public var whenDisabled: WhenDisabled
        /// The cipher format; by default the newest that the engine writes.
        public var format: CipherSettings
        /// The formats that files of older versions of the app have; none by default.
        ///
        /// A file that does not open in ``format`` is tried in these, in order. For a passphrase each try is one key
        /// derivation.
        public var formerFormats: [CipherSettings]
        /// What to do with a file in one of ``formerFormats``.
        public var whenFormerFormat: WhenFormerFormat
        /// Whether the plaintext file is kept beside the encrypted one as `NAME-plaintext`, or as `NAME-plaintext-2` and so
        /// on where something has that name.
        ///
        /// Each upgrade keeps one, and none is ever replaced or removed.
        public var keepBackup: Bool
        /// How to treat damage to indexes, the free list or the pointer map of a file that is converted.
        public var onDamage = OnDamage.rebuildIndexes
        /// When a legacy file is encrypted.
        public var when = EncryptionTime.beforeOpening
        /// The number of upgrades, decryptions or key changes that did not end (a watchdog, a crash) after which
        /// ``onRepeatedFailure`` applies.
        public var maximumAttempts: Int
        /// What happens after the last attempt.
        public var onRepeatedFailure: OnRepeatedFailure
        /// Whether each launch rehearses the encryption of its plaintext file while encryption is off.
        ///
        /// The encrypted copy is built, compared and discarded, and ``OpenReport/shadow`` has the result: the first
        /// step of a staged roll-out. It takes as long as the upgrade, and the key provider is called as for the
        /// upgrade.
        public var shadow = false

        /// Encryption that is on, with the defaults.
        public init(
            isEnabled: Bool = true, sinceVersion: SchemaVersion? = nil,
            unexpectedPlaintext: UnexpectedPlaintext = .refuse, whenDisabled: WhenDisabled = .refuse,
            format: CipherSettings = CipherSettings(), formerFormats: [CipherSettings] = [],
            whenFormerFormat: WhenFormerFormat = .open, keepBackup: Bool = false, maximumAttempts: Int = 5,
            onRepeatedFailure: OnRepeatedFailure = .refuse
        ) {
            self.isEnabled = isEnabled
            self.sinceVersion = sinceVersion
            self.unexpectedPlaintext = unexpectedPlaintext
            self.whenDisabled = whenDisabled
            self.format = format
            self.formerFormats = formerFormats
            self.whenFormerFormat = whenFormerFormat
            self.keepBackup = keepBackup
            self.maximumAttempts = maximumAttempts
            self.onRepeatedFailure = onRepeatedFailure
        }

        /// Every format that a file may have, the wanted one first.
        var formats: [CipherSettings] { [format] + formerFormats.filter { $0 != format } }
    }

    /// What to do with a plaintext file that claims a version at which the app encrypts.
    public enum UnexpectedPlaintext: String, Sendable, CaseIterable {
        /// An error with the code `unexpectedPlaintext`.
        case refuse
        /// It is encrypted as a legacy file is.
        case encrypt
    }

    /// When a legacy file is encrypted.
    public enum EncryptionTime: String, Sendable, CaseIterable {
        /// Before the store opens: opening takes as long as the encryption.
        case beforeOpening
        /// While the store is open, on a thread in the background: ``EncryptedStore/conversion``.
        case whileOpen
    }

    /// What to do with an encrypted file when encryption is off.
    public enum WhenDisabled: String, Sendable, CaseIterable {
        /// An error with the code `encryptionDisabled`.
        case refuse
        /// It is decrypted in place, by the same steps as it was encrypted.
        case decrypt
    }

    /// What to do with a file in a former cipher format.
    public enum WhenFormerFormat: String, Sendable, CaseIterable {
        /// It is opened and keeps its format.
        case open
        /// It is converted to the wanted format, with the same crash safety and proof as an encryption.
        case upgrade
    }

    /// What happens after an upgrade has failed to end several times in a row.
    public enum OnRepeatedFailure: String, Sendable, CaseIterable {
        /// An error with the code `repeatedFailure`.
        case refuse
        /// The plaintext file is opened as it is, with a warning in the report.
        case openPlaintext
    }

    /// Where the wanted schema comes from.
    public enum SchemaSourceKind: Sendable {
        /// The app manages its schema itself.
        case none
        /// Tables declared with their columns.
        case tables([DeclaredTable])
        /// Steps from version to version.
        case steps(MigrationSteps)
        /// A database of the wanted shape that the app ships.
        case template(SchemaTemplate)
        /// Tables with a version each.
        case tableVersions([VersionedTable])
    }
}

extension Configuration {
    /// What is registered on each connection.
    package var extensions: SQLExtensions {
        SQLExtensions(collations: collations, functions: functions, tokenizers: tokenizers)
    }

    /// The name of the database.
    ///
    /// - Throws: ``StoreError`` with `configuration` for one that would leave the app's directory.
    package func checkedName() throws -> String {
        if let fault = FileName.fault(of: databaseName) {
            throw StoreError(
                .configuration, path: databaseName, "the database's name \(fault)",
                advice: "give only the file name, and its folder as the directory", changed: .nothing)
        }
        return databaseName
    }
}
