package import CipherSQLText

/// A fault in rename hints that does not depend on the schema or the database.
package struct RenameFault {
    /// The new name in the faulty hint.
    package let new: SQLName
    package let detail: String
    package let advice: String

    /// Returns the first fault; `nil` if there is none.
    ///
    /// - Parameter hints: The new names, each with the old name.
    package static func first(in hints: [SQLName: String]) -> RenameFault? {
        var sources: [SQLName: SQLName] = [:]
        // Sorted, so that the same fault is always reported first.
        let sorted = hints.sorted { $0.key < $1.key }
        for (new, old) in sorted {
            if SQLName(old) == new {
                return RenameFault(new: new, detail: "\(old) is renamed to itself", advice: "remove this rename")
            }
            if let other = sources.updateValue(new, forKey: SQLName(old)) {
                return RenameFault(
                    new: new, detail: "\(old) is renamed twice, to \(other.text) and to \(new.text)",
                    advice: "remove one of the two renames")
            }
        }
        return sorted.lazy.map(\.key).first { isCyclic($0, hints) }
            .map {
                RenameFault(
                    new: $0, detail: "the renames of \"\($0.text)\" form a cycle",
                    advice: "remove one of the renames, or choose a new name that no older version used")
            }
    }

    private static func isCyclic(_ start: SQLName, _ hints: [SQLName: String]) -> Bool {
        var name = start
        for _ in 0..<hints.count {
            guard let old = hints[name] else { return false }
            name = SQLName(old)
            if name == start { return true }
        }
        return false
    }
}
