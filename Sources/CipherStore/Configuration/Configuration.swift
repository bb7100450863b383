public import CipherDatabaseConversion
internal import CipherErrors
public import CipherHistory
public import CipherPriorSystems
public import CipherSQLite
public import CipherSchemaMigration
internal import CipherSystemFiles

/// What an app tells about its database: name, version, encryption, and where the schema comes from.
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
    /// What becomes of changes that would lose tables, columns or values.
    public var destructiveChanges: DestructiveChanges
    /// The app's own steps that may lose rows or values, by their names, such as `sql_update_3.plist`.
    ///
    /// Where ``destructiveChanges`` is not `allow`, a migration is refused in which another step does. The names are those of
    /// ``MigrationSteps/Update/name``, `baseline`, and `at the upgrade` for ``LaunchHooks/upgrade``.
    public var destructiveSteps: Set<String> = []
    /// The collations that the app's schema uses, as the app registers them.
    public var collations: [Collation]
    /// The functions of the app's own that its schema and its statements call.
    ///
    /// They are there on every connection of a store, and wherever its file is converted, migrated, planned or checked. A
    /// schema may call those alone that are innocuous.
    public var functions: [SQLFunction] = []
    /// The tokenizers of the app's own that its full-text tables name.
    ///
    /// They are there wherever ``functions`` are.
    public var tokenizers: [Tokenizer] = []
    /// In which form the store writes and reads dates and UUIDs.
    public var columnForms = ColumnForms()
    /// What the app runs while its database is opened.
    public var launch = LaunchHooks()
    /// The file that it was read from, for errors.
    var file: String?

    /// A configuration in Swift.
    ///
    /// The version of a legacy file is looked for, by default, where the system kept it that the schema source succeeds.
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
        /// Without it every plaintext file is one that CipherStore has not made or encrypted before.
        public var sinceVersion: SchemaVersion?
        /// What to do with a plaintext file that is no legacy one.
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
        /// What becomes of a legacy file whose indexes, free list or pointer map are damaged, and of any other that is
        /// converted.
        public var onDamage = OnDamage.rebuildIndexes
        /// When a legacy file is encrypted.
        public var when = EncryptionTime.beforeOpening
        /// After how many upgrades, decryptions or changes of key that did not end (a watchdog, a crash)
        /// ``onRepeatedFailure`` applies.
        public var maximumAttempts: Int
        /// What happens after the last attempt.
        public var onRepeatedFailure: OnRepeatedFailure
        /// Whether, while encryption is off, each launch proves what encrypting its plaintext file would make of it.
        ///
        /// The encrypted copy is built, compared and discarded, and ``OpenReport/shadow`` tells how it went: what a staged
        /// roll-out begins with. It takes as long as the upgrade, and the key provider is asked as for the upgrade.
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
        /// Before the store opens, which takes as long as that.
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
        /// It is given the wanted format, as crash-safe and proven as an encryption.
        case upgrade
    }

    /// What happens when an upgrade did not end, several times in a row.
    public enum OnRepeatedFailure: String, Sendable, CaseIterable {
        /// An error with the code `repeatedFailure`.
        case refuse
        /// The plaintext file is opened as it is, with a warning in the report.
        case openPlaintext
    }

    /// Where the wanted schema comes from.
    public enum SchemaSourceKind: Sendable {
        /// The app takes care of its schema itself.
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
                advice: "give the bare name of a file, and its folder as the directory", changed: .nothing)
        }
        return databaseName
    }
}
