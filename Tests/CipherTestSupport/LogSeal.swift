internal import CipherSQLiteFormat

extension [UInt8] {
    /// Makes every checksum and salt of a log match.
    ///
    /// Source: SQLite, "WAL-mode File Format".
    public mutating func sealLog() {
        guard count > 32, case let pageSize = Int(big32(8)), (512...65536).contains(pageSize),
            pageSize & (pageSize - 1) == 0
        else { return }
        let salt = self[16..<24]
        var sum = LogSum(isBigEndian: self[3] & 1 == 1)
        sum.add(self[0..<24])
        replaceSubrange(24..<32, with: sum.bytes)
        for frame in stride(from: 32, through: count - 24 - pageSize, by: 24 + pageSize) {
            sum.add(self[frame..<(frame + 8)])
            sum.add(self[(frame + 24)..<(frame + 24 + pageSize)])
            replaceSubrange((frame + 8)..<(frame + 24), with: salt + sum.bytes)
        }
    }
}

private struct LogSum {
    let isBigEndian: Bool
    private var first: UInt32 = 0
    private var second: UInt32 = 0

    init(isBigEndian: Bool) { self.isBigEndian = isBigEndian }

    mutating func add(_ bytes: ArraySlice<UInt8>) {
        let bytes = Array(bytes)
        for offset in stride(from: 0, to: bytes.count, by: 8) {
            let (one, two) = (bytes.big32(offset), bytes.big32(offset + 4))
            first &+= (isBigEndian ? one : one.byteSwapped) &+ second
            second &+= (isBigEndian ? two : two.byteSwapped) &+ first
        }
    }

    var bytes: [UInt8] {
        [first, second].flatMap { sum in (0..<4).map { UInt8(truncatingIfNeeded: sum >> (24 - 8 * $0)) } }
    }
}
