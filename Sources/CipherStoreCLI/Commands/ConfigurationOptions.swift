internal import CipherDatabaseConversion
internal import CipherKeyProviders
internal import CipherStore

/// The options that name a configuration and the folder of its database.
enum ConfigurationOptions {
    static let configuration = Option(
        "config", value: "FILE", kind: .file, isRequired: true,
        "The app's configuration: a property list or JSON file.")
    static let directory = Option(
        "directory", value: "DIR", kind: .directory, isRequired: true,
        "The folder that contains the database. The configuration specifies the file name.")
    static let all = [configuration, directory]

    /// Returns the opening that the options describe.
    static func opening(
        _ invocation: Invocation, provider: any KeyProvider,
        options: ConversionOptions = ConversionOptions()
    ) throws -> StoreOpening {
        let directory = try invocation.required(directory)
        return try StoreOpening(
            configuration: try read(invocation), directory: directory, provider: provider, options: options,
            inputFiles: [try invocation.required(configuration)])
    }

    /// Returns the provider that the options name; one is required if encryption is on.
    static func provider(_ invocation: Invocation) throws -> any KeyProvider {
        if let provider = try KeyOptions.key.provider(invocation) { return provider }
        return try read(invocation).encryption.isEnabled
            ? KeyOptions.key.requiredProvider(invocation) : MissingKeyProvider()
    }

    static func read(_ invocation: Invocation) throws -> Configuration {
        try Configuration(file: try invocation.required(configuration))
    }
}
