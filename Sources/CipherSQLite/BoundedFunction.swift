internal import CCipherEngine

/// One of SQLite's functions, and what a call of it costs at most.
///
/// The functions that are missing here take time and memory in proportion to the length of their arguments and of their
/// result, which SQLite limits.
struct BoundedFunction: Sendable {
    /// The judgment on a call before it is made.
    enum Weight: Sendable {
        /// What it costs at most, in units of about a nanosecond.
        case units(UInt64)
        /// The result would be longer than the connection permits.
        case tooBig
        /// The call is dangerous.
        case refused
    }

    let name: String
    let argumentCount: Int32
    var returnsJSON = false
    /// Judges a call by its arguments and by the length that a value may have.
    let weigh: @Sendable (_ arguments: FunctionArguments, _ mostBytes: Int) -> Weight

    /// The stand-in may be used where the original may; engines ignore flags that they do not know.
    var flags: Int32 {
        let innocuous: Int32 = 0x20_0000
        let returnsSubtype: Int32 = 0x100_0000
        return SQLITE_DETERMINISTIC | innocuous | (returnsJSON ? returnsSubtype : 0)
    }

    private init(
        _ name: String, _ argumentCount: Int32, returnsJSON: Bool = false,
        weigh: @escaping @Sendable (FunctionArguments, Int) -> Weight
    ) {
        self.name = name
        self.argumentCount = argumentCount
        self.returnsJSON = returnsJSON
        self.weigh = weigh
    }

    /// The functions that the linked engine has; the name of another one may be that of an app's function.
    static let available: [Self] = {
        var handle: OpaquePointer?
        defer { sqlite3_close_v2(handle) }
        guard sqlite3_open_v2(":memory:", &handle, SQLITE_OPEN_READWRITE, nil) == SQLITE_OK else { return all }
        return all.filter { function in
            var statement: OpaquePointer?
            defer { sqlite3_finalize(statement) }
            let count = function.argumentCount < 0 ? 2 : function.argumentCount
            let nulls = Array(repeating: "NULL", count: Int(count)).joined(separator: ", ")
            return sqlite3_prepare_v2(handle, "SELECT \(function.name)(\(nulls))", -1, &statement, nil) == SQLITE_OK
        }
    }()

    private static let all: [Self] =
        ["trim", "ltrim", "rtrim", "unhex"].map { Self($0, 2) { arguments, _ in .units(product(arguments, 0, 1)) } }
        + [
            // These compare whole runs of bytes at once.
            Self("instr", 2) { arguments, _ in .units(product(arguments, 0, 1) / 16) },
            Self("replace", 3) { arguments, _ in .units(product(arguments, 0, 1) / 16) },
            Self("like", 2) { arguments, _ in matching(arguments, "%") },
            Self("like", 3) { arguments, _ in matching(arguments, "%") },
            Self("glob", 2) { arguments, _ in matching(arguments, "*") },
            Self("concat", -1) { arguments, mostBytes in
                arguments.total > mostBytes ? .tooBig : .units(arguments.total)
            },
            Self("concat_ws", -1) { arguments, mostBytes in
                // SQLite reserves memory for a separator before each argument, even before NULL.
                let separators = arguments.size(0) * UInt64(max(0, arguments.count - 2))
                let total = arguments.total + separators
                return total > max(mostBytes, 1 << 24) ? .tooBig : .units(total)
            },
            Self("printf", -1, weigh: formatting), Self("format", -1, weigh: formatting),
            // For each key of the patch, SQLite searches the keys of the target.
            Self("json_patch", 2, returnsJSON: true) { arguments, _ in .units(product(arguments, 0, 1) / 8) },
            Self("jsonb_patch", 2) { arguments, _ in .units(product(arguments, 0, 1) / 8) },
            Self("json_pretty", 1) { arguments, mostBytes in indenting(arguments, by: 4, mostBytes) },
            Self("json_pretty", 2) { arguments, mostBytes in
                indenting(arguments, by: max(4, arguments.size(1)), mostBytes)
            },
        ]
        // Source: SQLite's release history: rtreenode reads beyond its argument before SQLite 3.28 (CVE-2019-8457).
        + (Engine.current.sqliteVersionNumber < 3_028_000
            ? [Self("rtreenode", 2) { _, _ in .refused }, Self("rtreedepth", 1) { _, _ in .refused }] : [])

