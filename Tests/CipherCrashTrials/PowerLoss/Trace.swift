import Foundation

/// One system call as strace printed it.
///
/// All strings are hexadecimal, and the two halves of an interrupted line are joined.
struct SystemCall {
    let name: String
    /// The arguments as strace printed them.
    let arguments: [Substring]
    let result: Int
    /// The numbers of the lines at which the call began and ended.
    let began: Int
    let ended: Int

    /// The calls that strace traces; those that do not exist on a machine are left out there.
    static let traced = [
        "open", "openat", "creat", "close", "dup", "dup2", "dup3", "lseek", "mmap",
        "write", "pwrite64", "writev", "pwritev", "pwritev2", "copy_file_range", "sendfile", "splice",
        "ftruncate", "truncate", "fallocate", "fsync", "fdatasync", "sync_file_range", "sync", "syncfs", "msync",
        "rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat", "unlink", "unlinkat",
        "mkdir", "mkdirat", "rmdir", "chmod", "fchmod", "fchmodat", "fchmodat2",
    ]

    /// The bytes of an argument such as `"\x61\x62"`.
    func bytes(_ index: Int) throws -> [UInt8] {
        let text = Array(arguments[index].utf8)
        guard text.count >= 2, text.first == UInt8(ascii: "\""), text.last == UInt8(ascii: "\"") else {
            throw TraceError(detail: "\(name) has a truncated string")
        }
        return try stride(from: 1, to: text.count - 1, by: 4).map { start in
            guard start + 3 < text.count, let high = Self.digit(text[start + 2]), let low = Self.digit(text[start + 3])
            else { throw TraceError(detail: "\(name) has a string that is not hexadecimal") }
            return high << 4 | low
        }
    }

    func text(_ index: Int) throws -> String {
        String(decoding: try bytes(index), as: UTF8.self)
    }

    func number(_ index: Int) throws -> Int {
        guard let number = Int(arguments[index]) else {
            throw TraceError(detail: "\(name) has \(arguments[index]) as a number")
        }
        return number
    }

    func octal(_ index: Int) throws -> Int {
        guard let number = Int(arguments[index], radix: 8) else {
            throw TraceError(detail: "\(name) has \(arguments[index]) as a mode")
        }
        return number
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        default: nil
        }
    }
}

/// A trace that cannot be understood, so that it has no result.
struct TraceError: Error, CustomStringConvertible {
    let detail: String
    var description: String { "the trace cannot be understood: \(detail)" }
}

/// Reads strace's output.
enum Trace {
    /// The calls that succeeded, in the order in which they ended.
    static func calls(_ text: String) throws -> [SystemCall] {
        var begun: [Substring: (text: Substring, line: Int)] = [:]
        var calls: [SystemCall] = []
        for (number, line) in text.split(separator: "\n").enumerated() {
            guard let space = line.firstIndex(of: " ") else { continue }
            let thread = line[..<space]
            let rest = line[space...].drop { $0 == " " }
            if rest.hasPrefix("+++") || rest.hasPrefix("---") { continue }
            if rest.hasSuffix(" <unfinished ...>") {
                begun[thread] = (rest.dropLast(" <unfinished ...>".count), number)
            } else if rest.hasPrefix("<... "), let end = rest.firstRange(of: "resumed>") {
                guard let start = begun.removeValue(forKey: thread) else {
                    throw TraceError(detail: "a call ended that had not begun")
                }
                if let call = try call(start.text + rest[end.upperBound...], start.line, number) { calls.append(call) }
            } else if let call = try call(rest, number, number) {
                calls.append(call)
            }
        }
        return calls
    }

    private static func call(_ text: Substring, _ began: Int, _ ended: Int) throws -> SystemCall? {
        guard let open = text.firstIndex(of: "("), let equals = text.range(of: " = ", options: .backwards),
            let close = text[..<equals.lowerBound].lastIndex(of: ")")
        else { throw TraceError(detail: "line \(ended + 1) is not a call: \(text.prefix(200))") }
        // The result is a pointer, as from mmap, or "?" if the call never returned. Only its success matters.
        let outcome = text[equals.upperBound...].prefix { $0 != " " }
        guard outcome != "?", !outcome.hasPrefix("-") else { return nil }
        return SystemCall(
            name: String(text[..<open]),
            arguments: text[text.index(after: open)..<close].split(separator: ", ", omittingEmptySubsequences: false),
            result: Int(outcome) ?? 0, began: began, ended: ended)
    }
}
