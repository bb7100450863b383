/// Big-endian numbers in the bytes of a file; accesses beyond the end have no effect.
extension [UInt8] {
    func big16(_ offset: Int) -> Int { offset + 2 <= count ? Int(self[offset]) << 8 | Int(self[offset + 1]) : 0 }

    func big32(_ offset: Int) -> UInt32 {
        guard offset >= 0, offset + 4 <= count else { return 0 }
        return self[offset..<(offset + 4)].reduce(0) { $0 << 8 | UInt32($1) }
    }

    mutating func setBig16(_ value: Int, at offset: Int) {
        guard offset + 2 <= count else { return }
        self[offset] = UInt8(truncatingIfNeeded: value >> 8)
        self[offset + 1] = UInt8(truncatingIfNeeded: value)
    }

    mutating func setBig32(_ value: UInt32, at offset: Int) {
        guard offset >= 0, offset + 4 <= count else { return }
        for index in 0..<4 { self[offset + index] = UInt8(truncatingIfNeeded: value >> (24 - 8 * UInt32(index))) }
    }

    /// Changes, duplicates, removes or swaps a few bytes anywhere.
    mutating func scramble(_ random: inout Random) {
        guard !isEmpty else { return append(random.byte()) }
        let place = random.below(count)
        switch random.below(6) {
        case 0: self[place] = random.byte()
        case 1: self[place] ^= 1 << UInt8(random.below(8))
        case 2: setBig32(random.edge(), at: place)
        case 3: removeSubrange(place..<Swift.min(count, place + 1 + random.below(16)))
        case 4:
            insert(contentsOf: self[place..<Swift.min(count, place + 1 + random.below(64))], at: random.below(count))
        default:
            for index in place..<Swift.min(count, place + 1 + random.below(64)) { self[index] = random.byte() }
        }
    }
}
