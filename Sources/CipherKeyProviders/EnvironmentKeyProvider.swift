package import CipherPrimitives
internal import CipherErrors
public import CipherSQLite

/// A provider that reads its key from an environment variable: a passphrase, or SQLCipher's `x'64 hex'` or `x'96 hex'`
/// form.
///
/// Other processes of the same user can read a process's environment, and its child processes inherit it. Prefer a key
/// file or a systemd credential.
public struct EnvironmentKeyProvider: KeyProvider {
    /// The name of the variable.
    let variable: String
    private let environment: @Sendable (String) -> SecretBytes?

    package init(
        variable: String, environment: @escaping @Sendable (String) -> SecretBytes? = ProcessEnvironment.value
    ) {
        self.variable = variable
        self.environment = environment
    }

    /// Returns the variable's key.
    ///
    /// - Throws: ``StoreError`` with the code `keyUnavailable` if the variable is not set, and `keyMalformed` if its
    ///   value is not a valid key.
    public func key(for purpose: KeyPurpose, database: String) throws -> CipherKey {
        try KeyText.parse(keyText(database: database), origin: "the environment variable \(variable)")
    }

    /// Returns the variable's key; never creates one.
    public func plannedKey(database: String) throws -> CipherKey? {
        try key(for: .existing, database: database)
    }
}

extension EnvironmentKeyProvider: KeyTextSource {
    package func keyText(database: String) throws -> SecretBytes {
        try KeyText.refuseKey(variable, as: "the name of an environment variable", database: database)
        guard let text = environment(variable) else {
            throw StoreError(
                .keyUnavailable, "the environment variable \(variable) is not set",
                advice: "set the variable to a passphrase, or to a raw key written as x'…' with 64 hex digits")
        }
        return text
    }
}

extension KeyProvider where Self == EnvironmentKeyProvider {
    /// Returns a provider for the key in an environment variable, which is read each time a key is requested.
    public static func environment(_ variable: String) -> EnvironmentKeyProvider {
        EnvironmentKeyProvider(variable: variable)
    }
}
