internal import CipherPrimitives
internal import CCipherEngine

extension Connection {
    /// What is known of a connection's key.
    enum KeyState {
        case none
        case given
        /// The first page was read with it.
        case used
        /// SQLCipher copies a key with its pointers first, and where it then has no memory for what they point to, closing
        /// frees it twice (4.6.1, `sqlcipher_cipher_ctx_copy`). A connection left open costs less than that.
        case damaged
    }

    /// Gives the key and pins the cipher format, before the first read.
    ///
    /// The corresponding C function is `sqlite3_key_v2`, with the key's length explicit.
    ///
    /// - Parameter schema: The name of the file in this connection.
    package func setKey(_ key: CipherKey, settings: CipherSettings, schema: String = "main") throws {
        if schema == "main" { keyState = .given }
        layers[schema]?.cipherPages = CipherPages(key, settings)
        try key.keyBytes.withUnsafeBytes { bytes in
            try check(cs_key(handle, schema, bytes.baseAddress, Int32(bytes.count)))
        }
        // SQLCipher 4.6 writes to stderr at every wrong key, and a library is silent. The level is the process's, and
        // falls back when SQLCipher starts again after its last connection, so it is set here, behind the key.
        if Engine.current.cipherMajor >= 4 { try execute("PRAGMA cipher_log_level = NONE") }
        for pragma in settings.pragmas(engine: .current) {
            try execute(SQL(text: "PRAGMA \(schema).\(pragma)"))
        }
    }
}
