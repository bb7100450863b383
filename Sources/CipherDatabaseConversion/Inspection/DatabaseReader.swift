package import CipherErrors
package import CipherKeyProviders
package import CipherSQLite

/// Opens a database of any kind for reading only, and leaves no files beside it.
package struct DatabaseReader {
    private let inspector: Inspector

    /// Creates a reader of the database at a path.
    package init(path: String) throws {
        self.init(try Inspector(path: path))
    }

    package init(_ inspector: Inspector) {
        self.inspector = inspector
    }

    /// The path of the database, without symbolic links.
    package var path: String { inspector.paths.database }

    /// Passes `body` a connection through which the file has been shown to be readable.
    ///
    /// - Parameters:
    ///   - provider: Provides the key. It is called only if the file is not plaintext.
    ///   - formats: The cipher settings to try on an opaque file, in the order of ``FileUnlocking``.
    ///   - body: Reads the database. It also receives the cipher format that the key opened, or `nil` for a plaintext
    ///     file.
    /// - Throws: ``StoreError``, or any error thrown by `body`, unchanged.
    package func read<Result>(
        provider: any KeyProvider, formats: [CipherSettings],
        _ body: (Connection, CipherSettings?) throws -> Result
    ) throws -> Result {
        try readOpened(provider: provider, formats: formats) { try body($0, $1?.settings) }
    }

    /// Does the same as ``read(provider:formats:_:)``, but passes the key that opened the file, or `nil` for a
    /// plaintext file.
    func readOpened<Result>(
        provider: any KeyProvider, formats: [CipherSettings], _ body: (Connection, FileKey?) throws -> Result
    ) throws -> Result {
        switch try inspector.surface() {
        case .missing:
            throw StoreError.missingFile(path)
        case .staleSidecar: throw inspector.staleSidecar()
        case .empty, .plaintext:
            let result = try inspector.readingPlaintext { connection in Swift.Result { try body(connection, nil) } }
            guard let result else { throw inspector.needsRecovery() }
            return try result.get()
        case .opaque(let hasPlaintextHeader):
            return try FileUnlocking(inspector.paths, provider: provider, formats: formats)
                .run(inspector, hasPlaintextHeader: hasPlaintextHeader) { connection, file in
                    try body(connection, file.fileKey)
                }.result
        }
    }

    /// Returns the error for a failure to read the file, with advice on what to do.
    package func failure(_ error: DatabaseError) -> StoreError { inspector.readFailure(error) }
}
