internal import CSQLCipher

extension SQL {
    /// The statements of a script, without the semicolons between them; comments and white space alone are none.
    ///
    /// Needs no database: where a statement ends is told by SQLite's own tokenizer, so that a trigger's body stays whole.
    ///
    /// The corresponding C function is `sqlite3_complete`.
    package static func statements(of script: String) -> [String] {
        let bytes = Array(script.utf8)
        var statements: [String] = []
        var start = 0
        for (index, byte) in bytes.enumerated() where byte == UInt8(ascii: ";") {
            guard isComplete(bytes[start...index]) else { continue }
            append(bytes[start..<index], to: &statements)
            start = index + 1
        }
        append(bytes[start...], to: &statements)
        return statements
    }

    private static func isComplete(_ bytes: ArraySlice<UInt8>) -> Bool {
        (bytes + [0]).withUnsafeBufferPointer { buffer in
            buffer.withMemoryRebound(to: CChar.self) { sqlite3_complete($0.baseAddress) != 0 }
        }
    }

    private static func append(_ bytes: ArraySlice<UInt8>, to statements: inout [String]) {
        guard let first = firstOfStatement(bytes) else { return }
        var piece = bytes[first...]
        while let last = piece.last, isSpace(last) { piece.removeLast() }
        statements.append(String(decoding: piece, as: UTF8.self))
    }

    /// Where the first word begins, behind white space and comments; `nil` where there is none.
    private static func firstOfStatement(_ bytes: ArraySlice<UInt8>) -> Int? {
        var rest = bytes
        while let byte = rest.first {
            if isSpace(byte) {
                rest = rest.dropFirst()
            } else if rest.starts(with: "--".utf8) {
                rest = rest.drop { $0 != UInt8(ascii: "\n") }
            } else if rest.starts(with: "/*".utf8) {
                rest = rest.dropFirst(2)
                while !rest.isEmpty, !rest.starts(with: "*/".utf8) { rest = rest.dropFirst() }
                rest = rest.dropFirst(2)
            } else {
                return rest.startIndex
            }
        }
        return nil
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }
}
