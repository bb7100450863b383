/// Random numbers that a seed determines.
///
/// They are the same on every machine.
///
/// Source: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators" (SplitMix64).
struct Random: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }

    /// Returns a number from 0 up to but not including `bound`, which is not 0.
    mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &self) }

    mutating func oneIn(_ count: Int) -> Bool { below(count) == 0 }

    mutating func byte() -> UInt8 { UInt8(truncatingIfNeeded: next()) }

    /// Returns one of the elements, of which there must be at least one.
    mutating func pick<Element>(_ elements: [Element]) -> Element { elements[below(elements.count)] }

    /// Returns a number that is often a boundary value.
    mutating func edge() -> UInt32 {
        let edges: [UInt32] = [
            0, 1, 2, 3, 4, 5, 7, 8, 16, 255, 256, 511, 512, 1023, 1024, 4095, 4096, 32767, 32768, 65535, 65536,
            0x7fff_ffff, 0x8000_0000, 0xffff_fffe, 0xffff_ffff,
        ]
        return oneIn(3) ? UInt32(truncatingIfNeeded: next()) : pick(edges)
    }
}
