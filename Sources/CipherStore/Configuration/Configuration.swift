public import CipherDatabaseConversion
internal import CipherErrors
public import CipherHistory
public import CipherPriorSystems
public import CipherSQLite
public import CipherSchemaMigration
internal import CipherSystemFiles

/// The description of an app's database: name, version, encryption, and the source of the schema.
///
/// A configuration is written in Swift, or read from a property list or JSON file with ``init(contentsOf:)``.
public struct Configuration: Sendable {
    /// The file name of the database inside the app's directory, not a path.
    public var databaseName: String
    /// The version of the schema that the app requires: a whole number, or a dotted version such as
    /// `SchemaVersion("1.10.0")!`.
    public var version: SchemaVersion
    /// Whether and how the file is encrypted.
    public var encryption: Encryption
    /// The place where the version of a legacy file is recorded.
    public var recordedVersion: RecordedVersion
    /// The version of a legacy file that has tables but no recorded version.
    ///
    /// By default, such a file is refused if the schema source requires the version.
    public var assumedVersion: SchemaVersion?
    /// The source of the target schema.
    public var schema: SchemaSourceKind
    /// How to treat changes that would lose tables, columns or values.
    public var destructiveChanges: DestructiveChanges
    /// The names of the app's own steps that may lose rows or values, such as `sql_update_3.plist`.
    ///
    /// If ``destructiveChanges`` is not `allow`, a migration is refused if any other step loses rows or values. The
    /// names are those of ``MigrationSteps/Update/name``, `baseline`, and `at the upgrade` for ``LaunchHooks/upgrade``.
    public var destructiveSteps: Set<String>
    /// The collations that the app's schema uses, as the app registers them.
    public var collations: [Collation]
    /// The app's own functions that its schema and its statements call.
    ///
    /// They are available on every connection of a store, and wherever its file is converted, migrated, planned or
    /// checked. A schema may call only those that are innocuous.
    public var functions: [SQLFunction]
    /// Whether the databases of other accounts may be in the same folder.
    package var sharesFolder = false
    /// The app's own tokenizers that its full-text tables use.
    ///
    /// They are available wherever ``functions`` are.
    public var tokenizers: [Tokenizer]
    /// The form in which the store writes and reads dates and UUIDs.
    public var columnForms: ColumnForms
    /// The app's hooks that run while its database is opened.
    public var launch: LaunchHooks
    /// The file from which the configuration was read, used in errors; `nil` if there is none.
    var file: String?

    /// Creates a configuration.
    ///
    /// By default, the version of a legacy file is read from where the app's former system recorded it.
    public init(
        databaseName: String, version: SchemaVersion, encryption: Encryption = Encryption(),
        recordedVersion: RecordedVersion? = nil, assumedVersion: SchemaVersion? = nil,
        schema: SchemaSourceKind = .none, destructiveChanges: DestructiveChanges = .withhold,
        destructiveSteps: Set<String> = [], collations: [Collation] = [], functions: [SQLFunction] = [],
        tokenizers: [Tokenizer] = [], columnForms: ColumnForms = ColumnForms(), launch: LaunchHooks = LaunchHooks()
    ) {
        self.databaseName = databaseName
        self.version = version
        self.encryption = encryption
        self.recordedVersion = recordedVersion ?? schema.defaultRecordedVersion
        self.assumedVersion = assumedVersion
        self.schema = schema
        self.destructiveChanges = destructiveChanges
        self.destructiveSteps = destructiveSteps
        self.collations = collations
        self.functions = functions
        self.tokenizers = tokenizers
        self.columnForms = columnForms
        self.launch = launch
    }

    /// Whether and how the file is encrypted.
    public struct Encryption: Sendable, Equatable {
        /// Whether encryption is on.
        public var isEnabled: Bool
        /// The first version that never shipped in plaintext: a plaintext file of an earlier version is a legacy file.
        ///
        /// If this is `nil`, every plaintext file is a legacy file unless the last entry in its history records it as
        /// encrypted. In both cases, a file that CipherStore has opened in plaintext, for example while encryption was
        /// off, is a legacy file.
        public var sinceVersion: SchemaVersion?
        /// What to do with a plaintext file that is not a legacy file.
        public var unexpectedPlaintext: UnexpectedPlaintext
        /// What to do with an encrypted file when encryption is off.
        public var whenDisabled: WhenDisabled
        /// The cipher format; by default the newest that the engine can write.
        public var format: CipherSettings
        /// The cipher formats of files written by older versions of the app; none by default.
        ///
        /// If a file does not open in ``format``, these are tried in order. For a passphrase, each attempt requires one
        /// key derivation. Files in format 1 have no HMACs: as long as that format is listed, anyone who can write to the
        /// folder can put such a file in the place of any other. The report of the opening contains a warning.
        public var formerFormats: [CipherSettings]
        /// What to do with a file in one of ``formerFormats``.
        public var whenFormerFormat: WhenFormerFormat
        /// Whether the plaintext file is kept next to the encrypted one as `NAME-plaintext`, or as `NAME-plaintext-2`
        /// and so on if that name is taken.
        ///
        /// Each upgrade keeps its own backup, and no backup is ever replaced or removed.
        public var keepBackup: Bool
        /// How to treat damage in a file that is converted.
        public var onDamage: OnDamage
        /// When a legacy file is encrypted.
        public var when: EncryptionTime
        /// The number of upgrades ended by a watchdog or a crash after which ``onRepeatedFailure`` applies.
        ///
        /// After that many unfinished decryptions or key changes, the encrypted file is opened as it is, with a
        /// warning. Shadow proofs, and the last steps of encryptions while the store is open, are counted separately.
        public var maximumAttempts: Int
        /// What to do after the last attempt; ignored if ``when`` is ``EncryptionTime/whileOpen``, because the app then
        /// uses the plaintext file anyway.
        public var onRepeatedFailure: OnRepeatedFailure
        /// Whether each launch rehearses the encryption of its plaintext file while encryption is off.
        ///
        /// The encrypted copy is built, compared and discarded, and ``OpenReport/shadow`` contains the result. This is
        /// the first step of a staged roll-out. It takes as long as the upgrade, and the key provider is called as for
        /// the upgrade.
        public var shadow: Bool

