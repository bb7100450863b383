internal import CCipherEngine
internal import CipherErrors

/// Stand-ins for SQLite's functions of which one call can take far more time or memory than its arguments are long.
///
/// SQLite does not call the progress handler inside of a function: `instr` with two values of a few megabytes runs for
/// ten minutes. A stand-in weighs its arguments. It refuses a call that would take too long, lets the progress handler
/// know what the others cost, and has SQLite's own function compute the result, on a connection without a file. Results
/// are therefore the same, and so are the entries of an index.
final class BoundedFunctions {
    /// The most that one call may cost; the unit is about a nanosecond.
    private static let mostCost: UInt64 = 1 << 29
    /// The number of units that count as one step of SQLite's virtual machine.
    private static let unitsForStep: UInt64 = 32

    private unowned let connection: Connection
    /// A connection that evaluates SQLite's own functions; `nil` until one is called.
    private var calculator: OpaquePointer?
    private var statements: [String: OpaquePointer] = [:]
    /// The cost that the progress handler does not know of yet.
    private var owed: UInt64 = 0

    init(_ connection: Connection) {
        self.connection = connection
    }

    deinit {
        for statement in statements.values { sqlite3_finalize(statement) }
        sqlite3_close_v2(calculator)
    }

    fileprivate func call(
        _ function: BoundedFunction, in encoding: TextEncoding, _ context: OpaquePointer, _ arguments: FunctionArguments
    ) {
        guard let statement = statement(function.name, arguments.count, encoding) else {
            let message = calculator.map { String(cString: sqlite3_errmsg($0)) } ?? "out of memory"
            return sqlite3_result_error(context, message, -1)
        }
        defer {
            sqlite3_reset(statement)
            sqlite3_clear_bindings(statement)
        }
        let mostBytes = sqlite3_limit(connection.handle, SQLITE_LIMIT_LENGTH, -1)
        _ = sqlite3_limit(calculator, SQLITE_LIMIT_LENGTH, mostBytes)
        // The arguments are copied first, because weighing them may convert them.
        for index in 0..<arguments.count {
            guard bind(arguments, index, of: function, in: encoding, to: statement) == SQLITE_OK else {
                return fail(context)
            }
        }
        switch function.weigh(arguments, Int(mostBytes)) {
        case .tooBig: return sqlite3_result_error_toobig(context)
        case .units(let units) where units <= Self.mostCost:
            owed += units
            let steps = Int(owed / Self.unitsForStep)
            owed %= Self.unitsForStep
            guard connection.progressHandler?.mayContinue(after: steps) != false else {
                return sqlite3_result_error_code(context, SQLITE_INTERRUPT)
            }
            compute(function, statement, context)
        case .units, .refused:
            let message = "\(function.name)() was refused, because it may take too long with these arguments"
            sqlite3_result_error(context, message, -1)
        }
    }

    /// Copies an argument.
    ///
    /// A function that expects text reads the bytes of a blob in the encoding of the database. A bound blob has lost this
    /// encoding, so its text is bound instead.
    private func bind(
        _ arguments: FunctionArguments, _ index: Int32, of function: BoundedFunction, in encoding: TextEncoding,
        to statement: OpaquePointer
    ) -> Int32 {
        guard encoding != .utf8, sqlite3_value_type(arguments[index]) == SQLITE_BLOB,
            function.readsBlobsAsText(arguments), let copy = sqlite3_value_dup(arguments[index])
        else { return sqlite3_bind_value(statement, index + 1, arguments[index]) }
        defer { sqlite3_value_free(copy) }
        guard let text = sqlite3_value_text(copy) else { return SQLITE_NOMEM }
        let count = sqlite3_value_bytes(copy)
        return text.withMemoryRebound(to: CChar.self, capacity: Int(count)) {
            sqlite3_bind_text(statement, index + 1, $0, count, cs_transient_destructor())
        }
    }

    private func compute(_ function: BoundedFunction, _ statement: OpaquePointer, _ context: OpaquePointer) {
        guard sqlite3_step(statement) == SQLITE_ROW else { return fail(context) }
        sqlite3_result_value(context, sqlite3_column_value(statement, 0))
        // Without this, another function would quote JSON as text.
        if function.returnsJSON { cs_result_json(context) }
    }

    private func fail(_ context: OpaquePointer) {
        switch sqlite3_errcode(calculator) & 0xff {
        case SQLITE_TOOBIG: sqlite3_result_error_toobig(context)
        case SQLITE_NOMEM: sqlite3_result_error_nomem(context)
        default: sqlite3_result_error(context, sqlite3_errmsg(calculator), -1)
        }
    }

