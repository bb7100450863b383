// Lists the public symbols in symbol graphs that have no documentation comment, and fails if there are any.
//
// Usage: swift undocumented.swift FILE…

import Foundation

/// The parts of a symbol graph that are needed here.
struct SymbolGraph: Decodable {
    struct Symbol: Decodable {
        struct Kind: Decodable { let displayName: String }
        struct Comment: Decodable { let lines: [Line] }
        struct Line: Decodable { let text: String }

        let kind: Kind
        let pathComponents: [String]
        let docComment: Comment?

        var isDocumented: Bool { docComment?.lines.contains { !$0.text.isEmpty } ?? false }
    }

    let symbols: [Symbol]
}

var undocumented: Set<String> = []
var count = 0
for file in CommandLine.arguments.dropFirst() {
    let graph = try JSONDecoder().decode(SymbolGraph.self, from: Data(contentsOf: URL(filePath: file)))
    count += graph.symbols.count
    for symbol in graph.symbols where !symbol.isDocumented {
        undocumented.insert("\(symbol.pathComponents.joined(separator: ".")) (\(symbol.kind.displayName))")
    }
}
for name in undocumented.sorted() { print("not documented: \(name)") }
guard count > 0 else {
    print("there are no symbols: the symbol graphs are empty")
    exit(1)
}
exit(undocumented.isEmpty ? 0 : 1)
