package import CipherSQLite

/// One worker's connections to the original and to the copy.
package struct ConnectionPair {
    package let original: Connection
    let copy: Connection

    package init(original: Connection, copy: Connection) {
        self.original = original
        self.copy = copy
    }

    package func close() {
        original.close()
        copy.close()
    }

    /// Runs `body` while both connections refuse values that exceed a length in bytes.
    func refusingValues<Result>(longerThan bytes: Int32, _ body: () throws -> Result) rethrows -> Result {
        try original.refusingValues(longerThan: bytes) {
            try copy.refusingValues(longerThan: bytes, body)
        }
    }
}
