internal import CipherPlatform
internal import CipherPrimitives
internal import CipherErrors
internal import CipherSQLite

/// A session with the desktop's key store, for one request, on one thread.
///
/// It never unlocks the store and never prompts the user: it reports that the store is locked, and the app decides what
/// to do. libsecret encrypts the secrets on the bus.
/// Source: "Secret Service API", freedesktop.org.
final class SecretServiceSession {
    private typealias Object = LibSecret.Object

    private let library: LibSecret
    private let service: LibSecret.Object
    private let name: String

    /// - Parameter name: The name of the key.
    /// - Throws: ``StoreError`` with the code `keyStoreUnavailable` if there is no library, session bus or service.
    init(name: String) throws {
        library = try LibSecret.installed.get()
        self.name = name
        let library = library
        service = try Self.checked(library, name) {
            library.openService(library.serviceType(), nil, LibSecret.openSession, nil, $0)
        }
    }

    deinit {
        library.release(service)
    }

    // MARK: Requests

    /// Returns the secrets stored under the name; empty only if the store is known to have none.
    ///
    /// - Throws: ``StoreError`` with the code `keyStoreLocked` if a secret, or the collection that would contain it, is
    ///   locked.
    func secrets() throws -> [SecretBytes] {
        let items = try items()
        defer { items.forEach(library.release) }
        guard !items.isEmpty else {
            library.release(try unlockedCollection())
            return []
        }
        return try items.map { item in
            guard library.isItemLocked(item) == 0, let value = library.secretOfItem(item) else { throw locked() }
            defer { library.releaseValue(value) }
            var count: UInt = 0
            guard let bytes = library.bytesOfValue(value, &count) else { throw locked() }
            return SecretBytes(count: Int(count)) { $0.copyMemory(from: .init(start: bytes, count: Int(count))) }
        }
    }

    /// Stores a secret in addition to the existing ones.
    func store(_ secret: SecretBytes) throws {
        let collection = try unlockedCollection()
        defer { library.release(collection) }
        let value = try secret.withUnsafeBytes { bytes in
            try Self.checked(library, name) { _ in library.newValue(bytes.baseAddress, bytes.count, "text/plain") }
        }
        defer { library.releaseValue(value) }
        let item = try withAttributes { attributes in
            try Self.checked(library, name) {
                library.createItem(collection, nil, attributes, "Database key of \(name)", value, 0, nil, $0)
            }
        }
        library.release(item)
    }

    /// Removes every secret stored under the name.
    func remove() throws {
        let items = try items()
        defer { items.forEach(library.release) }
        for item in items {
            guard library.isItemLocked(item) == 0 else { throw locked() }
            var failure: Object?
            guard library.deleteItem(item, nil, &failure) != 0 else { throw Self.failure(library, name, failure) }
        }
    }

    // MARK: Objects

    /// Returns the items stored under the name, including locked ones.
    ///
    /// The caller must release them.
    private func items() throws -> [LibSecret.Object] {
        try withAttributes { attributes in
            var failure: Object?
            let list = library.search(
                service, nil, attributes, LibSecret.searchAll | LibSecret.loadSecrets, nil, &failure)
            if let failure { throw Self.failure(library, name, failure) }
            // GList: data, next, previous.
            var items: [LibSecret.Object] = []
            var node = list
            while let link = node.map(UnsafePointer<Object?>.init) {
                if let item = link[0] { items.append(item) }
                node = link[1]
            }
            if let list { library.freeList(list) }
            return items
        }
    }

    /// Returns the collection in which new items are stored.
    private func unlockedCollection() throws -> LibSecret.Object {
        var failure: Object?
        guard let collection = library.collectionForAlias(service, "default", 0, nil, &failure) else {
            if let failure { throw Self.failure(library, name, failure) }
            throw StoreError(
                .keyStoreUnavailable, "the desktop has no default keyring",
                advice: "create a default keyring with the desktop's password manager and try again", changed: .nothing)
        }
        guard library.isCollectionLocked(collection) == 0 else {
            library.release(collection)
            throw locked()
        }
        return collection
    }

    /// Passes `body` the attributes that identify the key.
    private func withAttributes<Result>(_ body: (LibSecret.Object) throws -> Result) throws -> Result {
        let attributes = try Self.checked(library, name) { _ in
            library.newTable(library.hashText, library.equalText)
        }
        // The table holds only the pointers, so the texts must outlive it.
        let texts = ["xdg:schema", "io.cipherstore.Key", "name", name].map { (text: String) in strdup(text) }
        defer {
            library.releaseTable(attributes)
            texts.forEach { free($0) }
        }
        _ = library.insert(attributes, texts[0], texts[1])
        _ = library.insert(attributes, texts[2], texts[3])
        return try body(attributes)
    }

    // MARK: Failures

    private static func checked(
        _ library: LibSecret, _ name: String, _ call: (LibSecret.Failure) throws -> LibSecret.Object?
    ) throws -> LibSecret.Object {
        var failure: Object?
        guard let object = try call(&failure) else { throw Self.failure(library, name, failure) }
        return object
    }

    /// Converts a GLib error: a domain, a code in that domain, and a text that contains no secret.
    private static func failure(_ library: LibSecret, _ name: String, _ error: LibSecret.Object?) -> StoreError {
        guard let error else { return unavailable(name, "the desktop keyring gave no reason") }
        defer { library.freeError(error) }
        let fields = UnsafeRawPointer(error)
        if fields.load(as: UInt32.self) == library.errorDomain(),
            fields.load(fromByteOffset: 4, as: Int32.self) == LibSecret.isLocked
        {
            return locked(name)
        }
        let text = fields.load(fromByteOffset: 8, as: UnsafePointer<CChar>?.self)
        return unavailable(name, text.map { String(cString: $0) } ?? "the desktop keyring gave no reason")
    }

    private func locked() -> StoreError { Self.locked(name) }

    private static func locked(_ name: String) -> StoreError {
        StoreError(
            .keyStoreLocked, "the desktop keyring is locked, so it is unknown whether it contains the key \(name)",
            advice: "unlock the keyring and try again", changed: .nothing)
    }

    private static func unavailable(_ name: String, _ reason: String) -> StoreError {
        StoreError(
            .keyStoreUnavailable,
            "the key \(name) could not be read from the desktop keyring: \(reason)",
            advice: "check that a keyring service such as gnome-keyring is running in this session", changed: .nothing)
    }
}
