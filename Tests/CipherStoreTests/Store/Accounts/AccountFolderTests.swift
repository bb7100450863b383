internal import CipherStore
internal import CipherSystemFiles
import Testing

struct AccountFolderTests {
    static let names: [(account: String, folder: String)] = [
        ("anna", "anna"),
        ("4711", "4711"),
        ("anna.b-c_d+e@example.com", "anna.b-c_d+e@example.com"),
        ("Anna", "%41nna"),
        ("", "%"),
        (".", "%2E"),
        ("..", "%2E."),
        ("../anna", "%2E.%2Fanna"),
        ("a/b", "a%2Fb"),
        ("a b\0c", "a%20b%00c"),
        ("100%", "100%25"),
        ("é", "%C3%A9"),
        ("%41nna", "%2541nna"),
    ]

    @Test("The name of an account's folder is readable and safe", arguments: names)
    func isSafe(_ pair: (account: String, folder: String)) throws {
        #expect(try AccountFolder.name(of: pair.account) == pair.folder)
    }

    @Test("The name of an account's folder is unique, even on disks that ignore letter case and Unicode normalization")
    func isInjective() throws {
        let long = String(repeating: "a", count: 300)
        let pieces = ["a", "A", "%", "4", "1", "-", ".", "/", "é", "e\u{301}", "\0", "日"]
        var accounts = ["", long, long + "a", String(repeating: "A", count: 300), String(repeating: "é", count: 90)]
        for first in pieces {
            accounts.append(first)
            for second in pieces {
                accounts.append(first + second)
                accounts += pieces.map { first + second + $0 }
            }
        }
        // The short form of a long account's folder differs from every other account's folder.
        accounts.append(try AccountFolder.name(of: long))
        accounts.append(try AccountFolder.name(of: "%-"))
        let bytes = Set(accounts.map { Array($0.utf8) })
        let names = try Set(bytes.map { try AccountFolder.name(of: String(decoding: $0, as: UTF8.self)).lowercased() })
        #expect(names.count == bytes.count)
        for name in names {
            #expect(name.utf8.count <= 200 && name.utf8.allSatisfy { $0 < 0x80 && $0 > 0x20 && $0 != 0x2f })
            #expect(FileName.fault(of: name) == nil)
        }
    }
}
