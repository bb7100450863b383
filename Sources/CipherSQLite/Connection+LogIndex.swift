internal import CCipherEngine

extension Connection {
    /// What the connections to a database in WAL mode agree on as its log.
    package struct LogState: Equatable, Sendable {
        /// How many frames have been committed.
        ///
        /// After them there may be others, of a transaction that was not.
        package let frameCount: Int
        /// The size of the database, in pages.
        package let pageCount: UInt32
        /// What the header of this log and its frames hold.
        package let salt: [UInt8]
    }

    /// The state of the log, of which no commit is left out.
    ///
    /// The sums in the log are not enough: SQLite commits frames with sums of zeros after some rollbacks to a savepoint, which
    /// other connections read by the index all the same.
    ///
    /// - Returns: `nil` if the database has no log.
    /// - Throws: ``DatabaseError``.
    package func logState() throws -> LogState? {
        try checkThread()
        var header = [UInt8](repeating: 0, count: 48)
        let result = cs_log_index(handle, "main", &header)
        guard result != SQLITE_NOTFOUND else { return nil }
        try check(result)
        return header.withUnsafeBytes { bytes in
            func number(_ offset: Int) -> UInt32 { bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self) }
            // The version of the format, and whether the index was made.
            guard number(0) == 3_007_000, bytes[12] != 0 else { return nil }
            return LogState(
                frameCount: Int(number(16)), pageCount: number(20), salt: Array(bytes[32..<40]))
        }
    }
}
