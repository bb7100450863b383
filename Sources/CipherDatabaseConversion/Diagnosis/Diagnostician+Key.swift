internal import CipherErrors
internal import CipherPageOpening
internal import CipherPrimitives
internal import CipherSQLite
internal import CipherSQLiteFormat
internal import CipherSystemFiles

/// Reports further findings about a file whose key was found.
extension Diagnostician {
    mutating func lookAtFound(_ found: KeySearch.Found, _ probe: PageProbe) throws {
        diagnosis.keyForm = found.reading.form
        addDeviations(found.reading)
        let kdfs = found.derivation.map { [$0.digest] } ?? CipherSettings.Digest.allCases
        let salts = [found.reading.salt, probe.salt].compactMap { $0 }
        guard let sealed = probe.sealed(under: found.key, salts: salts, kdfs) else {
            return lookAtUnsealed(found, probe)
        }
        if let salt = found.reading.salt, let right = sealed.salt, salt != right {
            diagnosis.add(
                .keySalt, "the salt passed with the raw key differs from the salt stored in the file",
                "pass the raw key without a salt, as x'…' with 64 hex digits")
        }
        addFormat(sealed, found.derivation)
        try lookAtPages(sealed, probe)
        try lookBeside(sealed)
        try open(sealed)
    }

    /// Reports on a file whose key is right although no page is authentic.
    private mutating func lookAtUnsealed(_ found: KeySearch.Found, _ probe: PageProbe) {
        if probe.hasPlaintextHeader {
            return found.reading.salt == nil
                ? addSaltMissing(isKeyRight: true)
                : diagnosis.add(
                    .keySalt, "the raw key is correct, but the salt passed with it is not the file's salt",
                    "pass the salt that the file was created with")
        }
        let layout = probe.layout(under: found.key)
        guard found.evidence == .header else {
            return diagnosis.add(
                .damagedFirstPage,
                "the first page, which contains the salt, is damaged; the key is correct, because it decrypts other "
                    + "pages",
                StoreError.damageAdvice)
        }
        if layout == nil, probe.size % 512 != 0 || probe.size < options.format.pageSize {
            return diagnosis.addTruncated(pages: 0, pageSize: 0, probe.size)
        }
        if let layout, found.reading.form == .passphrase, probe.hasOtherPages(of: layout.pageSize) {
            return diagnosis.add(
                .hmacDetail,
                "the key is correct, but the page HMACs are computed with unknown settings",
                "open the file with SQLCipher directly, using the pragmas that were used to create the file, such as "
                    + "PRAGMA fast_kdf_iter"
            )
        }
        if layout != nil, found.reading.form != .passphrase {
            return diagnosis.add(
                .damagedFirstPage,
                "the key is correct, but no page is authentic: the salt at the beginning of the file was changed, or "
                    + "the page HMACs were computed with unknown settings",
                StoreError.damageAdvice)
        }
        diagnosis.add(
            .damagedFirstPage, "the key is correct, but the part of the first page that follows the header is damaged",
            StoreError.damageAdvice)
    }

    mutating func addSaltMissing(isKeyRight: Bool) {
        diagnosis.add(
            .saltMissing,
            "the file has a plaintext header and does not contain its salt, so the salt must be passed with the key; "
                + (isKeyRight ? "the key is correct" : "no key can be tried without the salt"),
            "pass the raw key, followed by the salt that the file was created with, as x'…' with 96 hex digits")
    }

    // MARK: Pages

    private mutating func lookAtPages(_ sealed: PageProbe.Sealed, _ probe: PageProbe) throws {
        let seal = sealed.seal
        let besides = try pagesBeside(pageSize: seal.pageSize)
        guard let start = sealed.firstPageStart else {
            if !besides.contains(1) {
                diagnosis.add(
                    .damagedFirstPage, "the first page is damaged; the key is correct, because it decrypts other pages",
                    StoreError.damageAdvice)
            }
            return
        }
        let whole = probe.size / Int64(seal.pageSize)
        if let decryption = sealed.key.withUnsafeBytes({ AESCBC(.decrypt, key: $0) }),
            let page = seal.opened(Array(probe.start.prefix(seal.pageSize)), from: start, decryption),
            let claimed = FileHeader(bytes: page, fileSize: probe.size).claimedPages,
            try lacksPages(claimed, pageSize: seal.pageSize, fileSize: probe.size)
        {
            diagnosis.addTruncated(pages: claimed, pageSize: seal.pageSize, probe.size)
        }
        guard let salt = sealed.salt, let authenticator = PageAuthenticator(seal, key: sealed.key, salt: salt) else {
            return
        }
        try authenticate(2..<max(2, whole + 1), seal, authenticator, probe, besides)
    }

