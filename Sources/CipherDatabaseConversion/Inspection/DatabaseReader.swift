package import CipherErrors
package import CipherKeyProviders
package import CipherSQLite

/// Opens a database of any kind for reading only, and leaves no trace beside it.
package struct DatabaseReader {
    private let inspector: Inspector

    /// A reader of the database at a path.
    package init(path: String) throws {
        self.init(try Inspector(path: path))
    }

    package init(_ inspector: Inspector) {
        self.inspector = inspector
    }

    /// The database, without symbolic links.
    package var path: String { inspector.paths.database }

    /// Lends a connection on which the file has been shown to be readable.
    ///
    /// - Parameters:
    ///   - provider: Gives the key; asked only where the file is not plaintext.
    ///   - formats: The cipher settings to try on an opaque file, in the order of ``FileUnlocking``.
    ///   - body: Reads; it is also given the cipher format that the key opened, `nil` for a plaintext file.
    /// - Throws: ``StoreError``, or what `body` throws, which is passed on as it is.
    package func read<Result>(
        provider: any KeyProvider, formats: [CipherSettings],
        _ body: (Connection, CipherSettings?) throws -> Result
    ) throws -> Result {
        try readOpened(provider: provider, formats: formats) { try body($0, $1?.settings) }
    }

    /// The same with the key that opened the file; `nil` for a plaintext one.
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

    /// A failure to read the file, with what to do about it.
    package func failure(_ error: DatabaseError) -> StoreError { inspector.readFailure(error) }
}
