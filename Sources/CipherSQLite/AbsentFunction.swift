internal import CCipherEngine
internal import CipherErrors

extension Connection {
    /// Runs `body`, and repeats it with a stand-in for each function that the schema names but that is not registered.
    ///
    /// SQLite compiles the code that would compute an index entry or a generated column even if it then moves whole
    /// records and never runs that code. A stand-in lets the code compile; calling it fails.
    ///
    /// - Throws: ``DatabaseError``, or any error thrown by `body`.
    package func standingInForAbsentFunctions<Result>(_ body: () throws -> Result) throws -> Result {
        var names: [String] = []
        let result: Swift.Result<Result, any Error>
        while true {
            do {
                result = .success(try body())
                break
            } catch let error as DatabaseError {
                // The names are compared by byte, because names that are equal in Swift can be two functions in SQLite.
                guard case .function(let name) = error.unregistered,
                    !names.contains(where: { $0.utf8.elementsEqual(name.utf8) })
                else {
                    result = .failure(error)
                    break
                }
                try setStandIn(for: name, present: true)
                names.append(name)
            } catch {
                result = .failure(error)
                break
            }
        }
        // Elsewhere, a missing function must be reported as missing.
        for name in names { try setStandIn(for: name, present: false) }
        return try result.get()
    }

    private func setStandIn(for name: String, present: Bool) throws {
        let fail: @convention(c) (OpaquePointer?, Int32, UnsafeMutablePointer<OpaquePointer?>?) -> Void = {
            context, _, _ in
            sqlite3_result_error(context, "the schema calls a function that only the app provides", -1)
        }
        // The stand-in is innocuous, because an untrusted schema may call only innocuous functions; engines before
        // SQLite 3.31 ignore the flag.
        let innocuous: Int32 = 0x20_0000
        try check(
            sqlite3_create_function_v2(
                handle, name, -1, SQLITE_UTF8 | SQLITE_DETERMINISTIC | innocuous, nil, present ? fail : nil, nil, nil,
                nil))
    }
}
