import CipherTestSupport

/// Damage to a `-wal`, usually with corrected checksums, because SQLite ignores frames with wrong ones.
///
/// Source: SQLite, "WAL-mode File Format".
struct LogMutation {
    var bytes: [UInt8]

    private var pageSize: Int { Int(bytes.big32(8)) }
    private var frames: Int { max(0, (bytes.count - 32) / (24 + pageSize)) }

    mutating func mutate(_ random: inout Random) {
        guard bytes.count > 32, (512...65536).contains(pageSize), frames > 0 else { return bytes.scramble(&random) }
        let frame = 32 + random.below(frames) * (24 + pageSize)
        switch random.below(7) {
        case 0: bytes.setBig32(random.edge(), at: 4 * random.below(8))
        case 1: bytes.setBig32(random.edge(), at: frame)
        case 2: bytes.setBig32(random.edge(), at: frame + 4)
        case 3: bytes.setBig32(random.edge(), at: frame + 8 + 4 * random.below(4))
        case 4: bytes.removeLast(random.below(bytes.count))
        default:
            var page = DatabaseMutation(bytes: Array(bytes[(frame + 24)..<(frame + 24 + pageSize)]))
            page.mutate(&random)
            let fitted = (page.bytes + [UInt8](repeating: 0, count: pageSize)).prefix(pageSize)
            bytes.replaceSubrange((frame + 24)..<(frame + 24 + pageSize), with: fitted)
        }
        if !random.oneIn(4) { bytes.sealLog() }
    }
}

/// Damage to a rollback journal, with corrected checksums.
///
/// Source: SQLite, "Database File Format", section 3.
struct JournalMutation {
    var bytes: [UInt8]

    private var pageSize: Int { Int(bytes.big32(24)) }
    private var sector: Int { Int(bytes.big32(20)) }

    mutating func mutate(_ random: inout Random) {
        guard bytes.count > 28, (512...65536).contains(pageSize), (32...65536).contains(sector),
            bytes.count > sector + pageSize + 8
        else { return bytes.scramble(&random) }
        let record = sector + random.below((bytes.count - sector) / (pageSize + 8)) * (pageSize + 8)
        switch random.below(6) {
        case 0: bytes.setBig32(random.edge(), at: 8 + 4 * random.below(5))
        case 1: bytes.setBig32(random.edge(), at: record)
        case 2: bytes.removeLast(random.below(bytes.count))
        case 3: bytes.scramble(&random)
        default:
            var page = DatabaseMutation(bytes: Array(bytes[(record + 4)..<(record + 4 + pageSize)]))
            page.mutate(&random)
            let fitted = (page.bytes + [UInt8](repeating: 0, count: pageSize)).prefix(pageSize)
            bytes.replaceSubrange((record + 4)..<(record + 4 + pageSize), with: fitted)
            seal(record)
        }
    }

    private mutating func seal(_ record: Int) {
        var sum = bytes.big32(12)
        var index = pageSize - 200
        while index > 0 {
            sum &+= UInt32(bytes[record + 4 + index])
            index -= 200
        }
        bytes.setBig32(sum, at: record + 4 + pageSize)
    }
}
