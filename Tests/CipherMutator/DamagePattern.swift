import CipherTestSupport

/// A way in which databases are damaged for the recovery trials.
enum DamagePattern: String, CaseIterable {
    case onePage, somePages, manyPages, noise, bits, cut, roots, interior, overflow, index, header, schema, freeList

    /// Whether the tables' definitions may be lost, so that the recovery gets a healthy database with the same schema.
    var losesSchema: Bool { ![.cut, .bits, .freeList, .index, .overflow].contains(self) }

    /// Damages a database.
    ///
    /// - Returns: The pages that are lost in whole or in part.
    func damage(
        _ bytes: inout [UInt8], pageSize size: Int, _ places: RowPlaces, _ random: inout SeededRandom
    ) -> Set<UInt32> {
        let pages = bytes.count / size
        if self == .cut {
            let kept = 1 + random.below(pages)
            bytes.removeLast(bytes.count - kept * size)
            return Set((UInt32(kept) + 1)...(UInt32(pages) + 1))
        }
        if self == .bits { return Self.flip(&bytes, size, &random) }
        let lost = lost(of: pages, places, &random)
        let isNoise = self == .noise || random.oneIn(3)
        for page in lost {
            for place in (Int(page - 1) * size)..<(Int(page) * size) {
                // The header stays if only the schema is lost.
                if self == .schema, place < 100 { continue }
                bytes[place] = isNoise ? UInt8.random(in: 0...255, using: &random) : 0
            }
        }
        return lost
    }

    private static func flip(_ bytes: inout [UInt8], _ size: Int, _ random: inout SeededRandom) -> Set<UInt32> {
        var lost: Set<UInt32> = []
        for _ in 0...random.below(12) {
            let place = size + random.below(bytes.count - size)
            bytes[place] ^= UInt8(1 << random.below(8))
            lost.insert(UInt32(place / size + 1))
        }
        return lost
    }

    private func lost(of pages: Int, _ places: RowPlaces, _ random: inout SeededRandom) -> Set<UInt32> {
        func some(_ most: Int, of all: [UInt32]) -> Set<UInt32> {
            let all = all.isEmpty ? [2] : all
            return Set(random.some(most, of: all)).union([random.pick(all)])
        }
        let all = (2...UInt32(pages)).map { $0 }
        switch self {
        case .onePage, .noise: return [random.pick(all)]
        case .somePages: return some(6, of: all)
        case .manyPages: return some(pages / 3, of: all)
        case .roots: return some(2, of: places.roots.values.filter { $0 > 1 }.sorted())
        case .interior: return some(3, of: places.interior.values.flatMap { $0 }.filter { $0 > 1 }.sorted())
        case .overflow: return some(8, of: places.overflow.sorted())
        case .index: return some(10, of: (places.pagesOfTrees["person_name"] ?? []).sorted())
        case .header, .schema: return [1]
        case .freeList: return some(3, of: places.freeTrunks.sorted())
        case .cut, .bits: return []
        }
    }
}
