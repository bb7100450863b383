internal import CCipherEngine

extension Connection {
    /// The state of the log on which all connections to a database in WAL mode agree.
    package struct LogState: Equatable, Sendable {
        /// The number of committed frames.
        ///
        /// Frames of a transaction that was not committed may follow.
        package let frameCount: Int
        /// The size of the database, in pages.
        package let pageCount: UInt32
        /// The salt in the header of this log and in its frames.
        package let salt: [UInt8]
    }

    /// Returns the state of the log, including every commit.
    ///
    /// The checksums in the log are not sufficient: after some rollbacks to a savepoint, SQLite commits frames whose
    /// checksums are zero, and other connections read these frames through the index nevertheless.
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
            // The format version, and whether the index was initialized.
            guard number(0) == 3_007_000, bytes[12] != 0 else { return nil }
            return LogState(
                frameCount: Int(number(16)), pageCount: number(20), salt: Array(bytes[32..<40]))
        }
    }
}
