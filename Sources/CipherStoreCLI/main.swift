import CipherStore
struct P: KeyProvider {
    func key(for purpose: KeyPurpose, database: String) throws -> CipherKey { try .passphrase("secret") }
}
for path in CommandLine.arguments.dropFirst() {
    do {
        print(try EncryptionUpgrade(path: path, provider: P()).run())
    } catch { print("ERROR", error) }
}