    private func statement(_ name: String, _ count: Int32, _ encoding: TextEncoding) -> OpaquePointer? {
        let parameters = (0..<count).map { "?\($0 + 1)" }.joined(separator: ", ")
        let sql = "SELECT \(name)(\(parameters))"
        if let statement = statements[sql] { return statement }
        if calculator == nil {
            guard sqlite3_open_v2(":memory:", &calculator, SQLITE_OPEN_READWRITE, nil) == SQLITE_OK else { return nil }
            // SQLite reads the bytes of a blob in the encoding of the database if a function expects text.
            sqlite3_exec(calculator, "PRAGMA encoding = '\(encoding.rawValue)'", nil, nil, nil)
        }
        var statement: OpaquePointer?
        guard sqlite3_prepare_v2(calculator, sql, -1, &statement, nil) == SQLITE_OK else { return nil }
        statements[sql] = statement
        return statement
    }
}

/// The encoding of a database's text, of which a connection has one.
private enum TextEncoding: String, CaseIterable {
    case utf8 = "UTF-8"
    case utf16LittleEndian = "UTF-16le"
    case utf16BigEndian = "UTF-16be"

    var flag: Int32 {
        switch self {
        case .utf8: SQLITE_UTF8
        case .utf16LittleEndian: SQLITE_UTF16LE
        case .utf16BigEndian: SQLITE_UTF16BE
        }
    }
}

/// The arguments of a call.
struct FunctionArguments {
    let count: Int32
    fileprivate let start: UnsafeMutablePointer<OpaquePointer?>?

    subscript(index: Int32) -> OpaquePointer? { start?[Int(index)] }

    /// The length of an argument in bytes; 0 for NULL, and more than enough for a number.
    func size(_ index: Int32) -> UInt64 {
        switch sqlite3_value_type(self[index]) {
        case SQLITE_NULL: 0
        case SQLITE_TEXT, SQLITE_BLOB: UInt64(sqlite3_value_bytes(self[index]))
        default: 32
        }
    }

    /// The sum of the lengths of texts and blobs.
    var total: UInt64 {
        (0..<count).reduce(0) { total, index in
            let type = sqlite3_value_type(self[index])
            return type == SQLITE_TEXT || type == SQLITE_BLOB ? total + size(index) : total
        }
    }

    /// The number that a function that expects one reads, also from text.
    func integer(_ index: Int32) -> Int64 { sqlite3_value_int64(self[index]) }

    /// Lends an argument as SQLite's functions read it: a blob and a number as text.
    func withText<Result>(_ index: Int32, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        // The text comes first, because reading it may change the number of bytes.
        let text = sqlite3_value_text(self[index])
        let count = text == nil ? 0 : Int(sqlite3_value_bytes(self[index]))
        return body(UnsafeRawBufferPointer(start: text, count: count))
    }
}

extension Connection {
    /// Replaces SQLite's functions that a hostile schema could use to take unlimited time or memory.
    ///
    /// The corresponding C function is `sqlite3_create_function_v2`.
    func boundFunctions() throws {
        let bounds = BoundedFunctions(self)
        // SQLite chooses the one for the database's encoding, which is not known yet.
        for (function, encoding) in BoundedFunction.available.flatMap({ function in
            TextEncoding.allCases.map { (function, $0) }
        }) {
            let call = Unmanaged.passRetained(FunctionCall(function, encoding, bounds))
            // SQLite releases the object even if it refuses the function.
            try check(
                sqlite3_create_function_v2(
                    handle, function.name, function.argumentCount, encoding.flag | function.flags, call.toOpaque(),
                    { context, count, arguments in
                        guard let context, let user = sqlite3_user_data(context) else { return }
                        let call = Unmanaged<FunctionCall>.fromOpaque(user).takeUnretainedValue()
                        call.bounds.call(
                            call.function, in: call.encoding, context, FunctionArguments(count: count, start: arguments)
                        )
                    }, nil, nil, { user in user.map { Unmanaged<FunctionCall>.fromOpaque($0).release() } }))
        }
    }
}

private final class FunctionCall {
    let function: BoundedFunction
    let encoding: TextEncoding
    let bounds: BoundedFunctions

    init(_ function: BoundedFunction, _ encoding: TextEncoding, _ bounds: BoundedFunctions) {
        self.function = function
        self.encoding = encoding
        self.bounds = bounds
    }
}
