internal import CipherKeyProviders
internal import CipherPlatform
internal import CipherSchemaMigration
internal import CipherStore

/// Opens copies of databases in temporary folders.
struct MigrationTestFolder {
    let configuration: Configuration
    let keyProvider: any KeyProvider

    /// Returns the schema that a fresh install creates.
    func schemaOfFreshInstall() async throws -> SchemaDescription {
        try await inFolder { folder in
            try await opening(folder) { try await schema(of: $0) }
        }
    }

    /// Returns the problems found in the migration of a fixture.
    func problems(
        of fixture: URL, wanted: SchemaDescription, allowed: AllowedDifferences,
        check: (@Sendable (EncryptedStore, URL) async throws -> Void)?
    ) async throws -> [MigrationVerificationError.Problem] {
        try await inFolder { folder in
            try copy(fixture, to: folder)
            let migrated = try await opening(folder) { store in
                try await check?(store, fixture)
                return try await schema(of: store)
            }
            let again = try await opening(folder) { $0.report.migration }
            return migrated.differences(from: wanted).filter { !allowed.covers($0) }.map { .differs($0) }
                + (again.event == nil ? [] : [.unsettled(again)])
        }
    }

    private func schema(of store: EncryptedStore) async throws -> SchemaDescription {
        try await store.read { try SchemaDescription(of: $0) }
    }

    private func opening<Output>(_ folder: URL, _ body: (EncryptedStore) async throws -> Output) async throws -> Output
    {
        let store = try await EncryptedStore.open(configuration, directory: folder, keyProvider: keyProvider)
        do {
            let output = try await body(store)
            await store.close()
            return output
        } catch {
            await store.close()
            throw error
        }
    }

    private func inFolder<Output>(_ body: (URL) async throws -> Output) async throws -> Output {
        let folder = FileManager.default.temporaryDirectory.appending(path: "migration-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let result: Result<Output, any Error>
        do {
            result = .success(try await body(folder))
        } catch {
            result = .failure(error)
        }
        try FileManager.default.removeItem(at: folder)
        return try result.get()
    }

    /// Copies a folder's contents, or a file with its sidecars under the configuration's name.
    private func copy(_ fixture: URL, to folder: URL) throws {
        let manager = FileManager.default
        let source = fixture.path(percentEncoded: false)
        guard try manager.attributesOfItem(atPath: source)[.type] as? FileAttributeType != .typeDirectory else {
            for name in try manager.contentsOfDirectory(atPath: source) {
                try manager.copyItem(at: fixture.appending(path: name), to: folder.appending(path: name))
            }
            return
        }
        let target = folder.appending(path: try configuration.checkedName()).path(percentEncoded: false)
        // A -shm is not copied: SQLite rebuilds it from the -wal.
        for ending in ["", "-wal", "-journal"] where ending.isEmpty || manager.fileExists(atPath: source + ending) {
            try manager.copyItem(atPath: source + ending, toPath: target + ending)
        }
    }
}
