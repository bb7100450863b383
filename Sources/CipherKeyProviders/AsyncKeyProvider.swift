internal import CipherErrors
public import CipherSQLite
internal import CipherSystemFiles

/// A provider whose key comes from an async closure of the app, which may query a server, another process or the user.
///
/// The closure runs in its own task while the thread that needs the key waits. The task is canceled when nothing waits
/// for it any more: after the `keyTimeout` of the options, and when the opening is canceled.
public struct AsyncKeyProvider: KeyProvider {
    private let body: @Sendable (KeyPurpose, String) async throws -> CipherKey

    package init(_ body: @escaping @Sendable (_ purpose: KeyPurpose, _ database: String) async throws -> CipherKey) {
        self.body = body
    }

    /// Returns the closure's key, and blocks the thread until it is available.
    ///
    /// - Throws: ``StoreError`` with the code `keyMalformed` if the closure throws a `KeyError`; all other errors
    ///   thrown by the closure, unchanged.
    public func key(for purpose: KeyPurpose, database: String) throws -> CipherKey {
        let answer = BlockingAnswer<CipherKey>()
        let task = Task { [body] in
            do {
                answer.give(.success(try await body(purpose, database)))
            } catch {
                answer.give(.failure(error))
            }
        }
        let waiting = KeyWaiting.current
        while true {
            if let outcome = answer.wait(until: .now + .seconds(3_600), or: waiting) {
                do {
                    return try outcome.get()
                } catch let error as KeyError {
                    throw StoreError(error, origin: "the app's key provider")
                }
            }
            if waiting?.isCancelled == true {
                task.cancel()
                throw CancellationError()
            }
        }
    }
}

extension KeyProvider where Self == AsyncKeyProvider {
    /// Returns a provider that requests its key from an async closure, which receives the purpose and the path of the
    /// database.
    ///
    /// ```swift
    /// let store = try await EncryptedStore.open(
    ///     configuration, directory: directory, keyProvider: .async { _, _ in try await vault.key() })
    /// ```
    public static func async(
        _ body: @escaping @Sendable (_ purpose: KeyPurpose, _ database: String) async throws -> CipherKey
    ) -> AsyncKeyProvider {
        AsyncKeyProvider(body)
    }
}

/// Whether anything still waits for the requested key.
enum KeyWaiting {
    /// Canceled when nothing waits any more; `nil` if that is not known.
    @TaskLocal static var current: UpgradeCancellation?
}
