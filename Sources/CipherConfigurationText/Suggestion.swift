/// Finds the word that was probably intended.
package enum Suggestion {
    /// Returns the candidate that is most similar to `word`; `nil` if none is similar.
    package static func nearest(to word: String, among candidates: [String]) -> String? {
        // A very long word is not a typing error, and computing the distance takes time proportional to the product of
        // the lengths.
        guard word.utf8.count <= 64 else { return nil }
        let folded = Array(word.lowercased())
        let ranked = candidates.map { (name: $0, distance: distance(folded, Array($0.lowercased()))) }
        guard let best = ranked.min(by: { $0.distance < $1.distance }) else { return nil }
        return best.distance <= max(1, min(3, best.name.count / 3)) ? best.name : nil
    }

    /// Returns how many letters must be added, removed, replaced or swapped with their neighbour to turn one word into
    /// the other.
    static func distance(_ left: [Character], _ right: [Character]) -> Int {
        var beforeLast: [Int] = []
        var last = Array(0...right.count)
        for (row, letter) in left.enumerated() {
            var current = [row + 1]
            for (column, other) in right.enumerated() {
                var best = min(last[column] + (letter == other ? 0 : 1), last[column + 1] + 1, current[column] + 1)
                if row > 0, column > 0, letter == right[column - 1], left[row - 1] == other {
                    best = min(best, beforeLast[column - 1] + 1)
                }
                current.append(best)
            }
            beforeLast = last
            last = current
        }
        return last[right.count]
    }
}