    /// Authenticates pages, except for those of which a log or journal has another version.
    private mutating func authenticate(
        _ pages: Range<Int64>, _ seal: PageSeal, _ authenticator: PageAuthenticator, _ probe: PageProbe,
        _ besides: Set<UInt32>
    ) throws {
        let deadline = ContinuousClock.now + options.timeLimit
        let lockPage = Int64(PageGeometry.lockPage(seal.pageSize))
        var damaged: [Int64] = []
        for number in pages where number != lockPage && !besides.contains(UInt32(clamping: number)) {
            if number.isMultiple(of: 256) {
                if cancellation?.isCancelled == true { throw KeySearch.cancelled(paths.database) }
                guard ContinuousClock.now < deadline else {
                    diagnosis.isComplete = false
                    break
                }
            }
            let page = try probe.file.read(at: (number - 1) * Int64(seal.pageSize), count: seal.pageSize)
            let isAuthentic = page.withUnsafeBytes {
                authenticator.isAuthentic($0, UInt32(clamping: number), from: 0)
            }
            // SQLCipher treats a page of zeros as a page that was never written.
            guard !isAuthentic else { continue }
            if page.contains(where: { $0 != 0 }) { damaged.append(number) } else { hasBlankPages = true }
        }
        guard let first = damaged.first else { return }
        diagnosis.add(
            .damagedPages,
            damaged.count == 1
                ? "the key is correct, but page \(first) is not authentic"
                : "the key is correct, but \(damaged.count) pages are not authentic; the first one is page \(first)",
            StoreError.damageAdvice)
    }

    // MARK: SQLCipher's own result

    /// Opens the file with the settings that were found, unless there is an obstacle.
    private mutating func open(_ sealed: PageProbe.Sealed) throws {
        let obstacles: Set<Diagnosis.Kind> = [
            .damagedFirstPage, .damagedPages, .truncated, .staleLog, .staleJournal,
        ]
        guard let format = diagnosis.format, format.fault() == nil, sealed.firstPageStart != nil,
            !diagnosis.causes.contains(where: { obstacles.contains($0.kind) }),
            let salt = try sealed.salt ?? inspector.header().salt.map({ $0.withUnsafeBytes { Array($0) } })
        else { return }
        let key = try CipherKey.raw(sealed.key, salt: SecretBytes(salt))
        let deadline = ContinuousClock.now + options.timeLimit
        let (cancellation, isUnproven) = (cancellation, hasBlankPages || sealed.seal.hmac == nil)
        do {
            let complaint = try inspector.readingEncrypted(
                key: key, settings: format, hasPlaintextHeader: sealed.hasPlaintextHeader
            ) { connection, _ in
                // The following checks for a damaged page that no HMAC can reveal.
                guard isUnproven else { return "ok" }
                connection.setProgressHandler(every: 10_000) {
                    cancellation?.isCancelled != true && ContinuousClock.now < deadline
                }
                var complaint = "ok"
                try connection.computingBySchema("PRAGMA quick_check") { row in
                    let message = try row.get(String.self, at: 0)
                    if complaint == "ok", Self.isAboutPages(message) { complaint = message }
                }
                return complaint
            }
            diagnosis.causes.removeAll { $0.kind == .hotJournal }
            guard complaint != "ok" else { return }
            diagnosis.add(
                .damagedPages, "the key is correct, but SQLCipher reports damage: \(complaint ?? "page 1")",
                StoreError.damageAdvice)
        } catch let error as StoreError where error.code == .staleSidecar {
            addStale()
        } catch let error as StoreError where error.code == .needsRecovery {
            addHotJournal()
        } catch let error as StoreError where error.code == .corrupt {
            diagnosis.add(
                .damagedPages, "the key is correct, but the database is damaged: \(error.detail)",
                error.advice)
        } catch let error as DatabaseError where error.code == DatabaseError.generic {
            // The check requires a collation or function of the app.
            return
        } catch let error as DatabaseError where error.isInterrupted || error.isTooBig {
            if cancellation?.isCancelled == true { throw KeySearch.cancelled(paths.database) }
            diagnosis.isComplete = false
        }
    }

    /// Returns whether a complaint of `quick_check` concerns pages, and not values that a table forbids.
    private static func isAboutPages(_ complaint: String) -> Bool {
        ["*** ", "Tree ", "On tree ", "Page ", "Main freelist", "Freelist"].contains(where: complaint.hasPrefix)
    }
}
