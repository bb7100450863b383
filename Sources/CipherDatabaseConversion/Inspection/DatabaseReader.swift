package import CipherErrors
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
    ///   - formats: The cipher settings to try on an opaque file, in order; each try is one key derivation.
    ///   - key: Gives the key; asked only where the file is not plaintext.
    ///   - body: Reads; it is also given the cipher format that the key opened, `nil` for a plaintext file.
    /// - Throws: ``StoreError``, or what `body` throws, which is passed on as it is.
    package func read<Result>(
        formats: [CipherSettings], key: () throws -> CipherKey, _ body: (Connection, CipherSettings?) throws -> Result
    ) throws -> Result {
        // A failure of the body must not be taken for a key that does not fit: the key has fitted by then.
        let outcome = try opened(formats, key) { connection, settings in
            Swift.Result { try body(connection, settings) }
        }
        return try outcome.get()
    }

    private func opened<Result>(
        _ formats: [CipherSettings], _ key: () throws -> CipherKey, _ body: (Connection, CipherSettings?) -> Result
    ) throws -> Result {
        switch try inspector.surface() {
        case .missing:
            throw StoreError.missingFile(path)
        case .staleSidecar: throw inspector.staleSidecar()
        case .empty, .plaintext:
            guard let result = try inspector.readingPlaintext({ body($0, nil) }) else {
                throw inspector.needsRecovery()
            }
            return result
        case .opaque(let hasPlaintextHeader):
            let key = try key()
            for settings in formats {
                let result = try inspector.readingEncrypted(
                    key: key, settings: settings, hasPlaintextHeader: hasPlaintextHeader
                ) { connection, _ in body(connection, settings) }
                if let result { return result }
            }
            throw inspector.keyDoesNotFit()
        }
    }

    /// A failure to read the file, with what to do about it.
    package func failure(_ error: DatabaseError) -> StoreError { inspector.readFailure(error) }
}
