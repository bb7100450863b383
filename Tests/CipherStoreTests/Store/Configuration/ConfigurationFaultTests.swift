internal import CipherConfigurationText
internal import CipherErrors
internal import CipherStore
import CipherTestSupport
import Foundation
import Testing

/// An error in a configuration file is reported with its place: the path to the value, the line and the column.
struct ConfigurationFaultTests {
    private func detail(_ data: Data) -> String {
        do {
            _ = try Configuration(data: data, place: "app")
            return "accepted"
        } catch let error as StoreError where error.code == .configuration {
            return error.description
        } catch {
            return "another error: \(error)"
        }
    }

    private static func json(_ encryption: String) -> String {
        #"{"dbName": "a.db", "dbVersion": 1,"# + "\n  \"encryption\": \(encryption)}"
    }

    private static func xml(_ encryption: String) -> String {
        "<plist><dict><key>dbName</key><string>a.db</string><key>dbVersion</key><integer>1</integer>\n"
            + "  <key>encryption</key><dict>\(encryption)</dict></dict></plist>"
    }

    @Test(
        "A duplicate key is refused, however it is written and however deep it is nested",
        arguments: [
            (
                json(#"{"enabled": true, "enabled": false}"#),
                #"encryption: line 2, column 35: the key "enabled" is specified twice, first on line 2, column 18"#
            ),
            (
                json(#"{"enabled": true, "\u0065nabled": true}"#),
                #"encryption: line 2, column 35: the key "enabled" is specified twice, first on line 2, column 18"#
            ),
            (#"{"dbName": "a.db", "dbName": "b.db"}"#, #"line 1, column 20: the key "dbName" is specified twice"#),
            (
                #"{"dbTables": [{}, {"chat": [{"id": 1}, {"ä": "", "ä": ""}]}]}"#,
                #"dbTables[1].chat[1]: line 1, column 50: the key "ä" is specified twice, first on line 1, column 41"#
            ),
            (
                xml("<key>enabled</key><true/>\r\n<key>enabled</key><false/>"),
                #"encryption: line 3, column 1: the key "enabled" is specified twice, first on line 2, column 30"#
            ),
            (
                xml("<key>enabled</key><true/><key>&#x65;<![CDATA[nabled]]></key><true/>"),
                #"encryption: line 2, column 55: the key "enabled" is specified twice"#
            ),
        ])
    func repeatedKey(file: String, expected: String) {
        #expect(detail(Data(file.utf8)).contains(expected))
    }

    @Test("A duplicate key in a binary property list is refused with its path")
    func repeatedBinaryKey() throws {
        var bytes = [UInt8](
            BinaryPropertyListWriter.data(
                ["dbName": "a.db", "dbVersion": 1, "encryption": ["enabled": true, "enablee": false]] as [String: Any]))
        let second = try #require(bytes.firstRange(of: Array("enablee".utf8)))
        bytes.replaceSubrange(second, with: "enabled".utf8)
        #expect(detail(Data(bytes)).contains(#"app: encryption: the key "enabled" is specified twice; remove one"#))
    }

    @Test(
        "A syntax error is reported with its line and column",
        arguments: [
            (
                "{\"dbName\": \"a.db\",\n \"dbVersion\": 1,\n}",
                "app: line 3, column 1: the file is not valid JSON: there is a comma before"
            ),
            ("{\"dbName\": \"ä\",\r\n \"dbVersion\" 1}", "line 2, column 14: the file is not valid JSON: a colon is"),
            ("{\"dbName\": \"ä\" \"dbVersion\": 1}", "line 1, column 16: the file is not valid JSON: a comma or } is"),
            (
                "{\"dbTables\": [1, 2,]}",
                "dbTables: line 1, column 20: the file is not valid JSON: there is a comma before"
            ),
            ("{\"dbName\": a}", "dbName: line 1, column 12: the file is not valid JSON: this value is not a number"),
            ("{\"dbVersion\": 01}", "dbVersion: line 1, column 15: the file is not valid JSON: this value is"),
            ("{\"dbVersion\": }", "dbVersion: line 1, column 15: the file is not valid JSON: a value is missing"),
            (
                "{\"dbName\": \"a\tb\"}",
                "line 1, column 14: the file is not valid JSON: a string contains an unescaped line break"
            ),
            (
                "{\"dbName\": \"a\n\"}",
                "line 1, column 14: the file is not valid JSON: a string contains an unescaped line break"
            ),
            (
                "{\"dbName\": \"a",
                "line 1, column 12: the file is not valid JSON: the string that begins here is not closed"
            ),
            ("{\"dbName\": \"\\x\"}", "line 1, column 13: the file is not valid JSON: a string contains an invalid"),
            ("{\"dbName\": \"\\ud800\"}", "line 1, column 13: the file is not valid JSON: a Unicode escape sequence"),
            ("{\"dbName\": \"\\udc00\\ud800\"}", "line 1, column 13: the file is not valid JSON: a Unicode escape"),
            ("{'dbName': 1}", "line 1, column 2: the file is not valid JSON: a key in double quotes is missing"),
            ("{} {}", "line 1, column 4: the file is not valid JSON: there is extra text after the end"),
            ("<plist><dict>\n<key>a</key></dict></plist>", "a: line 2, column 13: the file is not a valid property"),
            ("<plist><dict>\n<string>a</string></dict></plist>", "line 2, column 1: the file is not a valid property"),
            ("<plist><dict>\n<key>a</key><string>b &c</string>", "a: line 2, column 23: the file is not a valid"),
            ("<plist><dict><key>a</key><string>&#xD800;</string>", "a: line 1, column 34: the file is not a valid"),
            (
                "<plist><dict></array></plist>",
                "line 1, column 14: the file is not a valid property list: the closing tag </dict> is miss"
            ),
            ("<plist><array><dict></array></plist>", "[0]: line 1, column 21: the file is not a valid property list: "),
            ("<plist><dict/></plist><x/>", "line 1, column 23: the file is not a valid property list: there is extra"),
            (
                "<plist><dict><!-- </dict></plist>",
                "line 1, column 14: the file is not a valid property list: the comment"
            ),
            ("<html></html>", "line 1, column 1: the file is not a valid property list: <html> is not a property"),
        ])
    func syntax(file: String, expected: String) {
        let detail = detail(Data(file.utf8))
        #expect(detail.contains(expected), "\(detail)")
    }

    @Test(
        "A number that would be read as a different one is refused",
        arguments: [
            "1e-400000", "1e400000", "-1e400000", "9007199254740993.0", "1.00000000000000000000000001",
            "0.9999999999999999999999", "1e99999999999999999999",
        ])
    func unfitNumber(number: String) {
        let json = detail(Data(Self.json(#"{"sinceVersion": \#(number)}"#).utf8))
        let place = "encryption.sinceVersion: line 2, column"
        #expect(json.contains("\(place) 34: the number is too large, too small or too long"), "\(json)")
        let xml = detail(Data(Self.xml("<key>sinceVersion</key><real>\(number)</real>").utf8))
        #expect(xml.contains("\(place) 53: the number is too large, too small or too long"), "\(xml)")
    }

    @Test(
        "A number that can be represented is read exactly",
        arguments: [
            ("0", .integer(0)), ("-0", .integer(0)), ("-0.0", .integer(0)), ("0e99999999999999999999", .integer(0)),
            ("24.0", .integer(24)), ("2400e-2", .integer(24)), ("1E2", .integer(100)), ("1.5", .real(1.5)),
            ("0.10000000000000001", .real(0.1)), ("9223372036854775807", .integer(.max)),
            ("-9223372036854775808", .integer(.min)), ("1e30", .real(1e30)), ("5e-324", .real(.leastNonzeroMagnitude)),
        ] as [(String, ConfigurationValue)])
    func fitNumber(number: String, value: ConfigurationValue) throws {
        #expect(try ConfigurationSyntax.parse(Array("[\(number)]".utf8)) == .list([value]))
        #expect(try ConfigurationSyntax.parse(Array("<real> \(number)\n</real>".utf8)) == value)
    }

    @Test("A four-byte number in a binary property list is read as the number that was written")
    func singlePrecision() throws {
        let bytes: [UInt8] = [0x22, 0x3F, 0xB3, 0x33, 0x33, 8]
        let file = BinaryPropertyList.magic + bytes + [0, 0, 0, 0, 0, 0, 1, 1] + [0, 0, 0, 0, 0, 0, 0, 1]
        let list = file + [0, 0, 0, 0, 0, 0, 0, 0] + [0, 0, 0, 0, 0, 0, 0, 13]
        #expect(try ConfigurationSyntax.parse(list) == .real(1.4))
    }

    @Test(
        "An integer in a property list must fit into Int",
        arguments: [
            ("<integer>0x1F</integer>", .integer(31)), ("<integer>-0X10</integer>", .integer(-16)),
            ("<integer>+7</integer>", .integer(7)), ("<integer>99999999999999999999</integer>", nil),
            ("<integer>1.0</integer>", nil), ("<integer>1F</integer>", nil), ("<integer></integer>", nil),
            ("<real>nan</real>", .other), ("<real>-infinity</real>", .other), ("<real>many</real>", nil),
        ] as [(String, ConfigurationValue?)])
    func integers(element: String, value: ConfigurationValue?) {
        #expect((try? ConfigurationSyntax.parse(Array(element.utf8))) == value)
    }

    @Test(
        "An OpenStep property list is refused as such",
        arguments: [
            "{ dbName = \"a.db\"; }", "// !$*UTF8*$!\n{\n dbName = a;\n}", "dbName = \"a.db\";", "( a, b )",
            "{\n \"dbName\" = \"a.db\"; }", "/* names */ { /* x */ dbName /* y */ = a; }",
        ])
    func openStep(file: String) {
        #expect(
            detail(Data(file.utf8)).hasPrefix(
                "app: the file is an OpenStep property list, which is not supported; conv"))
    }

    @Test(
        "Text in another encoding is refused as such",
        arguments: [
            (String.Encoding.utf16, "the file is UTF-16 or UTF-32 text; save the file as UTF-8"),
            (.utf16LittleEndian, "the file is UTF-16 or UTF-32 text; save the file as UTF-8"),
            (.utf16BigEndian, "the file is UTF-16 or UTF-32 text; save the file as UTF-8"),
            (.utf32LittleEndian, "the file is UTF-16 or UTF-32 text; save the file as UTF-8"),
            (.isoLatin1, "the file is not UTF-8 text; save the file as UTF-8"),
        ])
    func encodings(encoding: String.Encoding, expected: String) throws {
        for file in [Self.json(#"{"ä": 1}"#), Self.xml("<key>ä</key><true/>")] {
            #expect(detail(try #require(file.data(using: encoding))).contains(expected))
        }
    }

    @Test("The first invalid UTF-8 bytes are reported with their place, and a declared encoding is taken into account")
    func notUTF8() {
        #expect(detail(Data("{\n  \"ä".utf8) + [0xE4, 0x22]).contains("app: line 2, column 5: the file is not UTF-8"))
        #expect(detail(Data("{\n  \"ä".utf8) + [0xC3]).contains("app: line 2, column 5: the file is not UTF-8"))
        let latin = #"<?xml version="1.0" encoding="ISO-8859-1"?><plist><string>%</string></plist>"#
        #expect(
            detail(Data(latin.replacing("%", with: "Ã¤").utf8)).contains(
                "declares the unsupported encoding ISO-8859-1; save the file as"))
        #expect(detail(Data(latin.utf8)).contains("must be a dictionary"))
    }

    @Test("Nesting that is too deep is refused, and the error names its place")
    func depth() {
        let json = #"{"dbTables": "# + String(repeating: "[", count: 33)
        let path = "dbTables" + String(repeating: "[0]", count: 31)
        #expect(detail(Data(json.utf8)).contains("\(path): line 1, column 45: values are nested deeper than 32 levels"))
    }

    @Test(
        "A string in a property list is read as Foundation reads it",
        arguments: [
            "", "a", " a b ", "a\n\tb", "a\r\nb", "&lt;&gt;&amp;&quot;&apos;", "&#228;&#x20AC;&#x1F600;", "ä😀",
            "<![CDATA[<a> & b]]>", "x<![CDATA[y]]>z", "--", "]]",
        ])
    func strings(text: String) throws {
        let file = Data("<?xml version=\"1.0\"?>\n<plist version=\"1.0\"><string>\(text)</string></plist>".utf8)
        let read = try PropertyListSerialization.propertyList(from: file, format: nil) as? String
        #expect(try ConfigurationSyntax.parse([UInt8](file)) == .text(try #require(read)))
    }
}
