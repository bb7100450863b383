import CipherPlatform
import Foundation

/// Counts from one, on any thread.
final class Counter: @unchecked Sendable {
    private let lock = NSLock()
    private var count = 0

    func next() -> Int {
        lock.withLock {
            count += 1
            return count
        }
    }
}

/// Kills the process at the point that the release names.
enum Death {
    nonisolated(unsafe) private static var place = ""
    nonisolated(unsafe) private static var number = 0
    private static let passed = Counter()

    static func expect(_ death: Release.Death?) {
        place = death?.place ?? ""
        number = death?.number ?? 0
    }

    static func pass(_ here: String) {
        if here == place, passed.next() == number { kill(getpid(), SIGKILL) }
    }
}

/// Writes a line without a buffer, because the line must be written before the next kill.
func say(_ text: String) {
    let line = Array((text + "\n").utf8)
    var sent = 0
    while sent < line.count {
        let part = line[sent...].withUnsafeBytes { write(1, $0.baseAddress, $0.count) }
        guard part > 0 else { exit(4) }
        sent += part
    }
}