        /// Creates settings; by default, encryption is on and happens before the store opens.
        public init(
            isEnabled: Bool = true, sinceVersion: SchemaVersion? = nil,
            unexpectedPlaintext: UnexpectedPlaintext = .refuse, whenDisabled: WhenDisabled = .refuse,
            format: CipherSettings = CipherSettings(), formerFormats: [CipherSettings] = [],
            whenFormerFormat: WhenFormerFormat = .open, keepBackup: Bool = false,
            onDamage: OnDamage = .rebuildIndexes, when: EncryptionTime = .beforeOpening, maximumAttempts: Int = 5,
            onRepeatedFailure: OnRepeatedFailure = .refuse, shadow: Bool = false
        ) {
            self.isEnabled = isEnabled
            self.sinceVersion = sinceVersion
            self.unexpectedPlaintext = unexpectedPlaintext
            self.whenDisabled = whenDisabled
            self.format = format
            self.formerFormats = formerFormats
            self.whenFormerFormat = whenFormerFormat
            self.keepBackup = keepBackup
            self.onDamage = onDamage
            self.when = when
            self.maximumAttempts = maximumAttempts
            self.onRepeatedFailure = onRepeatedFailure
            self.shadow = shadow
        }

        /// Every format that a file may have, starting with the target format.
        package var formats: [CipherSettings] { [format] + formerFormats.filter { $0 != format } }
    }

    /// What to do with a plaintext file that records a version at which the app encrypts.
    public enum UnexpectedPlaintext: String, Sendable, CaseIterable {
        /// Throw an error with the code `unexpectedPlaintext`.
        case refuse
        /// Encrypt it like a legacy file.
        case encrypt
    }

    /// When a legacy file is encrypted.
    public enum EncryptionTime: String, Sendable, CaseIterable {
        /// Before the store opens: opening takes as long as the encryption.
        case beforeOpening
        /// While the store is open, on a background thread; see ``EncryptedStore/conversion``.
        case whileOpen
    }

    /// What to do with an encrypted file when encryption is off.
    public enum WhenDisabled: String, Sendable, CaseIterable {
        /// Throw an error with the code `encryptionDisabled`.
        case refuse
        /// Decrypt it in place, by the same steps as for encryption.
        case decrypt
    }

    /// What to do with a file in a former cipher format.
    public enum WhenFormerFormat: String, Sendable, CaseIterable {
        /// Open it and leave its format unchanged.
        case open
        /// Convert it to the target format, with the same crash safety and verification as an encryption.
        case upgrade
    }

    /// What to do after an upgrade has failed to finish several times in a row.
    public enum OnRepeatedFailure: String, Sendable, CaseIterable {
        /// Throw an error with the code `repeatedFailure`.
        case refuse
        /// Open the plaintext file as it is, with a warning in the report.
        case openPlaintext
    }

    /// The source of the target schema.
    public enum SchemaSourceKind: Sendable {
        /// The app manages its schema itself.
        case none
        /// Tables declared with their columns.
        case tables([DeclaredTable])
        /// Steps from version to version.
        case steps(MigrationSteps)
        /// A template database with the target schema, which the app ships.
        case template(SchemaTemplate)
        /// Tables that each have their own version.
        case tableVersions([VersionedTable])
    }
}

extension Configuration {
    /// The collations, functions and tokenizers registered on each connection.
    package var extensions: SQLExtensions {
        SQLExtensions(collations: collations, functions: functions, tokenizers: tokenizers)
    }

    /// Returns the name of the database.
    ///
    /// - Throws: ``StoreError`` with the code `configuration` for a name that would leave the app's directory.
    package func checkedName() throws -> String {
        if let fault = FileName.fault(of: databaseName) {
            throw StoreError(
                .configuration, path: databaseName, "the database's name \(fault)",
                advice: "specify only the file name, and pass the folder separately as the directory",
                changed: .nothing)
        }
        return databaseName
    }
}
