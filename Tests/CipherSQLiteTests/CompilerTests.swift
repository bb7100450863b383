import CipherTestSupport
import Foundation
import Testing

/// The compiler's errors for wrong uses of a connection.
struct CompilerTests {
    private static let modules = TestProgram.built("Modules").path
    private static let shell = TestProgram(path: "/bin/sh")
    private static let canCompile =
        FileManager.default.fileExists(atPath: modules)
        && (try? shell.run(["-c", "command -v swiftc && command -v pkg-config"]).status) == 0

    /// Returns the compiler's first error for each line of a function body that has a connection.
    private func errors(_ lines: [String]) throws -> [String?] {
        let folder = try TemporaryFolder()
        let source = try folder.write(
            "import CipherSQLite; enum Kind: String { case a }; struct Own {}; func use(_ db: Connection) throws {\n"
                + lines.map { "do { \($0) }\n" }.joined() + "}\n", to: "Use.swift")
        let bin = URL(filePath: Self.modules).deletingLastPathComponent().path(percentEncoded: false)
        let run = try Self.shell.run([
            "-c",
            """
            exec swiftc -typecheck -swift-version 6 -I "$1" \
                -Xcc -fmodule-map-file="$2"/CCipherEngine.build/module.modulemap \
                -Xcc -fmodule-map-file="$2"/CCipherCrypto.build/module.modulemap \
                -Xcc -fmodule-map-file="$2"/CCipherSystem.build/module.modulemap \
                $(pkg-config --cflags sqlcipher libcrypto | sed 's/\\(^\\| \\)-/\\1-Xcc -/g') "$3" 2>&1
            """, "sh", Self.modules, bin, source,
        ])
        var errors = [String?](repeating: nil, count: lines.count)
        for line in run.output.split(separator: "\n") where line.hasPrefix(source) {
            let parts = line.split(separator: ":", maxSplits: 4).map(String.init)
            guard parts.count == 5, parts[3] == " error", let number = Int(parts[1]) else { continue }
            try #require(lines.indices.contains(number - 2), "\(line)")
            errors[number - 2] = errors[number - 2] ?? parts[4]
        }
        if run.status != 0, errors.allSatisfy({ $0 == nil }) { Issue.record("\(run.output)") }
        return errors
    }

    @Test("The result type of a query can be inferred for a value, values, a row and rows", .enabled(if: canCompile))
    func inference() throws {
        let lines = [
            #"let n: Int? = try db.value("SELECT 1"); _ = n"#, #"let n: [Int64] = try db.values("SELECT 1"); _ = n"#,
            #"struct A: Decodable {}; let n: A? = try db.row("SELECT 1"); _ = n"#,
            #"struct A: Decodable {}; let n: [A] = try db.rows("SELECT 1"); _ = n"#,
            #"let n = try db.value(String.self, "SELECT 1"); _ = n"#,
            #"if let n: Int = try db.value("SELECT 1") { _ = n }"#,
            #"let ids = [1]; try db.execute("SELECT \(list: ids), \("a".dropFirst()), \([1, 2] as [UInt8])")"#,
        ]
        #expect(try errors(lines) == Array(repeating: nil, count: lines.count))
    }

    @Test(
        "Interpolating a value that cannot be bound fails to compile, and the message says what to write instead",
        .enabled(if: canCompile))
    func unbindable() throws {
        let cases = [
            (#"let ids = [1]; try db.execute("SELECT 1 IN (\(ids))")"#, "(list: values)"),
            (#"try db.execute("SELECT 1 IN (\(Set([1])))")"#, "(list: values)"),
            (#"try db.execute("SELECT \(Kind.a)")"#, "rawValue"),
            (#"let kind: Kind? = nil; try db.execute("SELECT \(kind)")"#, "rawValue"),
            (#"try db.execute("SELECT \(UInt64(1))")"#, "Int64"), (#"try db.execute("SELECT \(UInt(1))")"#, "Int64"),
            (#"let n: UInt64? = 1; try db.execute("SELECT \(n)")"#, "Bindable"),
            (#"try db.execute("SELECT \(Own())")"#, "Bindable"),
            (#"try db.execute("SELECT \(Own?.none)")"#, "Bindable"),
            (#"let text = "x"; try db.executeScript(text)"#, "text:"),
            (#"let text = "x"; try db.executeScript("DELETE FROM t WHERE v = '\(text)'")"#, "text:"),
        ]
        for (found, wanted) in zip(try errors(cases.map(\.0)), cases) {
            #expect(found?.contains(wanted.1) == true, "\(wanted.0): \(found ?? "no error")")
        }
    }
}
