internal import CipherConfigurationText
internal import CipherErrors
internal import CipherHistory
internal import CipherSQLite
internal import CipherSchemaMigration
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// Files that are not configurations cause a typed error, and never a trap or a hang.
struct ConfigurationSyntaxTests {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private static let valid = #"{"dbName": "a.db", "dbVersion": 1}"#

    private static func xml(_ content: String) -> Data {
        Data(#"<?xml version="1.0" encoding="UTF-8"?><plist version="1.0">\#(content)</plist>"#.utf8)
    }

    /// Returns a binary property list in which each object is a list that names the next one `width` times.
    private static func binary(depth: Int, width: Int) -> Data {
        var data = Data("bplist00".utf8)
        var offsets: [UInt32] = []
        func append(_ number: UInt32) { data.append(contentsOf: withUnsafeBytes(of: number.bigEndian, Array.init)) }
        for index in 0..<depth {
            offsets.append(UInt32(data.count))
            data.append(0xA0 | UInt8(width))
            for _ in 0..<width { append(UInt32(index + 1)) }
        }
        offsets.append(UInt32(data.count))
        data.append(0xA0)
        let table = UInt32(data.count)
        offsets.forEach(append)
        data.append(contentsOf: [0, 0, 0, 0, 0, 0, 4, 4])
        for number in [UInt32(offsets.count), 0, table] {
            append(0)
            append(number)
        }
        return data
    }

    private func failure(_ data: Data) throws -> ConfigurationSyntax.Failure.Reason? {
        do {
            _ = try ConfigurationSyntax.parse([UInt8](data))
            return nil
        } catch {
            return error.reason
        }
    }

    @Test(
        "Bytes that are not a configuration are refused with the reason",
        arguments: [
            (Data(), .empty),
            (Data(" \n\t".utf8), .empty),
            (Data("hello".utf8), .unknownFormat),
            (Data([0x53, 0x51, 0x4C, 0x00, 0xFF]), .unknownFormat),
            (Data([0xFF, 0xFE, 0x3C, 0x00]), .utf16),
            (Data([0x3C, 0x00, 0x3F, 0x00]), .utf16),
            (Data("{ dbName = \"a.db\"; }".utf8), .openStep),
            (Data("bplist00".utf8), .malformed("property list", "the binary data is damaged")),
        ] as [(Data, ConfigurationSyntax.Failure.Reason)])
    func told(data: Data, expected: ConfigurationSyntax.Failure.Reason) throws {
        #expect(try failure(data) == expected)
    }

    @Test("Deep nesting is refused before it overflows the stack", arguments: [33, 20_000])
    func deep(levels: Int) throws {
        let open = String(repeating: "<array>", count: levels)
        let close = String(repeating: "</array>", count: levels)
        #expect(try failure(Self.xml(open + close)) == .tooDeep)
        #expect(try failure(Self.xml(open)) == .tooDeep)
        #expect(try failure(Self.binary(depth: levels, width: 1)) == .tooDeep)
        let json = String(repeating: "[", count: levels) + String(repeating: "]", count: levels)
        #expect(try failure(Data(json.utf8)) == .tooDeep)
    }

    @Test func `Nesting that is allowed is not refused, nor are many values side by side`() throws {
        let deep = String(repeating: "<array>", count: 32) + String(repeating: "</array>", count: 32)
        #expect(try failure(Self.xml(deep)) == nil)
        let wide = "<array>" + String(repeating: "<array/><dict></dict>", count: 100) + "</array>"
        #expect(try failure(Self.xml(wide)) == nil)
        let comments = String(repeating: "<!-- <array> -->", count: 100)
        #expect(try failure(Self.xml("<array>\(comments)</array>")) == nil)
    }

    @Test func `A small file that names one value a million times is refused`() throws {
        #expect(try failure(Self.binary(depth: 20, width: 7)) == .tooManyValues)
    }

    @Test func `A byte order mark and leading blanks do not matter`() throws {
        for prefix in ["\u{FEFF}", "\n  ", "\u{FEFF}\n"] {
            let configuration = try Configuration(data: Data((prefix + Self.valid).utf8), place: "app")
            #expect(configuration.version == 1)
        }
    }

    @Test(
        "Booleans and numbers in a property list are not confused",
        arguments: [
            ("<integer>1</integer>", "<true/>", nil),
            ("<true/>", "<true/>", "dbVersion must be a whole number or a dotted version"),
            ("<integer>1</integer>", "<integer>1</integer>", "encryption.enabled must be true or false, not a who"),
            ("<real>1.0</real>", "<false/>", nil),
            ("<real>1.5</real>", "<false/>", "dbVersion must be a whole number or a dotted version"),
            ("<string>1,0</string>", "<true/>", "dbVersion must be a non-negative integer, or"),
            ("<date>2020-01-01T00:00:00Z</date>", "<true/>", "dbVersion must be a whole number or a dotted version"),
        ] as [(String, String, String?)])
    func propertyListTypes(version: String, enabled: String, expected: String?) throws {
        let xml = Self.xml(
            "<dict><key>dbName</key><string>a.db</string><key>dbVersion</key>\(version)"
                + "<key>encryption</key><dict><key>enabled</key>\(enabled)</dict></dict>")
        let list = try PropertyListSerialization.propertyList(from: xml, format: nil)
        let binary = try PropertyListSerialization.data(fromPropertyList: list, format: .binary, options: 0)
        for data in [xml, binary] {
            guard let expected else {
                #expect(try Configuration(data: data, place: "app").version == 1)
                continue
            }
            let error = #expect(throws: StoreError.self) { try Configuration(data: data, place: "app") }
            #expect(error?.description.contains(expected) == true)
        }
    }

    @Test(
        "The first version that encrypts may be a number or text with dots",
        arguments: [
            ("24", SchemaVersion(24)), ("24.0", 24), ("\"2.0.0\"", 2), ("\"1.10\"", SchemaVersion("1.10") ?? 0),
        ])
    func sinceVersion(text: String, expected: SchemaVersion) throws {
        let json = #"{"dbName": "a.db", "dbVersion": 1, "encryption": {"sinceVersion": \#(text)}}"#
        #expect(try Configuration(data: Data(json.utf8), place: "app").encryption.sinceVersion == expected)
    }

    @Test func `Every key of the encryption is read`() throws {
        let json = """
            {"dbName": "a.db", "dbVersion": 1, "destructiveChanges": "allow", "encryption": {
            "enabled": false, "sinceVersion": 3, "unexpectedPlaintext": "encrypt", "whenDisabled": "decrypt",
            "cipherCompatibility": 4, "pageSize": 8192, "kdfIterations": 1000, "hmacAlgorithm": "sha256",
            "kdfAlgorithm": "sha1", "plaintextHeaderSize": 32, "formerFormats": [3, {"cipherCompatibility": 4,
            "pageSize": 1024}], "whenFormerFormat": "upgrade", "keepBackup": true, "maximumAttempts": 2,
            "onRepeatedFailure": "openPlaintext"}}
            """
        let configuration = try Configuration(data: Data(json.utf8), place: "app", newestFormat: 4)
        #expect(
            configuration.encryption
                == Configuration.Encryption(
                    isEnabled: false, sinceVersion: 3, unexpectedPlaintext: .encrypt, whenDisabled: .decrypt,
                    format: CipherSettings(
                        compatibility: 4, pageSize: 8192, kdfIterations: 1000, hmacAlgorithm: .sha256,
                        kdfAlgorithm: .sha1, plaintextHeaderSize: 32),
                    formerFormats: [
                        CipherSettings(compatibility: 3), CipherSettings(compatibility: 4, pageSize: 1024),
                    ], whenFormerFormat: .upgrade, keepBackup: true, maximumAttempts: 2,
                    onRepeatedFailure: .openPlaintext))
        #expect(configuration.destructiveChanges == .allow)
    }

