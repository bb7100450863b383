internal import CipherConfigurationText
internal import CipherErrors
public import CipherPlatform
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherSystemFiles

extension Configuration {
    /// Reads a configuration from a property list (XML or binary) or a JSON file with the same keys.
    ///
    /// The keys are listed in `Config/README.md`.
    ///
    /// - Throws: ``StoreError`` with the code `configuration`, whose detail names the location in the file, such as
    ///   `dbTables[2].chat[1]`; `missingFile`, `notAFile`, `permission` or `inputOutput` if the file cannot be read.
    public init(contentsOf url: URL) throws {
        try self.init(file: url.requiredPath())
    }

    /// Reads a configuration as ``init(contentsOf:)`` does.
    package init(file path: String) throws {
        let bytes: [UInt8]
        do {
            bytes = try SmallFile(path: path).bytes(limit: ConfigurationSyntax.maximumSize)
        } catch {
            throw Self.unreadable(path, error)
        }
        try self.init(data: Data(bytes), place: path)
    }

    /// Reads a configuration from the bytes of a property list or JSON file.
    ///
    /// - Parameters:
    ///   - place: The name of the file, used in errors.
    ///   - newestFormat: The newest cipher format that the engine can write.
    /// - Throws: ``StoreError`` with the code `configuration`, whose detail names the location in the file.
    package init(data: Data, place: String, newestFormat: Int = Engine.current.defaultCompatibility) throws {
        let value: ConfigurationValue
        do {
            value = try ConfigurationSyntax.parse([UInt8](data))
        } catch {
            throw StoreError(.configuration, path: place, error.detail, advice: error.advice)
        }
        try self.init(ConfigurationNode(value: value, place: "", file: place), newestFormat: newestFormat)
    }

    private init(_ root: ConfigurationNode, newestFormat: Int) throws {
        let section = try ConfigurationSection(
            root,
            keys: [
                "dbName", "dbVersion", "encryption", "recordedVersion", "tableOptions", "destructiveChanges",
                "destructiveSteps",
            ]
                + SchemaSourceKind.keys)
        let name = try section.required("dbName").fileName()
        let version = try section.required("dbVersion").schemaVersion()
        let schema = try SchemaSourceKind(section, databaseName: name)
        self.init(
            databaseName: name,
            version: version,
            encryption: try section["encryption"].map { try Encryption($0, newestFormat: newestFormat) }
                ?? Encryption(format: CipherSettings(compatibility: newestFormat)),
            recordedVersion: try section["recordedVersion"].map {
                try RecordedVersion($0, databaseName: name, leftOut: schema.defaultRecordedVersion)
            }
                ?? schema.defaultRecordedVersion,
            schema: schema,
            destructiveChanges: try section["destructiveChanges"]?.choice() ?? .withhold)
        destructiveSteps = try Self.destructiveSteps(section["destructiveSteps"], of: schema)
        file = root.file
        assumedVersion = try section["recordedVersion"]?.entries().first { $0.name == "assume" }?.node.version()
    }

    private static func destructiveSteps(
        _ node: ConfigurationNode?, of schema: SchemaSourceKind
    ) throws -> Set<String> {
        var known: [String] = []
        if case .steps(let steps) = schema { known = steps.stepNames }
        return Set(
            try node?.elements().map { element in
                let name = try element.text()
                guard !known.contains(name) else { return name }
                throw element.failure(
                    "no step is named \(ConfigurationNode.shown(name))",
                    advice: known.isEmpty
                        ? "remove the name: a configuration without \"updates\" has no steps"
                        : "the steps are \(known.joined(separator: ", "))")
            } ?? [])
    }

    private static func unreadable(_ path: String, _ failure: SmallFile.Failure) -> StoreError {
        let code: StoreError.Code =
            switch failure {
            case .missing: .missingFile
            case .notRegular: .notAFile
            case .larger: .configuration
            case .system(let number): SmallFile.isPermission(number) ? .permission : .inputOutput
            }
        return StoreError(
            code, path: path, "the configuration could not be read: \(failure)",
            advice: "pass the path of a property list or JSON file")
    }
}
