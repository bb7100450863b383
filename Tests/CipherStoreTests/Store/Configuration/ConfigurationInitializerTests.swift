internal import CipherDatabaseConversion
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Testing

/// The settings that the initializers of a configuration accept.
struct ConfigurationInitializerTests {
    @Test("The initializer of the encryption settings accepts every setting")
    func encryption() {
        let former = CipherSettings(compatibility: 3)
        let given = Configuration.Encryption(
            isEnabled: false, sinceVersion: 2, unexpectedPlaintext: .encrypt, whenDisabled: .decrypt, format: former,
            formerFormats: [former], whenFormerFormat: .upgrade, keepBackup: true, onDamage: .recover,
            when: .whileOpen, maximumAttempts: 2, onRepeatedFailure: .openPlaintext, shadow: true)
        let initial = Mirror(reflecting: Configuration.Encryption(format: CipherSettings(compatibility: 4)))
        for (old, new) in zip(initial.children, Mirror(reflecting: given).children) {
            #expect("\(old.value)" != "\(new.value)", "\(new.label ?? "") cannot be set")
        }
    }

    @Test("The initializer of a configuration accepts every setting")
    func configuration() throws {
        let table = DeclaredTable(name: "t", columns: [.init(name: "a", definition: "INTEGER")])
        let given = Configuration(
            databaseName: "b.db", version: 2, encryption: .init(isEnabled: false), recordedVersion: .stepRecords,
            assumedVersion: 1, schema: .tables([table]), destructiveChanges: .allow, destructiveSteps: ["update 2"],
            collations: [Collation(name: "c") { _, _ in 0 }], functions: [SQLFunction("f") { _ in .null }],
            tokenizers: [Tokenizer("k") { _, _ in [] }], columnForms: ColumnForms(dates: .text),
            launch: LaunchHooks(unchanged: { _ in }))
        let initial = Mirror(reflecting: Configuration(databaseName: "a.db", version: 1))
        for (old, new) in zip(initial.children, Mirror(reflecting: given).children) {
            // These two are not public.
            guard let name = new.label, !["sharesFolder", "file"].contains(name) else { continue }
            #expect("\(old.value)" != "\(new.value)", "\(name) cannot be set")
        }
    }
}
