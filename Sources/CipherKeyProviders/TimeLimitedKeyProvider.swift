internal import CipherErrors
package import CipherSQLite
package import CipherSystemFiles

/// A provider that calls another provider on a separate thread and limits the wait: a key store may hang, or may prompt
/// a user who is absent.
///
/// A response that arrives late is dropped. If the provider created a key for that response, the key is stored, and the
/// next opening finds it.
package struct TimeLimitedKeyProvider: KeyProvider {
    let provider: any KeyProvider
    private let timeout: Duration
    private let cancellation: UpgradeCancellation?

    /// - Parameters:
    ///   - timeout: The maximum wait for each response.
    ///   - cancellation: A cancellation that ends the wait.
    package init(_ provider: any KeyProvider, timeout: Duration, cancellation: UpgradeCancellation?) {
        self.provider = provider
        self.timeout = timeout
        self.cancellation = cancellation
    }

    package func key(for purpose: KeyPurpose, database: String) throws -> CipherKey {
        try wait(database) { try provider.key(for: purpose, database: database) }
    }

    package func plannedKey(database: String) throws -> CipherKey? {
        try wait(database) { try provider.plannedKey(database: database) }
    }

    package func previousKey(database: String) throws -> CipherKey? {
        try wait(database) { try provider.previousKey(database: database) }
    }

    package func previousKeyIsObsolete(database: String) throws {
        try wait(database) { try provider.previousKeyIsObsolete(database: database) }
    }

    func wait<Answer: Sendable>(
        _ database: String, _ ask: @escaping @Sendable () throws -> Answer
    ) throws -> Answer {
        let (answer, waiting) = (BlockingAnswer<Answer>(), UpgradeCancellation())
        defer { waiting.cancel() }
        try DetachedThread.start("key", isAwaited: true) {
            KeyWaiting.$current.withValue(waiting) { answer.give(Result { try ask() }) }
        }
        if let outcome = answer.wait(until: .now + timeout, or: cancellation) { return try outcome.get() }
        if cancellation?.isCancelled == true { throw StoreError.cancelled(database) }
        throw StoreError(
            .keyStoreUnavailable, path: database,
            "the key provider did not respond within \(timeout)",
            advice: "check that the key store is responding, and try again", changed: .nothing)
    }
}
