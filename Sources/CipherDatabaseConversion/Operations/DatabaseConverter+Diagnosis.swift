internal import CipherErrors
public import CipherKeyProviders
public import CipherPlatform
internal import CipherSQLite
public import CipherSystemFiles

extension DatabaseConverter {
    // MARK: Why a database does not open

    /// Finds out why a database does not open with a key ("file is not a database"), and with which key and format it
    /// opens.
    ///
    /// Nothing is changed. The key is tried unchanged and as it may have been meant: as a raw key or a passphrase, with
    /// and without a newline, a NUL or a byte order mark, with its digits in the other case, or in another encoding.
    /// Each is tried with the key derivations of SQLCipher's formats 1 to 4, and then with every number of rounds up to
    /// a limit. Pages are authenticated, which distinguishes damage from a wrong key.
    ///
    /// - Parameters:
    ///   - database: The database file.
    ///   - keyProvider: Provides the key if the file is not plaintext, on another thread. It never creates one. If the
    ///     provider reads text (a file, a variable, a credential), the text is read even if it is not a valid key.
    ///     `nil` if there is no key.
    ///   - options: The format that the file is believed to have, and the limits of the search.
    /// - Returns: The diagnosis. It has no causes if nothing prevents the file from being opened.
    /// - Throws: ``StoreError`` with the code `missingFile` or `permission`; any error thrown by the key provider;
    ///   `CancellationError`.
    public static func diagnose(
        _ database: URL, keyProvider: (any KeyProvider)?, options: DiagnosisOptions = DiagnosisOptions()
    ) async throws -> Diagnosis {
        try await DetachedThread.cancellable { try diagnoseHere(database, keyProvider, options, $0) }
    }

    /// Diagnoses as ``diagnose(_:keyProvider:options:)`` does, blocking the calling thread.
    ///
    /// Use `cancellation` to stop the diagnosis from another thread.
    ///
    /// - Throws: ``StoreError`` with the same codes as the asynchronous method, and `cancelled` if the diagnosis was
    ///   canceled.
    @available(*, noasync, message: "await diagnose(_:keyProvider:options:) instead")
    public static func diagnoseBlocking(
        _ database: URL, keyProvider: (any KeyProvider)?, options: DiagnosisOptions = DiagnosisOptions(),
        cancellation: UpgradeCancellation? = nil
    ) throws -> Diagnosis {
        try diagnoseHere(database, keyProvider, options, cancellation)
    }

    private static func diagnoseHere(
        _ database: URL, _ keyProvider: (any KeyProvider)?, _ options: DiagnosisOptions,
        _ cancellation: UpgradeCancellation?
    ) throws -> Diagnosis {
        let paths = try DatabasePaths(try database.requiredPath())
        var waiting = ConversionOptions()
        waiting.cancellation = cancellation
        return try Diagnostician(paths, options, cancellation).run(
            keyText: keyProvider.map { provider in
                { try waiting.waiting(for: provider).diagnosableText(database: paths.database) }
            })
    }
}
