internal import CipherConfigurationText
internal import CipherErrors
internal import CipherHistory
public import CipherPlatform
public import CipherSchemaMigration
internal import CipherSystemFiles

extension MigrationSteps {
    private static let baselineFile = "sql_default.plist"
    private static let launchFile = "sql_launch.plist"
    private static let updatePrefix = "sql_update_"
    private static let ending = ".plist"

    /// Reads the steps from a folder of property lists, each an array of SQL strings.
    ///
    /// `sql_default.plist` creates a new database. `sql_update_N.plist` leads to version N, a whole number or a dotted
    /// version such as `1.10.0`. `sql_launch.plist` is optional and runs at every launch. The numbering is
    /// `consecutive` by default, unless the name of a file contains a version with dots.
    ///
    /// - Throws: ``StoreError`` with the code `configuration`, which names the file and the element.
    public init(contentsOf directory: URL, numbering: Numbering? = nil) throws {
        try self.init(folder: directory.systemPath, numbering: numbering)
    }

    init(folder: String, numbering: Numbering?) throws {
        let names: [String]
        do {
            names = try FileSystem.names(in: folder)
        } catch {
            throw StoreError(
                .configuration, path: folder, "the folder that contains the updates could not be read",
                advice: "specify the folder's path, relative to the configuration file")
        }
        var updates: [Update] = []
        var hasDots = false
        for name in names where name.hasPrefix(Self.updatePrefix) {
            let number = name.dropFirst(Self.updatePrefix.count).dropLast(Self.ending.count)
            guard name.hasSuffix(Self.ending), let version = SchemaVersion(String(number)) else {
                throw StoreError(
                    .configuration, path: "\(folder)/\(name)", "the file name of the update contains no valid version",
                    advice: "give the file a name such as sql_update_3.plist or sql_update_1.10.0.plist, or remove the "
                        + "file")
            }
            hasDots = hasDots || number.contains(".")
            updates.append(Update(version, name: name, .sql(try Self.texts(in: folder, name))))
        }
        self.init(
            numbering: numbering ?? (hasDots ? .appVersions : .consecutive),
            baseline: .sql(try Self.texts(in: folder, Self.baselineFile)), updates: updates,
            everyLaunch: names.contains(Self.launchFile) ? try Self.texts(in: folder, Self.launchFile) : [])
        self.names = (Self.baselineFile, Self.launchFile)
        self.directory = folder
    }

    /// Returns the strings of a property list.
    private static func texts(in folder: String, _ name: String) throws -> [String] {
        let path = "\(folder)/\(name)"
        func failure(_ detail: String, _ advice: String) -> StoreError {
            StoreError(.configuration, path: path, detail, advice: advice, changed: .nothing)
        }
        do {
            let bytes = try SmallFile(path: path).bytes(limit: ConfigurationSyntax.maximumSize)
            let value = try ConfigurationSyntax.parse(bytes)
            return try ConfigurationNode(value: value, place: name, file: path).elements().map { try $0.text() }
        } catch SmallFile.Failure.missing {
            throw failure("the file with the SQL statements is missing", "restore the file")
        } catch let reason as SmallFile.Failure {
            throw failure("the file with the SQL statements could not be read: \(reason)", "check the file")
        } catch let reason as ConfigurationSyntax.Failure {
            throw failure("the file with the SQL statements could not be read: \(reason.detail)", reason.advice)
        }
    }
}

extension ConfigurationNode {
    /// Reads the `updates` dictionary.
    ///
    /// - Parameter version: The configuration's version; if it is written with dots, steps are numbered by app
    ///   versions.
    func steps(leadingTo version: ConfigurationNode) throws -> MigrationSteps {
        let section = try ConfigurationSection(self, keys: ["directory", "repeatable"])
        let node = try section.required("directory")
        let directory = try node.path()
        var numbering: MigrationSteps.Numbering?
        if case .text(let text) = version.value, text.contains(".") { numbering = .appVersions }
        var steps = try MigrationSteps(
            folder: directory, numbering: numbering)
        try steps.check(leadingTo: try version.schemaVersion())
        let places = steps.places
        for place in try section["repeatable"]?.elements() ?? [] {
            let name = try place.text()
            guard places.contains(name) else {
                throw place.failure(
                    "no step contains the statement \(Self.shown(name))",
                    advice: "write the statement's name as it appears in error messages, such as sql_update_3.plist[1]")
            }
            steps.repeatable.insert(name)
        }
        return steps
    }
}
