package import CipherPrimitives
internal import CipherErrors
public import CipherSQLite
internal import CipherSystemFiles

/// A provider of a key that systemd passes to a service as a credential, with `LoadCredential=` or
/// `LoadCredentialEncrypted=`.
///
/// Only the service itself can access its credentials folder, so the permissions of the file in it are not checked.
/// Source: systemd.exec(5), "Credentials".
public struct SystemdCredentialKeyProvider: KeyProvider {
    /// The name of the credential.
    let name: String
    private let environment: @Sendable (String) -> SecretBytes?

    package init(
        name: String, environment: @escaping @Sendable (String) -> SecretBytes? = ProcessEnvironment.value
    ) {
        self.name = name
        self.environment = environment
    }

    /// Returns the credential's key.
    ///
    /// - Throws: ``StoreError`` with the code `keyUnavailable` if systemd provided no such credential, and
    ///   `keyMalformed` if it is not a valid key.
    public func key(for purpose: KeyPurpose, database: String) throws -> CipherKey {
        let (text, path) = try read(database)
        return try KeyText.parse(text, origin: "the systemd credential \(name)", path: path)
    }

    private func read(_ database: String) throws -> (text: SecretBytes, path: String) {
        try KeyText.refuseKey(name, as: "the name of a systemd credential", database: database)
        if let fault = FileName.fault(of: name) {
            throw StoreError(
                .keyUnavailable, "the name of the systemd credential \(fault)",
                advice: "use the name that precedes the colon in LoadCredential=")
        }
        guard let folder = environment("CREDENTIALS_DIRECTORY"), folder.count > 0 else {
            throw StoreError(
                .keyUnavailable, "systemd provided no credentials to this process",
                advice: "add LoadCredential=\(name):/path/to/key to the unit file, and start the service with systemd")
        }
        let path = folder.withUnsafeBytes { SystemPath.text($0) } + "/" + SystemPath.text(name.utf8)
        do {
            return (try SmallFile(path: path).secret(limit: KeyText.maximumSize), path)
        } catch let failure {
            throw StoreError(
                failure.isTooLarge ? .keyMalformed : .keyUnavailable, path: path,
                "the systemd credential cannot be used: \(failure)",
                advice: "check the line LoadCredential=\(name):… in the service's unit file")
        }
    }

    /// Returns the credential's key; never creates one.
    public func plannedKey(database: String) throws -> CipherKey? {
        try key(for: .existing, database: database)
    }
}

extension SystemdCredentialKeyProvider: KeyTextSource {
    package func keyText(database: String) throws -> SecretBytes { try read(database).text }
}

extension KeyProvider where Self == SystemdCredentialKeyProvider {
    /// Returns a provider for the key in a credential of this process's systemd service, which is read each time a key
    /// is requested.
    public static func systemdCredential(_ name: String) -> SystemdCredentialKeyProvider {
        SystemdCredentialKeyProvider(name: name)
    }
}
