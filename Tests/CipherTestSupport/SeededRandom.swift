/// Random numbers that a seed determines, so that a failure can be repeated.
///
/// Source: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators" (SplitMix64).
public struct SeededRandom: RandomNumberGenerator {
    private var state: UInt64

    /// The numbers of a seed.
    public init(seed: UInt64) {
        state = seed
    }

    /// The next number.
    public mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }

    /// Returns a number from 0 up to but not including `bound`, which is not 0.
    public mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &self) }

    /// Returns true with a probability of one in `count`.
    public mutating func oneIn(_ count: Int) -> Bool { below(count) == 0 }

    /// Returns one of the elements, of which there must be at least one.
    public mutating func pick<Element>(_ elements: [Element]) -> Element { elements[below(elements.count)] }

    /// Returns up to `most` of the elements, in any order.
    public mutating func some<Element>(_ most: Int, of elements: [Element]) -> [Element] {
        Array(elements.shuffled(using: &self).prefix(below(most + 1)))
    }
}
