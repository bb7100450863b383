internal import CCipherEngine
internal import CipherErrors
internal import CipherPrimitives

extension Connection {
    /// The state of a connection's key.
    enum KeyState {
        case none
        case given
        /// The first page was read with it.
        case used
        /// When SQLCipher copies a key, it first copies the pointers in it. If there is then no memory for the data
        /// that they point to, closing the connection frees that data twice (4.6.1, `sqlcipher_cipher_ctx_copy`).
        /// Leaving the connection open costs less than that.
        case damaged
    }

    /// Whether the database is encrypted.
    package var hasKey: Bool { keyState != .none }

    /// Sets the key and the cipher format, before the first read.
    ///
    /// The corresponding C function is `sqlite3_key_v2`, with the key's length explicit.
    ///
    /// SQLCipher replaces impossible settings with others, or creates a file with them that cannot be opened.
    /// Therefore, impossible settings are refused here, for every way of opening.
    ///
    /// - Parameter schema: The schema name of the file in this connection.
    /// - Throws: ``StoreError`` with the code `configuration` if no file can have these settings, and with
    ///   `saltMissing` if neither the file nor the key would contain the salt; ``DatabaseError`` if SQLite reports an
    ///   error.
    package func setKey(_ key: CipherKey, settings: CipherSettings, schema: String = "main") throws {
        try key.checkFits(settings, path: path)
        if schema == "main" {
            keyState = .given
            hasReadableHeader = settings.plaintextHeaderSize > 0
        }
        usesCipher = true
        layers[schema]?.cipherPages = CipherPages(
            key, settings, isReadOnly: sqlite3_db_readonly(handle, schema) == 1)
        try key.keyBytes.withUnsafeBytes { bytes in
            try check(cs_key(handle, schema, bytes.baseAddress, Int32(bytes.count)))
        }
        // SQLCipher 4.6 writes to stderr for every wrong key, but a library must be silent. The log level applies to
        // the whole process and is reset when SQLCipher starts again after its last connection, so it is set here,
        // after the key.
        if Engine.current.cipherMajor >= 4 { try execute("PRAGMA cipher_log_level = NONE") }
        for pragma in settings.pragmas(engine: .current) {
            try execute(SQL(text: "PRAGMA \(schema).\(pragma)"))
        }
        // The mask is a value of the process, and other code may have changed it. SQLCipher logs each change of it.
        let mask = "PRAGMA \(schema).cipher_hmac_salt_mask"
        if try value(String.self, SQL(text: mask)) != "3a" { try execute(SQL(text: "\(mask) = \"x'3a'\"")) }
    }

    /// Throws if a page that was read in the open transaction was not authentic.
    ///
    /// SQLCipher replaces such a page by zeros and reports the error only when the next page is read, which a statement
    /// may not do; the error is forgotten at the end of the transaction. This reads page 1.
    ///
    /// - Throws: ``DatabaseError``, for which ``DatabaseError/isCorrupt`` is true.
    package func checkAuthenticity() throws {
        if usesCipher, isInTransaction { try readSchema() }
    }

    /// Runs a check, or another use of virtual tables, in a transaction.
    ///
    /// The module of a virtual table may fail with the code and the message with which SQLCipher rejects a page. SQLCipher
    /// also rejects every later page of the transaction, which shows which of the two it was.
    ///
    /// - Throws: ``DatabaseError``, and any error thrown by `body`.
    package func checking<Result>(_ body: () throws -> Result) throws -> Result {
        let isOwn = !isInTransaction
        if isOwn { try execute("BEGIN") }
        defer { if isOwn { try? execute("ROLLBACK") } }
        do {
            return try body()
        } catch let error as DatabaseError where error.isNotAuthentic {
            try checkAuthenticity()
            throw DatabaseError.unexplained(error)
        }
    }

    /// Refuses pages of zeros, which SQLCipher takes for authentic ones, on a connection that never writes.
    package func refuseBlankPages() { layers["main"]?.cipherPages?.refusesBlankPages = true }

    /// Lets SQLCipher check the HMAC of each page of the file, used or not, and passes its complaints to `body`.
    ///
    /// A page of zeros is left out: SQLite need not have written a page that is unused, and a connection that never
    /// writes refuses such a page where it is used. Engines before SQLCipher 4 do not check anything.
    /// Source: SQLCipher API, "PRAGMA cipher_integrity_check".
    ///
    /// - Parameter replaced: The pages of the file that are not in use, because the log replaces them.
    /// - Throws: ``DatabaseError``, or any error thrown by `body`.
    package func forEachUnauthenticPage(
        replaced: Set<UInt32> = [], _ body: (String) throws -> Void
    ) throws {
        guard Engine.current.hasCipherIntegrityCheck else { return }
        let refuses = layers["main"]?.cipherPages?.refusesBlankPages ?? false
        layers["main"]?.cipherPages?.refusesBlankPages = false
        defer { layers["main"]?.cipherPages?.refusesBlankPages = refuses }
        try forEachRow("PRAGMA cipher_integrity_check") { row in
            let complaint = try row.get(String.self, at: 0)
            let words = complaint.split(separator: " ")
            let isOfHMAC = complaint.hasPrefix("HMAC ")
            // A checkpoint for which there is no room leaves a part of a page at the end of the file.
            let isOfLength = complaint.hasPrefix("page ") && complaint.contains(" invalid size ")
            let page = isOfHMAC ? words.last.flatMap { Int64($0) } : isOfLength ? Int64(words[1]) : nil
            let isUnused = page.map { replaced.contains(UInt32(clamping: $0)) || isOfHMAC && isBlank(page: $0) }
            if isUnused != true { try body(complaint) }
        }
    }

    private func isBlank(page: Int64) -> Bool {
        var file: UnsafeMutablePointer<sqlite3_file>?
        guard let size = layers["main"]?.cipherPages?.size,
            sqlite3_file_control(handle, "main", SQLITE_FCNTL_FILE_POINTER, &file) == SQLITE_OK, let file
        else { return false }
        var bytes = [UInt8](repeating: 1, count: size)
        return file.pointee.pMethods.pointee.xRead(file, &bytes, Int32(size), (page - 1) * Int64(size)) == SQLITE_OK
            && bytes.allSatisfy { $0 == 0 }
    }
}

extension CipherKey {
    /// Checks that a file can have these settings and can be opened with this key alone.
    ///
    /// - Throws: ``StoreError`` with the code `configuration` or `saltMissing`.
    func checkFits(_ settings: CipherSettings, path: String) throws {
        if let fault = settings.fault() {
            throw StoreError(
                .configuration, path: path, "the cipher format is invalid: \(fault)",
                advice: "choose another cipher format, or omit the format", changed: .nothing)
        }
        try checkSalt(for: settings, path: path)
    }

    /// Checks that a file with these settings can be opened with this key alone.
    ///
    /// - Throws: ``StoreError`` with the code `saltMissing`.
    package func checkSalt(for settings: CipherSettings, path: String) throws {
        guard settings.plaintextHeaderSize == 0 || form == .rawWithSalt else {
            throw StoreError(
                .saltMissing, path: path,
                "a file with a plaintext header does not contain its salt, so the salt must be passed with the key",
                advice: "pass the raw key and the salt together, as x'…' with 96 hex digits", changed: .nothing)
        }
    }
}
