internal import CipherErrors
package import CipherPrimitives
internal import CipherSQLite
internal import CipherSQLiteFormat
package import CipherSystemFiles

/// Finds out why a file does not open with a key, and changes nothing.
package struct Diagnostician {
    let paths: DatabasePaths
    let inspector: Inspector
    let options: DiagnosisOptions
    let cancellation: UpgradeCancellation?
    var diagnosis: Diagnosis
    /// Whether some pages contain only zeros.
    var hasBlankPages = false

    package init(
        _ paths: DatabasePaths, _ options: DiagnosisOptions, isAlone: Bool = false,
        _ cancellation: UpgradeCancellation? = nil
    ) throws {
        self.paths = paths
        self.options = options
        self.cancellation = cancellation
        inspector = Inspector(paths, isAlone: isAlone)
        diagnosis = Diagnosis(path: paths.database, size: try FileSystem.size(paths.database) ?? 0)
    }

    /// Diagnoses the file.
    ///
    /// - Parameter keyText: Returns the text of the key as it is stored. Called only if the file is not plaintext.
    ///   `nil` if there is no key.
    /// - Throws: ``StoreError`` with the code `missingFile`, `permission` or `cancelled`; any error thrown by
    ///   `keyText`.
    package consuming func run(keyText: (() throws -> SecretBytes)?) throws -> Diagnosis {
        let began = ContinuousClock.now
        do {
            try look(keyText)
        } catch let error as DatabaseError {
            throw StoreError(error, path: paths.database, during: .use)
        }
        diagnosis.seconds = began.duration(to: .now).inSeconds
        return diagnosis
    }

    private mutating func look(_ keyText: (() throws -> SecretBytes)?) throws {
        guard let status = try paths.status() else {
            throw StoreError.missingFile(paths.database, "there is no such file")
        }
        guard status.isRegular else {
            return diagnosis.add(
                .notAFile,
                status.isDirectory ? "this is a directory" : "this is not a regular file",
                "pass the path of a database file")
        }
        guard FileSystem.canRead(paths.database) else {
            throw StoreError.permission(paths.database, "the file cannot be read", .read)
        }
        guard status.size > 0 else { return addEmpty() }
        do {
            try AttemptRecord.checkSidecars(paths)
        } catch let error as StoreError where error.code == .needsRecovery || error.code == .staleSidecar {
            return diagnosis.add(.setAsideSidecar, error.detail, error.advice)
        }
        // SQLite would wait forever for a FIFO.
        if try hasSidecarWithoutContent { return addForeignSidecar() }
        let header = try inspector.header()
        if try inspector.hasOnlyFirstTransaction(header) { return addHotJournal() }
        if try inspector.isPlaintext(header) { return try lookAtPlaintext(header, hasKey: keyText != nil) }
        let file = try DatabaseFile(path: paths.database)
        let probe = try PageProbe(file, hasPlaintextHeader: header.isEncryptedWithPlaintextHeader)
        let kind = try ContentKind(file)
        let plaintextPageSize = try probe.plaintextPageSize()
        if let keyText, try findKey(kind, probe, isPlaintext: plaintextPageSize != nil, keyText) { return }
        switch inspector.content(kind, probe, plaintextPageSize: plaintextPageSize) {
        case .damagedFirstPage(let detail): diagnosis.add(.damagedFirstPage, detail, StoreError.damageAdvice)
        // A short file may be what is left of a database.
        case .notADatabase(let reason) where kind.name != nil || kind.isBlank || kind.isText || probe.size >= 512:
            diagnosis.add(
                .notADatabase, "the file is not an encrypted database: \(reason)",
                "pass the path of the database file")
        case .notADatabase, .maybeEncrypted: addUnknown(probe, kind, hasKey: keyText != nil)
        }
    }

    private mutating func addEmpty() {
        let rest =
            (try? SidecarScan.holdsPages(paths)) == true
            ? ", but its -wal or -journal still contains database pages" : ""
        diagnosis.add(
            .empty, "the file is empty\(rest)",
            "restore the file from a backup; SQLite treats an empty file as a new database")
    }

    // MARK: Plaintext

    private mutating func lookAtPlaintext(_ header: FileHeader, hasKey: Bool) throws {
        let pages = header.claimedPages ?? 0
        if try SidecarFile(paths.wal).map(LogHeader.init) == nil,
            try header.fileSize < 512 || lacksPages(pages, pageSize: header.pageSize, fileSize: header.fileSize)
        {
            diagnosis.addTruncated(pages: pages, pageSize: header.pageSize, header.fileSize)
        } else {
            try lookBesidePlaintext()
        }
        guard hasKey else { return }
        diagnosis.add(
            .plaintext, "the file is not encrypted: it is a plaintext SQLite database",
            "open the file without a key, or encrypt it")
    }

    private mutating func lookBesidePlaintext() throws {
        do {
            switch try inspector.inspect(provider: nil, formats: []).state {
            case .staleSidecar: addStale()
            case .needsRecovery: addHotJournal()
            default: break
            }
        } catch let error as StoreError where error.code == .corrupt {
            diagnosis.add(.damagedPages, "the file is damaged: \(error.detail)", error.advice)
        } catch let error as StoreError where error.code == .nameTaken {
            addForeignSidecar()
        }
    }

    // MARK: Encrypted

    /// Searches for the file's key, and reports on the file if it is found.
    ///
    /// - Parameter isPlaintext: Whether most pages are those of a plaintext database, so that only the key as given
    ///   is tried.
    /// - Returns: Whether the key was found.
    private mutating func findKey(
        _ content: ContentKind, _ probe: PageProbe, isPlaintext: Bool, _ keyText: () throws -> SecretBytes
    ) throws -> Bool {
        let text = try keyText()
        if try opensWithLog(text, probe) { return true }
        let readings = KeyReading.all(of: text).filter { !isPlaintext || $0.deviations.isEmpty }
        var search = KeySearch(probe, options, path: paths.database, cancellation)
        let isDeep =
            content.isRandom && content.name == nil && !content.hasReadablePageSize && probe.start.count >= 512
        let found = try search.run(readings, isDeep: isDeep)
        diagnosis.derivations = search.derivations
        diagnosis.rounds = search.rounds
        diagnosis.isComplete = !search.isLimited
        guard let found else { return false }
        try lookAtFound(found, probe)
        return true
    }

    /// Returns whether the key as given opens the database, all pages of which are in its log.
    ///
    /// The pages in the file may have the former key after `PRAGMA rekey` in WAL mode, or another salt.
    private mutating func opensWithLog(_ text: SecretBytes, _ probe: PageProbe) throws -> Bool {
        guard let log = try SidecarFile(paths.wal),
            try LogHeader(log)?.committedPages(in: log)?.areAllPages == true, let key = try? CipherKey(text: text)
        else { return false }
        let opened = try? inspector.readingEncrypted(
            key: key, settings: options.format, hasPlaintextHeader: probe.hasPlaintextHeader
        ) { _, _ in true }
        guard opened == true else { return false }
        diagnosis.keyForm = key.form
        diagnosis.format = options.format
        return true
    }

    private mutating func addUnknown(_ probe: PageProbe, _ content: ContentKind, hasKey: Bool) {
        if content.hasReadablePageSize {
            diagnosis.add(
                .otherEncryption,
                "bytes 16 to 23 of the file are part of an unencrypted database header: SQLCipher encrypts these "
                    + "bytes, but SQLite's own encryption (SEE), SQLite3 Multiple Ciphers and wxSQLite3 do not",
                "open the file with the library that created it")
        } else if probe.size < 512 {
            diagnosis.add(
                .truncated,
                "the file has \(diagnosis.size) byte\(diagnosis.size == 1 ? "" : "s"), which is less than the smallest page "
                    + "size (512 bytes): it is truncated, or it is not a database",
                StoreError.damageAdvice)
        } else if probe.hasPlaintextHeader, hasKey {
            addSaltMissing(isKeyRight: false)
        } else if !hasKey {
            diagnosis.add(
                .keyMissing,
                "the file is encrypted, damaged or not a database; the key is needed to determine which",
                "pass the key")
        } else {
            let cut =
                probe.size % 512 == 0
                ? "" : ". The file may have been truncated, because its size is not a multiple of 512 bytes"
            diagnosis.add(
                .undetermined,
                "no variant of the key opens the file in any SQLCipher format that was tried. The file has another "
                    + "key, uses another kind of encryption, such as SQLite3 Multiple Ciphers or SEE, or is not a "
                    + "database. These cases look alike, because encrypted bytes look random" + cut,
                diagnosis.isComplete
                    ? "find the file's key" : "raise the search limits, or find the file's key")
        }
    }
}

extension Diagnosis {
    mutating func addTruncated(pages: Int, pageSize: Int, _ size: Int64) {
        let wanted =
            pages == 0 ? "" : ", but its header declares \(pages) page\(pages == 1 ? "" : "s") of \(pageSize) bytes"
        add(.truncated, "the file is truncated: it has \(size) bytes\(wanted)", StoreError.damageAdvice)
    }
}
