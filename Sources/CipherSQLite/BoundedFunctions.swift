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
    /// The arguments of the call that is being computed.
    private var current: FunctionArguments?
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
        let mostBytes = sqlite3_limit(connection.handle, SQLITE_LIMIT_LENGTH, -1)
        _ = sqlite3_limit(calculator, SQLITE_LIMIT_LENGTH, mostBytes)
        switch function.weigh(arguments, Int(mostBytes)) {
        case .tooBig: return sqlite3_result_error_toobig(context)
        case .units(let units) where units <= Self.mostCost:
            owed += units
            let steps = Int(owed / Self.unitsForStep)
            owed %= Self.unitsForStep
            guard connection.progressHandler?.mayContinue(after: steps) != false else {
                return sqlite3_result_error_code(context, SQLITE_INTERRUPT)
            }
            compute(function, arguments, statement, context)
        case .units, .refused:
            let message = "\(function.name)() was refused, because it may take too long with these arguments"
            sqlite3_result_error(context, message, -1)
        }
    }

    private func compute(
        _ function: BoundedFunction, _ arguments: FunctionArguments, _ statement: OpaquePointer,
        _ context: OpaquePointer
    ) {
        current = arguments
        defer {
            sqlite3_reset(statement)
            current = nil
        }
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

    /// Registers the function that returns an argument of the current call.
    ///
    /// Parameters would not do, because SQLite reads a bound blob as UTF-8 if a function expects text.
    private func lendArguments() -> Int32 {
        sqlite3_create_function_v2(
            calculator, "cipherstore_argument", 1, SQLITE_UTF8, Unmanaged.passUnretained(self).toOpaque(),
            { context, _, places in
                guard let context, let user = sqlite3_user_data(context) else { return }
                let bounds = Unmanaged<BoundedFunctions>.fromOpaque(user).takeUnretainedValue()
                let place = sqlite3_value_int(places?[0])
                guard let current = bounds.current, place < current.count else { return }
                sqlite3_result_value(context, current[place])
            }, nil, nil, nil)
    }

    private func statement(_ name: String, _ count: Int32, _ encoding: TextEncoding) -> OpaquePointer? {
        let parameters = (0..<count).map { "cipherstore_argument(\($0))" }.joined(separator: ", ")
        let sql = "SELECT \(name)(\(parameters))"
        if let statement = statements[sql] { return statement }
        if calculator == nil {
            guard sqlite3_open_v2(":memory:", &calculator, SQLITE_OPEN_READWRITE, nil) == SQLITE_OK else { return nil }
            // SQLite reads the bytes of a blob in the encoding of the database if a function expects text.
            sqlite3_exec(calculator, "PRAGMA encoding = '\(encoding.rawValue)'", nil, nil, nil)
            guard lendArguments() == SQLITE_OK else { return nil }
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

/// The arguments of a call, which are weighed without changing them: SQLite keeps a conversion in the value itself.
struct FunctionArguments {
    let count: Int32
    fileprivate let start: UnsafeMutablePointer<OpaquePointer?>?
    fileprivate let isUTF8: Bool

    subscript(index: Int32) -> OpaquePointer? { start?[Int(index)] }

    /// The length of an argument in bytes of UTF-8, or a little more; 0 for NULL.
    func size(_ index: Int32) -> UInt64 {
        switch sqlite3_value_type(self[index]) {
        case SQLITE_NULL: 0
        case SQLITE_TEXT where !isUTF8: units(index) * 3
        case SQLITE_TEXT, SQLITE_BLOB: UInt64(sqlite3_value_bytes(self[index]))
        default: 32
        }
    }

    /// The sum of the lengths of texts and blobs in bytes of UTF-8, or less.
    var total: UInt64 {
        (0..<count).reduce(0) { total, index in
            switch sqlite3_value_type(self[index]) {
            case SQLITE_TEXT where !isUTF8: total + units(index)
            case SQLITE_TEXT, SQLITE_BLOB: total + UInt64(sqlite3_value_bytes(self[index]))
            default: total
            }
        }
    }

    /// The number of UTF-16 code units of a text, each of which takes one to three bytes of UTF-8.
    private func units(_ index: Int32) -> UInt64 { UInt64(sqlite3_value_bytes16(self[index])) / 2 }

    /// The number that a function that expects one reads, also from text.
    func integer(_ index: Int32) -> Int64 { sqlite3_value_int64(self[index]) }

    /// Lends an argument as SQLite's functions read it: a blob and a number as text.
    func withText<Result>(_ index: Int32, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        let copy = sqlite3_value_dup(self[index])
        defer { sqlite3_value_free(copy) }
        // The text comes first, because reading it may change the number of bytes.
        let text = sqlite3_value_text(copy)
        let count = text == nil ? 0 : Int(sqlite3_value_bytes(copy))
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
                            call.function, in: call.encoding, context,
                            FunctionArguments(count: count, start: arguments, isUTF8: call.encoding == .utf8)
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
