internal import CipherErrors
internal import CipherPlatform

/// The functions of libsecret and GLib that the provider uses, looked up at first use.
///
/// libsecret is not linked, because neither an app without a desktop nor the machine that builds it should require it.
/// The declarations here belong to the stable interface of `libsecret-1.so.0`; their source is `libsecret/secret.h`.
struct LibSecret: Sendable {
    /// A GLib object, or a `GHashTable`, `GList` or `GError`.
    typealias Object = OpaquePointer
    typealias Failure = UnsafeMutablePointer<Object?>
    typealias Text = UnsafePointer<CChar>

    // secret-service.h: SECRET_SERVICE_OPEN_SESSION; SECRET_SEARCH_ALL and SECRET_SEARCH_LOAD_SECRETS.
    static let openSession: UInt32 = 1 << 1
    static let searchAll: UInt32 = 1 << 1
    static let loadSecrets: UInt32 = 1 << 3
    // secret-types.h: SECRET_ERROR_IS_LOCKED.
    static let isLocked: Int32 = 2

    let serviceType: @convention(c) @Sendable () -> UInt
    let openService: @convention(c) @Sendable (UInt, Text?, UInt32, Object?, Failure?) -> Object?
    let search: @convention(c) @Sendable (Object, Object?, Object, UInt32, Object?, Failure?) -> Object?
    let collectionForAlias: @convention(c) @Sendable (Object, Text, UInt32, Object?, Failure?) -> Object?
    let isCollectionLocked: @convention(c) @Sendable (Object) -> Int32
    let createItem:
        @convention(c) @Sendable (Object, Object?, Object, Text, Object, UInt32, Object?, Failure?) -> Object?
    let deleteItem: @convention(c) @Sendable (Object, Object?, Failure?) -> Int32
    let isItemLocked: @convention(c) @Sendable (Object) -> Int32
    let secretOfItem: @convention(c) @Sendable (Object) -> Object?
    let newValue: @convention(c) @Sendable (UnsafeRawPointer?, Int, Text) -> Object?
    let bytesOfValue: @convention(c) @Sendable (Object, UnsafeMutablePointer<UInt>) -> UnsafeRawPointer?
    let releaseValue: @convention(c) @Sendable (Object) -> Void
    let errorDomain: @convention(c) @Sendable () -> UInt32

    let newTable: @convention(c) @Sendable (UnsafeRawPointer, UnsafeRawPointer) -> Object?
    let insert: @convention(c) @Sendable (Object, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?) -> Int32
    let releaseTable: @convention(c) @Sendable (Object) -> Void
    let freeList: @convention(c) @Sendable (Object) -> Void
    let freeError: @convention(c) @Sendable (Object) -> Void
    let release: @convention(c) @Sendable (Object) -> Void
    // Two functions that are only passed on; `nonisolated(unsafe)` is safe because functions do not change.
    nonisolated(unsafe) let hashText: UnsafeRawPointer
    nonisolated(unsafe) let equalText: UnsafeRawPointer

    /// The installed library, or the error that explains why the library cannot be used.
    static let installed = Result { try LibSecret() }

    private init() throws(StoreError) {
        // The library is never closed, because GLib's own threads keep running.
        guard let library = dlopen("libsecret-1.so.0", RTLD_NOW | RTLD_LOCAL) else {
            throw StoreError(
                .keyStoreUnavailable, "libsecret, which connects to the desktop keyring, is not installed",
                advice: "install libsecret (package libsecret-1-0 on Debian), or store the key elsewhere")
        }
        func symbol(_ name: String) throws(StoreError) -> UnsafeMutableRawPointer {
            if let symbol = dlsym(library, name) { return symbol }
            throw StoreError(
                .keyStoreUnavailable, "the installed version of libsecret lacks the function \(name)",
                advice: "install a newer version of libsecret")
        }
        func function<Function>(_ name: String) throws(StoreError) -> Function {
            unsafeBitCast(try symbol(name), to: Function.self)
        }
        serviceType = try function("secret_service_get_type")
        openService = try function("secret_service_open_sync")
        search = try function("secret_service_search_sync")
        collectionForAlias = try function("secret_collection_for_alias_sync")
        isCollectionLocked = try function("secret_collection_get_locked")
        createItem = try function("secret_item_create_sync")
        deleteItem = try function("secret_item_delete_sync")
        isItemLocked = try function("secret_item_get_locked")
        secretOfItem = try function("secret_item_get_secret")
        newValue = try function("secret_value_new")
        bytesOfValue = try function("secret_value_get")
        releaseValue = try function("secret_value_unref")
        errorDomain = try function("secret_error_get_quark")
        newTable = try function("g_hash_table_new")
        insert = try function("g_hash_table_insert")
        releaseTable = try function("g_hash_table_unref")
        freeList = try function("g_list_free")
        freeError = try function("g_error_free")
        release = try function("g_object_unref")
        hashText = UnsafeRawPointer(try symbol("g_str_hash"))
        equalText = UnsafeRawPointer(try symbol("g_str_equal"))
    }
}
