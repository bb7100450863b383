import CipherStore
import Foundation

/// Shows the latest messages and receives new ones, while the database is encrypted.
@MainActor
final class ChatApp {
    /// The number of messages received so far.
    private(set) var received = 0
    private var longestWrite = Duration.zero
    private var longestRead = Duration.zero
    private let store: EncryptedStore
    private let conversion: StoreConversion
    private let file: URL
    private let window: Window

    init(_ store: EncryptedStore, _ conversion: StoreConversion, file: URL, window: Window) {
        self.store = store
        self.conversion = conversion
        self.file = file
        self.window = window
    }

    /// Receives and shows messages until the database is encrypted, and for one more frame.
    func work(untilEncrypted oldMessages: Int) async throws {
        var isEncrypted = false
        while !isEncrypted {
            if case .finished = conversion.state { isEncrypted = true }
            for _ in 0..<10 { try await receive() }
            try await show(oldMessages)
        }
        try window.close()
    }

    private func receive() async throws {
        received += 1
        let body = "message \(received), just received"
        let time = try await ContinuousClock().measure {
            try await store.write { db in
                try db.execute("INSERT INTO chat(sender, body) VALUES ('anna', \(body))")
            }
        }
        longestWrite = max(longestWrite, time)
    }

    private func show(_ oldMessages: Int) async throws {
        var latest: [String] = []
        let time = try await ContinuousClock().measure {
            latest = try await store.read { db in
                try db.values(String.self, "SELECT sender || ': ' || body FROM chat ORDER BY id DESC LIMIT 6")
            }
        }
        longestRead = max(longestRead, time)
        try window.draw(
            ["chat.db, \(oldMessages) old messages", ""] + latest.reversed().map { "  " + String($0.prefix(70)) } + [
                "", "  received meanwhile  \(received)",
                "  longest write       \(Self.milliseconds(longestWrite))",
                "  longest read        \(Self.milliseconds(longestRead))",
                "  encryption          \(try state())",
                "  first bytes on disk \(try firstBytes())",
            ])
    }

    private func state() throws -> String {
        switch conversion.state {
        case .running(let progress):
            "\(Self.bar(progress?.fraction ?? 0)) \(progress?.stage.rawValue ?? "")"
        case .waiting(let reason): "waiting: \(reason)"
        case .finished(let report): "\(Self.bar(1)) done, \(report.rows) rows"
        case .failed(let error): throw error
        }
    }

    /// Returns the start of the file, as anyone with a copy of the file sees it.
    private func firstBytes() throws -> String {
        let handle = try FileHandle(forReadingFrom: file)
        defer { try? handle.close() }
        let bytes = try handle.read(upToCount: 16) ?? Data()
        return String(bytes.map { (32..<127).contains($0) ? Character(Unicode.Scalar($0)) : "." })
    }

    private static func milliseconds(_ duration: Duration) -> String {
        duration.formatted(.units(allowed: [.milliseconds], width: .abbreviated))
    }

    private static func bar(_ fraction: Double) -> String {
        let (width, done) = (30, Int(fraction * 30))
        return "[\(String(repeating: "#", count: done))\(String(repeating: "-", count: width - done))]"
    }
}
