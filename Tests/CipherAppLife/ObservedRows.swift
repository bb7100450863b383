internal import CipherStore
import Foundation

/// An observation that runs while the app is running, and must have the last rows at the end.
actor ObservedRows {
    private let store: EncryptedStore
    private var latest: [Int]?
    private var end: String?
    private static let query: @Sendable (Connection) throws -> [Int] = { db in
        guard try db.exists("SELECT 1 FROM sqlite_master WHERE name = 'item'") else { return [] }
        return try db.values(Int.self, "SELECT rowid FROM item ORDER BY rowid")
    }

    init(_ store: EncryptedStore) {
        self.store = store
        Task { await observe() }
    }

    private func observe() async {
        do {
            for try await rows in store.observe(Self.query) { latest = rows }
        } catch {
            end = code(of: error)
        }
    }

    /// Why the observed rows differ from the database's; `nil` if they are equal.
    ///
    /// Others may also write, so a row that is read here may already be gone there. Both are read until they agree.
    func failure() async -> String? {
        for _ in 0..<500 {
            do {
                let rows = try await store.read(Self.query)
                if latest == rows { return nil }
                if let end { return "ended with \(end)" }
                try await store.checkForChanges()
                try await Task.sleep(for: .milliseconds(10))
            } catch {
                return "cannot be compared: \(code(of: error))"
            }
        }
        return "has other rows than the database"
    }
}