    @Test func `A place of the version in a table is read with its filter and offset`() throws {
        let json = """
            {"dbName": "a.db", "dbVersion": 1, "recordedVersion": {"source": "table", "table": "t", "column": "v",
            "where": {"id": 1, "name": "x"}, "offset": -1}}
            """
        let configuration = try Configuration(data: Data(json.utf8), place: "app")
        guard case .table(let column) = configuration.recordedVersion else {
            Issue.record("the version is recorded elsewhere")
            return
        }
        #expect(column == .init(table: "t", column: "v", filter: ["id": "1", "name": "x"], offset: -1))
    }

    @Test("Damaged configuration files cause a typed error", arguments: [1, 2, 3])
    func damaged(seed: UInt64) throws {
        var generator = Generator(state: seed)
        let xml = try Data(contentsOf: Repository.examples.appending(path: "ChatStore.plist"))
        let list = try PropertyListSerialization.propertyList(from: xml, format: nil)
        let binary = BinaryPropertyListWriter.data(list)
        let json = try Data(contentsOf: Repository.examples.appending(path: "ChatStore.json"))
        var refused = 0
        for round in 0..<600 {
            var data = [xml, binary, json][round % 3]
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                data[Int.random(in: 0..<data.count, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
            }
            do {
                _ = try Configuration(data: data, place: "app")
            } catch let error as StoreError where error.code == .configuration {
                refused += 1
            }
        }
        #expect(refused > 40)
    }

    private struct Generator: RandomNumberGenerator {
        var state: UInt64

        // SplitMix64, so that a failure can be repeated.
        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = state
            mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
            return mixed ^ (mixed >> 31)
        }
    }

    @Test(
        "A path without a readable configuration file is refused with the reason",
        arguments: ["missing", "folder", "fifo", "large"])
    func unreadable(kind: String) throws {
        let path = folder.path("app.json")
        let expected: StoreError.Code
        switch kind {
        case "folder":
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
            expected = .notAFile
        case "fifo":
            try #require(mkfifo(path, 0o600) == 0)
            expected = .notAFile
        case "large":
            try Data(count: ConfigurationSyntax.maximumSize + 1).write(to: URL(filePath: path))
            expected = .configuration
        default: expected = .missingFile
        }
        let error = #expect(throws: StoreError.self) { try Configuration(contentsOf: URL(filePath: path)) }
        #expect(error?.code == expected)
        #expect(error?.path == path)
    }

    @Test func `A configuration is a file, not a web address`() throws {
        let url = try #require(URL(string: "https://example.com/app.json"))
        let error = #expect(throws: StoreError.self) { try Configuration(contentsOf: url) }
        #expect(error?.code == .configuration)
    }

    @Test(
        "A misspelled word finds the intended one, and any other word finds none",
        arguments: [
            ("dbnmae", "dbName"), ("DBNAME", "dbName"), ("encription", "encryption"), ("db", nil), ("xyz", nil),
        ] as [(String, String?)])
    func suggestion(word: String, expected: String?) {
        #expect(Suggestion.nearest(to: word, among: ["dbName", "dbVersion", "encryption"]) == expected)
    }
}
