internal import CipherStore
import Foundation

/// The errors of the app's own key store.
struct VaultError: Error {}

extension Release.Key {
    /// The key provider of the app.
    var provider: any KeyProvider {
        switch self {
        case .raw(let hex):
            .closure { _, _ in
                Death.pass("ask")
                return try .raw(SecretBytes(bytes(hexadecimal: hex)))
            }
        case .passphrase(let text):
            .closure { _, _ in
                Death.pass("ask")
                return try .passphrase(text)
            }
        case .file(let path, let create): .file(path, createIfMissing: create)
        case .environment(let name): .environment(name)
        case .rotation(let old, let new, let drops):
            .rotation(from: old.provider, to: new.provider) { _ in
                Death.pass("rotated")
                if let drops { try? FileManager.default.removeItem(atPath: drops) }
                Death.pass("dropped")
            }
        case .failing(let key, let after, let error):
            counting(key.provider, after) { _, _ in
                switch error {
                case "locked": throw StoreError(.keyStoreLocked, "the app's key store is locked")
                case "unavailable": throw StoreError(.keyUnavailable, "the app has no key")
                default: throw VaultError()
                }
            }
        case .changing(let key, let after, let other):
            counting(key.provider, after) { try other.provider.key(for: $0, database: $1) }
        }
    }

    /// Asks the provider at first, and `later` from then on.
    private func counting(
        _ provider: any KeyProvider, _ after: Int,
        _ later: @escaping @Sendable (KeyPurpose, String) throws -> CipherKey
    ) -> any KeyProvider {
        let asks = Counter()
        return .closure { purpose, database in
            if asks.next() <= after { return try provider.key(for: purpose, database: database) }
            return try later(purpose, database)
        }
    }
}

func bytes(hexadecimal text: some StringProtocol) -> [UInt8] {
    let digits = text.utf8.map { $0 > 57 ? $0 - 87 : $0 - 48 }
    return stride(from: 0, to: digits.count - 1, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
}
