internal import CipherDatabaseConversion
internal import CipherErrors
internal import CipherHistory
internal import CipherStore
import Testing

/// The decision table, with every combination.
struct DecisionTests {
    /// One combination of the state of the file and the configuration.
    struct Case: Sendable, CustomTestStringConvertible {
        var surface: Inspector.Surface
        var recorded: SchemaVersion?
        var isStamped = false
        var keyFits = false
        var isChangeWanted = false
        var isEnabled = true
        var unexpected = Configuration.UnexpectedPlaintext.refuse
        var testDescription: String {
            "\(surface), recorded \(recorded.map { "\($0)" } ?? "nothing"), stamped \(isStamped), key fits \(keyFits), "
                + "change wanted \(isChangeWanted), "
                + "enabled \(isEnabled), unexpectedPlaintext \(unexpected)"
        }

        static let all: [Case] = surfaces.flatMap { surface in
            versions.flatMap { version in
                [true, false].flatMap { stamped in
                    [true, false].flatMap { fits in
                        [true, false].flatMap { enabled in
                            Configuration.UnexpectedPlaintext.allCases.map {
                                Case(
                                    surface: surface, recorded: version, isStamped: stamped, keyFits: fits,
                                    isChangeWanted: fits && stamped, isEnabled: enabled, unexpected: $0)
                            }
                        }
                    }
                }
            }
        }

        private static let surfaces: [Inspector.Surface] = [
            .missing, .empty, .plaintext, .opaque(hasPlaintextHeader: false), .opaque(hasPlaintextHeader: true),
            .staleSidecar,
        ]
        /// No version, below the threshold, the threshold, between, the app's own version, and a newer one.
        static let versions: [SchemaVersion?] = [nil, 0, 23, 24, 25, 26, 27, SchemaVersion("26.1")]
    }

    private func decide(_ found: Case, sinceVersion: SchemaVersion? = 24) -> Decision {
        let configuration = Configuration(
            databaseName: "app.db", version: 26,
            encryption: .init(
                isEnabled: found.isEnabled, sinceVersion: sinceVersion, unexpectedPlaintext: found.unexpected))
        return Decision.make(
            Decision.Facts(
                surface: found.surface, recorded: found.recorded, stamp: found.isStamped ? .plaintext : nil,
                keyFits: found.keyFits, isChangeWanted: found.isChangeWanted), configuration)
    }

    @Test(
        "A missing file and one of 0 bytes are a fresh install",
        arguments: Case.all.filter { $0.surface == .missing || $0.surface == .empty })
    func fresh(found: Case) {
        #expect(decide(found) == .proceed(found.isEnabled ? .create : .createPlaintext))
    }

    @Test(
        "A stale sidecar is refused, whatever else is true", arguments: Case.all.filter { $0.surface == .staleSidecar })
    func stale(found: Case) {
        #expect(decide(found) == .refuse(.staleSidecar))
    }

    @Test(
        "A plaintext file is encrypted if it is older than encryption or stamped",
        arguments: Case.all.filter { $0.surface == .plaintext })
    func plaintext(found: Case) {
        let number = found.recorded?.components.first ?? 0
        let expected: Decision =
            if found.recorded == 27 || found.recorded == SchemaVersion("26.1") {
                .refuse(.downgrade)
            } else if !found.isEnabled {
                .proceed(.openPlaintext)
            } else if number < 24 || found.isStamped || found.unexpected == .encrypt {
                .proceed(.encrypt)
            } else {
                .refuse(.unexpectedPlaintext)
            }
        #expect(decide(found) == expected)
    }

    @Test(
        "An opaque file is opened with its key, and never created anew",
        arguments: Case.all.filter { if case .opaque = $0.surface { true } else { false } })
    func opaque(found: Case) {
        let expected: Decision =
            if !found.keyFits {
                .refuse(.keyDoesNotFit)
            } else if found.recorded == 27 || found.recorded == SchemaVersion("26.1") {
                .refuse(.downgrade)
            } else {
                found.isEnabled ? .proceed(found.isChangeWanted ? .rekey : .open) : .refuse(.encryptionDisabled)
            }
        #expect(decide(found) == expected)
    }

    @Test("With encryption off, an opaque file is decrypted only if this is allowed")
    func whenDisabled() {
        let facts = Decision.Facts(surface: .opaque(hasPlaintextHeader: false), recorded: 24, keyFits: true)
        var configuration = Configuration(databaseName: "app.db", version: 26, encryption: .init(isEnabled: false))
        #expect(Decision.make(facts, configuration) == .refuse(.encryptionDisabled))
        configuration.encryption.whenDisabled = .decrypt
        #expect(Decision.make(facts, configuration) == .proceed(.decrypt))
    }

    @Test(
        "Without sinceVersion, every plaintext file not encrypted by CipherStore before is a legacy file",
        arguments: [0, 25, 26], [nil, HistoryTable.Stamp.plaintext, .encrypted])
    func withoutThreshold(recorded: Int, stamp: HistoryTable.Stamp?) {
        let configuration = Configuration(databaseName: "app.db", version: 26)
        let facts = Decision.Facts(surface: .plaintext, recorded: SchemaVersion(recorded), stamp: stamp)
        #expect(
            Decision.make(facts, configuration)
                == (stamp == .encrypted ? .refuse(.unexpectedPlaintext) : .proceed(.encrypt)))
    }
}