    private static func product(_ arguments: FunctionArguments, _ first: Int32, _ second: Int32) -> UInt64 {
        // Neither is longer than 2^31 bytes.
        arguments.size(first) * arguments.size(second)
    }

    /// Returns the cost of comparing text with a pattern, which is the first argument.
    private static func matching(_ arguments: FunctionArguments, _ wildcard: Unicode.Scalar) -> Weight {
        var units = product(arguments, 0, 1)
        // Since SQLite 3.21, a part that is not found ends the search; before, every combination of places is tried.
        guard Engine.current.sqliteVersionNumber < 3_021_000 else { return .units(units) }
        // A place is a character, and neighbouring wildcards are one.
        let text = max(arguments.withText(1) { text in UInt64(text.count { $0 & 0xc0 != 0x80 }) }, 1)
        let wildcards = arguments.withText(0) { pattern in
            zip(pattern, Array(pattern.dropFirst()) + [0]).count { $0.0 == UInt8(ascii: wildcard) && $0.1 != $0.0 }
        }
        for _ in 0..<max(0, wildcards - 2) where units < 1 << 31 { units *= text }
        return .units(units)
    }

    /// Old engines take the width and the precision from the format or an argument, without a limit.
    ///
    /// Source: SQLite's release history: CVE-2020-13434, before SQLite 3.32.
    private static func formatting(_ arguments: FunctionArguments, _ mostBytes: Int) -> Weight {
        guard arguments.count > 0 else { return .units(0) }
        let most = UInt64(max(mostBytes, 1 << 20))
        let isTooWide = arguments.withText(0) { format in
            var next: Int32 = 1
            let parts = format.split(separator: UInt8(ascii: "%"), omittingEmptySubsequences: false)
            var isLiteral = false
            for specification in parts.dropFirst() {
                // Two percent signs stand for one.
                guard !isLiteral, !specification.isEmpty else {
                    isLiteral = !isLiteral && specification.isEmpty
                    continue
                }
                var number: UInt64 = 0
                // The width and the precision come before the first letter.
                for byte in specification.prefix(while: { ($0 | 0x20) < UInt8(ascii: "a") }) {
                    let isDigit = byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9")
                    number = isDigit ? min(number * 10 + UInt64(byte - UInt8(ascii: "0")), 1 << 32) : 0
                    if byte == UInt8(ascii: "*") {
                        if next < arguments.count { number = arguments.integer(next).magnitude }
                        next += 1
                    }
                    if number > most { return true }
                }
                next += 1
            }
            return false
        }
        return isTooWide ? .refused : .units(arguments.total)
    }

    /// Returns the cost of writing JSON with indentation, for which SQLite has no limit until it is done.
    private static func indenting(_ arguments: FunctionArguments, by indent: UInt64, _ mostBytes: Int) -> Weight {
        let isText = sqlite3_value_type(arguments[0]) == SQLITE_TEXT
        // In the binary form, each value takes at least one byte.
        let binary = arguments.size(0)
        let (lines, depth): (UInt64, UInt64) = arguments.withText(0) { bytes in
            guard isText else { return (binary, min(binary, 1_000)) }
            var (lines, depth, deepest): (UInt64, UInt64, UInt64) = (0, 0, 0)
            for byte in bytes {
                switch byte {
                case UInt8(ascii: "["), UInt8(ascii: "{"):
                    lines += 2
                    depth += 1
                    deepest = max(deepest, depth)
                case UInt8(ascii: "]"), UInt8(ascii: "}"): depth = depth == 0 ? 0 : depth - 1
                case UInt8(ascii: ","): lines += 1
                default: break
                }
            }
            return (lines, min(deepest, 1_000))
        }
        let total = arguments.total + lines * (depth + 1) * indent
        return total > max(mostBytes, 1 << 24) ? .tooBig : .units(total)
    }
}
