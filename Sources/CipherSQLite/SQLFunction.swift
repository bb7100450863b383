internal import CCipherEngine
internal import CipherErrors

/// An SQL function that an app registers.
public struct SQLFunction: Sendable {
    /// The name in SQL.
    public let name: String
    /// The number of arguments; `nil` for any number.
    public let argumentCount: Int?
    /// Whether equal arguments always produce an equal result, so that an index may use the function.
    public let isDeterministic: Bool
    /// Whether the function has no side effects, so that an untrusted schema may call it.
    public let isInnocuous: Bool
    /// A closure that computes the result.
    public let body: @Sendable ([Value]) throws -> Value

    /// Creates a function.
    ///
    /// An error that `body` throws becomes the error of the statement, with its description as the message. In text
    /// that is not valid UTF-8, `body` gets replacement characters, as described at ``Value/text(_:)``; a `CAST` to a
    /// blob returns the exact bytes.
    ///
    /// Source of the properties: SQLite, "Create Or Redefine SQL Functions".
    public init(
        _ name: String, argumentCount: Int? = nil, isDeterministic: Bool = true, isInnocuous: Bool = true,
        body: @escaping @Sendable ([Value]) throws -> Value
    ) {
        self.name = name
        self.argumentCount = argumentCount
        self.isDeterministic = isDeterministic
        self.isInnocuous = isInnocuous
        self.body = body
    }

    /// The names of functions that would replace SQLite's functions in the library's own statements.
    fileprivate static let reserved: Set = [
        "coalesce", "count", "ifnull", "max", "min", "strftime", "sum", "total", "typeof",
    ]
}

extension Connection {
    /// Registers a function for this connection's statements and for the schema.
    ///
    /// The corresponding C function is `sqlite3_create_function_v2`.
    ///
    /// - Throws: ``DatabaseError`` with `SQLITE_MISUSE` on a connection that is closed or lent to a closure, for a name
    ///   that is empty, contains a NUL character or has more than 255 bytes, and for fewer than 0 or more than 127
    ///   arguments; ``StoreError`` with the code `misuse` for the name of an SQLite function that the library's own
    ///   statements use: `coalesce`, `count`, `ifnull`, `max`, `min`, `strftime`, `sum`, `total`, `typeof`.
    public func register(_ function: SQLFunction) throws {
        try checkRegistration(of: function.name, limit: 255)
        guard !SQLFunction.reserved.contains(TableAccess.folded(function.name)) else {
            throw StoreError(
                .misuse, path: path,
                "CipherStore uses SQLite's function \(function.name), which the app's function would replace",
                advice: "rename the app's function", changed: .nothing)
        }
        guard (0...127).contains(function.argumentCount ?? 0) else {
            throw misuse("a function must have 0 to 127 arguments, or a variable number of arguments")
        }
        // Engines before SQLite 3.31 ignore the flag.
        let innocuous: Int32 = 0x20_0000
        let flags =
            SQLITE_UTF8 | (function.isDeterministic ? SQLITE_DETERMINISTIC : 0) | (function.isInnocuous ? innocuous : 0)
        let box = Unmanaged.passRetained(FunctionBox(function))
        // SQLite releases the box even if it refuses the function.
        try check(
            sqlite3_create_function_v2(
                handle, function.name, Int32(function.argumentCount ?? -1), flags, box.toOpaque(),
                { context, count, arguments in
                    guard let context, let user = sqlite3_user_data(context) else { return }
                    let function = Unmanaged<FunctionBox>.fromOpaque(user).takeUnretainedValue().function
                    do {
                        let values = (0..<Int(count)).map { Value(argument: arguments?[$0]) }
                        try function.body(values).beResult(of: context)
                    } catch {
                        "\(error)".withBytes { bytes in
                            bytes.withMemoryRebound(to: CChar.self) {
                                sqlite3_result_error(context, $0.baseAddress, Int32(clamping: $0.count))
                            }
                        }
                    }
                }, nil, nil, { user in user.map { Unmanaged<FunctionBox>.fromOpaque($0).release() } }))
    }
}

private final class FunctionBox {
    let function: SQLFunction

    init(_ function: SQLFunction) { self.function = function }
}

extension Value {
    /// The corresponding C function is `sqlite3_value_type`.
    fileprivate init(argument: OpaquePointer?) {
        switch sqlite3_value_type(argument) {
        case SQLITE_INTEGER: self = .integer(sqlite3_value_int64(argument))
        case SQLITE_FLOAT: self = .real(sqlite3_value_double(argument))
        case SQLITE_TEXT:
            // The text comes first, because reading it may change the number of bytes.
            let start = sqlite3_value_text(argument)
            let count = start == nil ? 0 : Int(sqlite3_value_bytes(argument))
            self = .text(String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self))
        case SQLITE_BLOB:
            let start = sqlite3_value_blob(argument)
            let count = Int(sqlite3_value_bytes(argument))
            self = .blob([UInt8](UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count)))
        default: self = .null
        }
    }

    /// The corresponding C functions are `sqlite3_result_text64` and related ones.
    fileprivate func beResult(of context: OpaquePointer) {
        switch self {
        case .null: sqlite3_result_null(context)
        case .integer(let integer): sqlite3_result_int64(context, integer)
        case .real(let real): sqlite3_result_double(context, real)
        case .text(let text):
            text.withBytes { bytes in
                bytes.withMemoryRebound(to: CChar.self) {
                    sqlite3_result_text64(
                        context, $0.baseAddress, UInt64($0.count), cs_transient_destructor(), UInt8(SQLITE_UTF8))
                }
            }
        case .blob(let blob):
            blob.withUnsafeBytes { bytes in
                if let start = bytes.baseAddress {
                    sqlite3_result_blob64(context, start, UInt64(bytes.count), cs_transient_destructor())
                } else {
                    sqlite3_result_zeroblob(context, 0)
                }
            }
        }
    }
}
