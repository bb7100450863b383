import CipherTestSupport
import Foundation

/// One damaged configuration, key file or command line, which is passed to the tool and judged by the exit status.
struct TextTrial {
    let outcome: String
    let fault: String?

    enum Kind: String, CaseIterable { case configuration, keyFile, commandLine }

    /// The exit statuses of sysexits(3) that the tool has.
    ///
    /// The status 70, an internal failure, must not occur.
    private static let statuses: Set<Int32> = [0, 64, 65, 66, 73, 74, 75, 77, 78]
    private static let configurations = [
        "ChatStore.plist", "ChatStore.json", "NumberedSteps/NumberedSteps.plist", "AppVersions/AppVersions.json",
        "TableVersions/MessageStore.json", "Template/NoteStore.json",
    ]

    static func run(_ kind: Kind, _ random: inout Random) throws -> (TextTrial, TemporaryFolder) {
        let folder = try TemporaryFolder()
        try FileManager.default.createDirectory(atPath: folder.path("data"), withIntermediateDirectories: false)
        try FileManager.default.copyItem(
            at: Repository.fixtures.appending(path: "chat-v23.db"),
            to: folder.url.appending(path: "data/local.db"))
        try folder.write(TestKeys.text() + "\n", to: "key")
        try FileManager.default.copyItem(at: Repository.examples, to: folder.url.appending(path: "Config"))
        let data = folder.url.appending(path: "data")
        let before = try FolderDigest(data)
        let arguments: [String]
        switch kind {
        case .configuration: arguments = try configuration(folder, &random)
        case .keyFile: arguments = try keyFile(folder, &random)
        case .commandLine: arguments = commandLine(&random)
        }
        let run = try Child.run(Child.tool, arguments, in: folder.path(""))
        var fault = statuses.contains(run.status) ? nil : "status \(run.status): \(run.output.suffix(400))"
        if fault == nil, run.status != 0 || kind == .configuration, try FolderDigest(data) != before {
            fault = "status \(run.status), but the database has changed"
        }
        if fault == nil, kind == .keyFile, run.status == 0 {
            let again = try Child.run(
                Child.tool, ["inspect", "data/local.db", "--key-file", "key"], in: folder.path(""))
            if again.status != 0 { fault = "encrypted under a key that does not open it: \(again.output.suffix(400))" }
        }
        let told = (["cipherstore"] + arguments).map { "'\($0)'" }.joined(separator: " ")
        return (TextTrial(outcome: "exit \(run.status)", fault: fault.map { "\(told)\n\($0)" }), folder)
    }

    private static func scramble(_ url: URL, _ random: inout Random) throws {
        var bytes = [UInt8](try Data(contentsOf: url))
        for _ in 0...random.below(4) { random.oneIn(2) ? bytes.scramble(&random) : swapWords(&bytes, &random) }
        try Data(bytes).write(to: url)
    }

    /// Replaces a word with another word of the same kind.
    private static func swapWords(_ bytes: inout [UInt8], _ random: inout Random) {
        let words = [
            "<true/>", "<dict>", "</dict>", "<array>", "<string>", "</string>", "<integer>", "-1",
            "99999999999999999999",
            "1e400", "\"", "{", "}", "[", "]", "null", "\\u0000", "../", "/etc/passwd", "dbName", "TEXT", "&#0;",
            "&amp;",
            "<!ENTITY a 'aaaaaaaaaa'>", "\"enabled\": false,", "<key>enabled</key><false/>", "\\ud800", "\\u0065",
            "1e-400000", "<real>1e-400000</real>", "<!--", "<![CDATA[", "\u{feff}", "/*", "=", ";", "\u{fffd}",
            "PRIMARY KEY", ");", "--", "DROP TABLE chat", "dbTables",
        ]
        let place = random.below(bytes.count + 1)
        let length = min(random.pick([0, 0, 1, 4, 9]), bytes.count - place)
        bytes.replaceSubrange(place..<(place + length), with: Array(random.pick(words).utf8))
    }

    private static func configuration(_ folder: TemporaryFolder, _ random: inout Random) throws -> [String] {
        let chosen = random.pick(configurations)
        var damaged = folder.url.appending(path: "Config/" + chosen)
        // Includes the steps and templates that the configuration names.
        let place = damaged.deletingLastPathComponent()
        let others = (FileManager.default.enumerator(atPath: place.path(percentEncoded: false))?.allObjects ?? [])
            .compactMap { $0 as? String }.filter { $0.hasSuffix(".plist") || $0.hasSuffix(".db") }.sorted()
        if random.oneIn(3), !others.isEmpty { damaged = place.appending(path: random.pick(others)) }
        if random.oneIn(4), damaged.pathExtension == "plist" {
            let list = try PropertyListSerialization.propertyList(from: Data(contentsOf: damaged), format: nil)
            try BinaryPropertyListWriter.data(list).write(to: damaged)
        }
        try scramble(damaged, &random)
        return ["plan", "--config", "Config/" + chosen, "--directory", "data", "--key-file", "key"]
    }

    private static func keyFile(_ folder: TemporaryFolder, _ random: inout Random) throws -> [String] {
        let keys = [
            TestKeys.text() + "\n", "correct horse\r\n",
            "x'\(String(repeating: "aB", count: 48))'",
        ]
        try folder.write(random.pick(keys), to: "key")
        try scramble(folder.url.appending(path: "key"), &random)
        return ["encrypt", "data/local.db", "--key-file", "key"]
    }

    private static func commandLine(_ random: inout Random) -> [String] {
        let words = [
            "inspect", "encrypt", "decrypt", "rekey", "verify", "plan", "migrate", "query", "keygen", "history",
            "validate",
            "baseline", "repair", "help", "--help", "--version", "--json", "--csv", "--key-file", "--new-key-file",
            "key",
            "--config", "Config/ChatStore.plist", "--directory", "data", "data/local.db", "local.db", "--progress",
            "auto",
            "never", "--keep-backup", "--cipher-compatibility", "3", "4", "--key-env", "HOME", "--key-credential",
            "--detect",
            "--", "-", "", "--=", "--key-file=key", "--json=", "SELECT 1", "SELECT * FROM chat", "99999999999999999999",
            "-1", "é\u{301}", "\u{1b}[2J", "--no-such", "data", "/dev/null", ".", "new.key", "--timeout",
            "--plaintext-header-size",
        ]
        var arguments = [random.pick(Array(words.prefix(13)))]
        for _ in 0..<random.below(8) {
            var word = Array(random.pick(words).utf8)
            if random.oneIn(8) { word.scramble(&random) }
            arguments.append(String(decoding: word.filter { $0 != 0 }, as: UTF8.self))
        }
        return arguments
    }
}
