internal import CipherErrors
internal import CipherSQLite

/// The options that choose the cipher format.
enum CipherOptions {
    private static let form =
        "To override the format's defaults, append settings, as in 4,page-size=8192,kdf-iterations=64000. The "
        + "values of hmac and kdf can be sha1, sha256 or sha512."

    static let compatibility = Option(
        "cipher-compatibility", value: "N", kind: .words(numbers(CipherFormat.all)),
        "The SQLCipher format: 4, 3, 2 or 1 (default: the newest that the installed SQLCipher supports). \(form)")
    static let newCompatibility = Option(
        "cipher-compatibility", value: "N", kind: .words(numbers(CipherFormat.written)),
        "The SQLCipher format of the new file: 4 or 3 (default: the newest that the installed SQLCipher supports). "
            + form)
    static let oldCompatibility = Option(
        "old-cipher-compatibility", value: "N", kind: .words(numbers(CipherFormat.all)),
        "The current SQLCipher format of the file, in the same form as for --cipher-compatibility. By default, "
            + "formats 4, 3 and 2 are tried. Format 1 must be named, because its pages are not authenticated.")
    static let detect = Option(
        "detect",
        "Try SQLCipher formats 4, 3 and 2 in turn. With a passphrase, each attempt takes time, because it "
            + "derives a key. Format 1 is not tried, because its pages are not authenticated: to open such a file, use "
            + "--cipher-compatibility 1.")

    private static func numbers(_ formats: [CipherFormat]) -> [String] { formats.reversed().map { "\($0.number)" } }

    static let plaintextHeader = Option(
        "plaintext-header", value: "BYTES", kind: .words(["0", "32"]),
        "The number of header bytes to leave unencrypted: 0 (the default) or 32. The value 32 requires format 4 and a "
            + "raw key with a salt."
    )

    /// Returns the formats to try, in order.
    static func formats(_ invocation: Invocation) throws -> [CipherSettings] {
        guard invocation.has(detect) else { return [try settings(invocation)] }
        guard !invocation.has(compatibility) else {
            throw CommandFailure.usage("--\(detect.name) and --\(compatibility.name) cannot be used together")
        }
        return CipherSettings.authenticated()
    }

    /// Returns the formats to try on the file that the command changes.
    ///
    /// - Parameter configured: The formats of the app's configuration, which are tried first.
    static func oldFormats(
        _ invocation: Invocation, besides configured: [CipherSettings] = []
    ) throws -> [CipherSettings] {
        guard invocation.has(oldCompatibility) else {
            return configured + CipherSettings.authenticated().filter { !configured.contains($0) }
        }
        return [try settings(invocation, oldCompatibility)]
    }

    /// Returns the requested format, or the engine's newest.
    static func settings(
        _ invocation: Invocation, _ option: Option = compatibility, among formats: [CipherFormat] = CipherFormat.all
    ) throws -> CipherSettings {
        guard let text = invocation[option] else { return CipherSettings() }
        let parts = text.split(separator: ",", omittingEmptySubsequences: false)
        guard let format = Int(parts[0]), formats.contains(where: { $0.number == format }) else {
            let numbers = formats.map(\.number)
            throw CommandFailure.usage(
                "--\(option.name) must be a number from \(numbers.min() ?? 0) to \(numbers.max() ?? 0)")
        }
        guard format <= Engine.current.defaultCompatibility else {
            throw StoreError(
                .engineTooOld, "SQLCipher \(Engine.current.cipherVersion) does not support cipher format \(format)",
                advice: "use SQLCipher \(format) or later")
        }
        let details = try Details(parts.dropFirst(), option)
        let settings = CipherSettings(
            compatibility: format, pageSize: details.pageSize, kdfIterations: details.kdfIterations,
            hmacAlgorithm: details.hmac, kdfAlgorithm: details.kdf)
        if let fault = settings.fault() { throw CommandFailure.usage("--\(option.name): \(fault)") }
        return settings
    }

    /// The settings that differ from a format's defaults.
    private struct Details {
        var pageSize: Int?
        var kdfIterations: Int?
        var hmac: CipherSettings.Digest?
        var kdf: CipherSettings.Digest?

        init(_ parts: some Sequence<Substring>, _ option: Option) throws {
            for part in parts {
                let words = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                let value = words.count == 2 ? String(words[1]) : ""
                let isRead: Bool
                switch words[0] {
                case "page-size":
                    pageSize = Int(value)
                    isRead = pageSize != nil
                case "kdf-iterations":
                    kdfIterations = Int(value)
                    isRead = kdfIterations != nil
                case "hmac":
                    hmac = CipherSettings.Digest(rawValue: value)
                    isRead = hmac != nil
                case "kdf":
                    kdf = CipherSettings.Digest(rawValue: value)
                    isRead = kdf != nil
                default: isRead = false
                }
                guard isRead else {
                    throw CommandFailure.usage(
                        "--\(option.name) contains an invalid setting after the format number",
                        advice: "use page-size=BYTES, kdf-iterations=ROUNDS, hmac=DIGEST or kdf=DIGEST, where DIGEST "
                            + "is sha1, sha256 or sha512")
                }
            }
        }
    }

    /// Returns the option value that describes settings.
    static func text(of settings: CipherSettings) -> String {
        let usual = CipherSettings(compatibility: settings.compatibility)
        var parts = ["\(settings.compatibility)"]
        if settings.pageSize != usual.pageSize { parts.append("page-size=\(settings.pageSize)") }
        if settings.kdfIterations != usual.kdfIterations { parts.append("kdf-iterations=\(settings.kdfIterations)") }
        if settings.hmacAlgorithm != usual.hmacAlgorithm { parts.append("hmac=\(settings.hmacAlgorithm.rawValue)") }
        if settings.kdfAlgorithm != usual.kdfAlgorithm { parts.append("kdf=\(settings.kdfAlgorithm.rawValue)") }
        return parts.joined(separator: ",")
    }

    /// Returns the format of the new file.
    static func newSettings(_ invocation: Invocation) throws -> CipherSettings {
        var settings = try settings(invocation, newCompatibility, among: CipherFormat.written)
        switch invocation[plaintextHeader] {
        case nil, "0": break
        case "32" where settings.traits.canHaveReadableHeader: settings.plaintextHeaderSize = 32
        default: throw CommandFailure.usage("--\(plaintextHeader.name) must be 0 or 32, and 32 requires format 4")
        }
        return settings
    }
}
