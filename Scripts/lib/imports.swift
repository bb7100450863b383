// Prints the imports of each target, and which folders of a target use types of its other folders. Fails if an import
// is not declared in the manifest, if a declared dependency is not imported, if folders of a target use each other, or
// if a folder imports a module whose work it checks.
// The folders of tests mirror those of the tested targets, and are not checked.
//
//   swift package dump-package | swift Scripts/lib/imports.swift
import Foundation

struct Manifest: Decodable {
    struct Target: Decodable {
        struct Dependency: Decodable {
            let byName: [String?]?
            let target: [String?]?
            let product: [String?]?

            var name: String? { (byName ?? target)?.first ?? nil }

            init(from decoder: any Decoder) throws {
                // A condition, which follows the name, is a dictionary.
                func first(_ key: Key, _ container: KeyedDecodingContainer<Key>) -> [String?]? {
                    guard var list = try? container.nestedUnkeyedContainer(forKey: key) else { return nil }
                    return [try? list.decode(String.self)]
                }
                let container = try decoder.container(keyedBy: Key.self)
                byName = first(.byName, container)
                target = first(.target, container)
                product = first(.product, container)
            }

            enum Key: String, CodingKey { case byName, target, product }
        }

        let name: String
        let type: String
        let path: String?
        let dependencies: [Dependency]
    }

    let targets: [Target]
}

/// The code of a file without comments and strings.
///
/// Interpolated expressions are removed with their strings.
func code(_ path: String) throws -> String {
    let text = try String(contentsOfFile: path, encoding: .utf8)
    let noise = try NSRegularExpression(
        pattern: ##"#?"{3}[\s\S]*?"{3}#?|"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*[\s\S]*?\*/"##)
    return noise.stringByReplacingMatches(
        in: text, range: NSRange(text.startIndex..., in: text), withTemplate: "\"\"")
}

func names(_ pattern: String, in text: String) throws -> Set<String> {
    let expression = try NSRegularExpression(pattern: pattern, options: .anchorsMatchLines)
    let matches = expression.matches(in: text, range: NSRange(text.startIndex..., in: text))
    return Set(matches.compactMap { Range($0.range(at: 1), in: text).map { String(text[$0]) } })
}

func swiftFiles(in folder: String) -> [String] {
    let all = FileManager.default.enumerator(atPath: folder)?.compactMap { $0 as? String } ?? []
    return all.filter { $0.hasSuffix(".swift") }.sorted()
}

let imported = #"^ *(?:@\w+ +)*(?:(?:public|package|internal|fileprivate|private) +)?import (?:\w+ )?(\w+)"#
let declared =
    #"^(?:@\w+(?:\([^)]*\))? +)*(?:(?:public|package|internal|final|indirect) +)*(?:struct|class|enum|protocol|actor|typealias) (\w+)"#
var faults: [String] = []

/// The modules that a folder of a target must not import, because it checks what they do with separate code.
let barred = ["CipherDatabaseConversion": ["Proof": ["CipherPageSealing"]]]

/// Records a fault for each file of a folder that imports a barred module, and for a folder without files.
func checkBarred(_ target: String, _ root: String, _ files: [String]) throws {
    for (folder, modules) in barred[target] ?? [:] {
        let checked = files.filter { $0.hasPrefix(folder + "/") }
        if checked.isEmpty { faults.append("\(root)/\(folder) does not exist, but some imports are barred there") }
        for file in checked {
            for name in try names(imported, in: try code(root + "/" + file)).intersection(modules).sorted() {
                faults.append("\(root)/\(file) imports \(name), whose work this folder must check with separate code")
            }
        }
    }
}

/// Prints which folders of a target use types of its other folders.
///
/// Records a fault if two folders use each other.
func checkFolders(of target: String, _ root: String, _ files: [String]) throws {
    var owners: [String: String] = [:]
    var texts: [(folder: String, text: String)] = []
    for file in files {
        let folder = (file as NSString).deletingLastPathComponent
        let text = try code(root + "/" + file)
        texts.append((folder, text))
        for name in try names(declared, in: text) { owners[name] = folder }
    }
    var edges: [String: [String: Set<String>]] = [:]
    for (folder, text) in texts {
        for name in try names(#"(?<![.\w])([A-Z]\w*)"#, in: text) {
            if let owner = owners[name], owner != folder {
                edges[folder, default: [:]][owner, default: []].insert(name)
            }
        }
    }
    func shown(_ folder: String) -> String { folder.isEmpty ? "(top)" : folder }
    for (folder, uses) in edges.sorted(by: { $0.key < $1.key }) {
        print("  \(target)/\(shown(folder)) -> \(uses.keys.sorted().map(shown).joined(separator: " "))")
    }
    func reach(_ start: String) -> Set<String> {
        var seen: Set<String> = []
        var rest = Array((edges[start] ?? [:]).keys)
        while let next = rest.popLast() {
            if seen.insert(next).inserted { rest += (edges[next] ?? [:]).keys }
        }
        return seen
    }
    for (folder, uses) in edges {
        for (other, types) in uses where reach(other).contains(folder) {
            faults.append(
                "\(target): \(shown(folder)) uses \(shown(other)) (\(types.sorted().joined(separator: ", "))), which uses \(shown(folder)), possibly through other folders"
            )
        }
    }
}

let manifest = try JSONDecoder().decode(Manifest.self, from: FileHandle.standardInput.readDataToEndOfFile())
let ours = Set(manifest.targets.map(\.name))
for target in manifest.targets where target.type != "system" {
    let root = target.path ?? (target.type == "test" ? "Tests/" : "Sources/") + target.name
    let files = swiftFiles(in: root)
    guard !files.isEmpty else { continue }
    var imports: Set<String> = []
    for file in files { imports.formUnion(try names(imported, in: try code(root + "/" + file)).intersection(ours)) }
    let dependencies = Set(target.dependencies.compactMap(\.name))
    print("\(target.name) -> \(imports.sorted().joined(separator: " "))")
    for name in imports.subtracting(dependencies).sorted() where name != target.name {
        faults.append("\(target.name) imports \(name), but the manifest does not declare it as a dependency")
    }
    if target.type == "regular" {
        for name in dependencies.intersection(ours).subtracting(imports).sorted() {
            faults.append("\(target.name) declares a dependency on \(name) but does not import it")
        }
    }
    if target.type != "test" {
        try checkFolders(of: target.name, root, files)
        try checkBarred(target.name, root, files)
    }
}
for fault in faults.sorted() { FileHandle.standardError.write(Data("\(fault)\n".utf8)) }
exit(faults.isEmpty ? 0 : 1)
