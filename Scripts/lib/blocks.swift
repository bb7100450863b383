// swift Scripts/lib/blocks.swift FOLDER DOCUMENT…
// Extracts the code blocks of Markdown documents, unchanged, and writes these files into FOLDER:
//   NAME.session      a bash script that creates the document's files, runs its `sh` blocks in order, and compares the
//                     output of each with the `console` block below it; `…` stands for anything
//   Blocks/*.swift    the document's other Swift blocks, each as a function, and a main program that calls them
// A comment in the line above a block specifies its kind, if that is not obvious:
//   <!-- file: PATH -->      the file PATH in the document's folder
//   <!-- declarations -->    Swift declarations at file level, which other blocks of the document may use
//   <!-- not run: WHY -->    not run; compiled if it is Swift
import Foundation

struct Block {
    let document: String
    let name: String
    let line: Int
    let language: String
    let mark: String
    let text: String

    var place: String { "\(document):\(line)" }
    func value(_ key: String) -> String? {
        guard mark.hasPrefix("\(key):") else { return nil }
        return mark.dropFirst(key.count + 1).trimmingCharacters(in: .whitespaces)
    }
}

func fail(_ message: String) -> Never {
    FileHandle.standardError.write(Data("documents: \(message)\n".utf8))
    exit(1)
}

func blocks(of document: String) -> [Block] {
    guard let text = try? String(contentsOfFile: document, encoding: .utf8) else { fail("\(document) cannot be read") }
    let name = URL(filePath: document).deletingPathExtension().lastPathComponent
    var found: [Block] = []
    var open: (line: Int, language: String, mark: String, lines: [String])?
    var mark = ""
    for (index, line) in text.components(separatedBy: "\n").enumerated() {
        if var block = open {
            if line == "```" {
                found.append(
                    Block(
                        document: document, name: name, line: block.line, language: block.language, mark: block.mark,
                        text: block.lines.joined(separator: "\n") + "\n"))
                open = nil
            } else {
                block.lines.append(line)
                open = block
            }
        } else if line.hasPrefix("```") {
            open = (index + 2, String(line.dropFirst(3)), mark, [])
            mark = ""
        } else if line.hasPrefix("<!-- "), line.hasSuffix(" -->") {
            mark = String(line.dropFirst(5).dropLast(4))
        } else {
            mark = ""
        }
    }
    if let open { fail("\(document):\(open.line): the block does not end") }
    return found
}

/// A here-document in which bash expands nothing.
func literal(_ text: String) -> String { "<<'END-OF-BLOCK'\n\(text)END-OF-BLOCK\n" }

func session(_ blocks: [Block]) -> String {
    var script = "set -euo pipefail\n"
    for (index, block) in blocks.enumerated() {
        if let path = block.value("file") {
            script += "mkdir -p \"$(dirname '\(path)')\"\ncat >'\(path)' \(literal(block.text))"
        } else if block.language == "sh", block.value("not run") == nil {
            script += "begin '\(block.place)'\n{\n\(block.text)} >\"$printed\" 2>&1\n"
            if index + 1 < blocks.count, blocks[index + 1].language == "console" {
                script += "compare '\(blocks[index + 1].place)' \(literal(blocks[index + 1].text))"
            }
        }
    }
    return script
}

let wrappers = ["GRDB", "SQLite", "FMDB"]

func swift(_ block: Block) -> (file: String, call: String?) {
    let lines = block.text.components(separatedBy: "\n")
    let isImport = { (line: String) in line.hasPrefix("import ") }
    var imports = lines.filter(isImport)
    let isDeclaration = block.mark == "declarations"
    let usesWrapper = imports.contains { wrappers.contains(String($0.dropFirst(7))) }
    if imports.isEmpty { imports = ["import CipherStore"] }
    // An import, which moves to the top, leaves an empty line, so that the compiler's line numbers match the document's.
    let body = lines.map { isImport($0) ? "" : $0 }.joined(separator: "\n")
    let located = "#sourceLocation(file: \"\(block.document)\", line: \(block.line))\n\(body)\n#sourceLocation()\n"
    var text = Set(imports + ["import Foundation"]).sorted().joined(separator: "\n") + "\n"
    if isDeclaration { return (text + "private let keyPath = documentKeyPath\n" + located, nil) }
    let names = ["folder", "file", "keyPath"] + (usesWrapper ? [] : ["fixtures", "keys", "configuration", "store"])
    let function = "\(block.name.filter { $0.isLetter || $0.isNumber })_\(block.line)"
    text += "import Given\n\nfunc \(function)(_ given: Given) async throws {\n"
    for name in names { text += "    let \(name) = given.\(name)\n    _ = \(name)\n" }
    text += "    do {\n\(located)    }\n}\n"
    return (text, block.value("not run") == nil ? function : nil)
}

let arguments = CommandLine.arguments.dropFirst()
guard let folder = arguments.first, arguments.count > 1 else { fail("usage: blocks.swift FOLDER DOCUMENT…") }
let place = URL(filePath: folder)
let sources = place.appending(path: "Blocks")
try FileManager.default.createDirectory(at: sources, withIntermediateDirectories: true)
var calls: [String] = []
var count = 0
for document in arguments.dropFirst() {
    let blocks = blocks(of: document)
    let known = ["swift", "sh", "console", "json", "", "xml"]
    for block in blocks where !known.contains(block.language) {
        fail("\(block.place): unknown language \"\(block.language)\"")
    }
    if let name = blocks.first?.name {
        try session(blocks).write(to: place.appending(path: "\(name).session"), atomically: true, encoding: .utf8)
    }
    for block in blocks where block.language == "swift" {
        count += 1
        guard block.value("file") == nil else { continue }
        let (file, call) = swift(block)
        try file.write(
            to: sources.appending(path: "\(block.name)_\(block.line).swift"), atomically: true, encoding: .utf8)
        if let call { calls.append("    (\"\(block.place)\", \(call)),\n") }
    }
}
guard count > 0 else { fail("there is no Swift in these documents") }
let main = """
    import Foundation
    import Given

    let place = URL(filePath: CommandLine.arguments[1])
    let legacy = URL(filePath: CommandLine.arguments[2])
    let blocks: [(String, @Sendable (Given) async throws -> Void)] = [
    \(calls.joined())]
    for (index, (name, run)) in blocks.enumerated() {
        do {
            let given = try await Given("block-\\(index)", in: place, legacy: legacy)
            documentKeyPath = given.keyPath
            try await run(given)
            await given.store.close()
        } catch {
            print("\\(name): \\(error)")
            exit(1)
        }
    }
    print("\\(blocks.count) blocks ran")

    """
try main.write(to: sources.appending(path: "main.swift"), atomically: true, encoding: .utf8)
try "nonisolated(unsafe) var documentKeyPath = \"\"\n".write(
    to: sources.appending(path: "KeyPath.swift"), atomically: true, encoding: .utf8)
