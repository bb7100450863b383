package import CipherPrimitives
internal import CipherErrors
public import CipherSQLite
internal import CipherSystemFiles

/// Gives the key that systemd hands to a service as a credential: `LoadCredential=` or `LoadCredentialEncrypted=`.
///
/// The folder of a service's credentials can be entered by that service only, so the permissions of the file in it are
/// not checked. Source: systemd.exec(5), "Credentials".
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

    /// Gives the credential's key.
    ///
    /// - Throws: ``StoreError`` with `keyUnavailable` if systemd gave no such credential, and `keyMalformed`.
    public func key(for purpose: KeyPurpose, database: String) throws -> CipherKey {
        let (text, path) = try read()
        return try KeyText.parse(text, origin: "the systemd credential \(name)", path: path)
    }

    private func read() throws -> (text: SecretBytes, path: String) {
        if let fault = FileName.fault(of: name) {
            throw StoreError(
                .keyUnavailable, "the name of the systemd credential \(fault)",
                advice: "give the name before the colon in LoadCredential=")
        }
        guard let folder = environment("CREDENTIALS_DIRECTORY"), folder.count > 0 else {
            throw StoreError(
                .keyUnavailable, "systemd gave this process no credentials",
                advice: "add LoadCredential=\(name):/path/to/key to the service and start it with systemd")
        }
        let path = folder.withUnsafeBytes { SystemPath.text($0) } + "/" + SystemPath.text(name.utf8)
        do {
            return (try SmallFile(path: path).secret(limit: KeyText.maximumSize), path)
        } catch let failure {
            throw StoreError(
                failure.isTooLarge ? .keyMalformed : .keyUnavailable, path: path,
                "the systemd credential cannot be used: \(failure)",
                advice: "check LoadCredential=\(name):… of the service")
        }
    }

    /// Gives the credential's key; none is ever created.
    public func plannedKey(database: String) throws -> CipherKey? {
        try key(for: .existing, database: database)
    }
}

extension SystemdCredentialKeyProvider: KeyTextSource {
    package func keyText(database: String) throws -> SecretBytes { try read().text }
}

extension KeyProvider where Self == SystemdCredentialKeyProvider {
    /// The key in a credential of the systemd service that this process belongs to, which is read each time the key is
    /// asked for.
    public static func systemdCredential(_ name: String) -> SystemdCredentialKeyProvider {
        SystemdCredentialKeyProvider(name: name)
    }
}
