import CipherSQLite
import CipherStore

/// The options that choose the cipher format.
enum CipherOptions {
    static let compatibility = Option(
        "cipher-compatibility", value: "N", kind: .words(["4", "3", "2", "1"]),
        "The SQLCipher format: 4 or an older one (by default the engine's newest).")
    static let newCompatibility = Option(
        "cipher-compatibility", value: "N", kind: .words(["4", "3"]),
        "The SQLCipher format of the new file: 3 or 4 (by default the engine's newest).")
    static let detect = Option(
        "detect", "Try the formats 4, 3, 2 and 1 in turn; each try derives the key once.")

    static let plaintextHeader = Option(
        "plaintext-header", value: "BYTES", kind: .words(["0", "32"]),
        "How many bytes of the header stay readable: 0 (the default) or 32, with format 4 and a key that brings its salt."
    )

    /// The formats to try, in order.
    static func formats(_ invocation: Invocation) throws -> [CipherSettings] {
        guard invocation.has(detect) else { return [try settings(invocation)] }
        guard !invocation.has(compatibility) else {
            throw CommandFailure.usage("--\(detect.name) and --\(compatibility.name) cannot be given together")
        }
        return all
    }

    /// Every format that the engine knows, the newest first.
    static var all: [CipherSettings] {
        (1...Engine.current.defaultCompatibility).reversed().map { CipherSettings(compatibility: $0) }
    }

    /// The format that was asked for, or the engine's newest.
    static func settings(_ invocation: Invocation, oldest: Int = 1) throws -> CipherSettings {
        guard let text = invocation[compatibility] else { return CipherSettings() }
        guard let format = Int(text), (oldest...4).contains(format) else {
            throw CommandFailure.usage("--\(compatibility.name) takes a number from \(oldest) to 4")
        }
        guard format <= Engine.current.defaultCompatibility else {
            throw StoreError(
                .engineTooOld, "SQLCipher \(Engine.current.cipherVersion) does not know cipher format \(format)",
                advice: "use SQLCipher \(format) or later")
        }
        return CipherSettings(compatibility: format)
    }

    /// How much of the header is to stay readable.
    static func plaintextHeaderSize(_ invocation: Invocation, _ settings: CipherSettings) throws -> Int {
        switch invocation[plaintextHeader] {
        case nil, "0": return 0
        case "32" where settings.compatibility >= 4: return 32
        default: throw CommandFailure.usage("--\(plaintextHeader.name) takes 0, or 32 with format 4")
        }
    }
}
