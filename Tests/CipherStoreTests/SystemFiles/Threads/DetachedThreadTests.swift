internal import CipherSystemFiles
import Foundation
import Testing

/// Threads that the library starts.
struct DetachedThreadTests {
    /// Uses a stack of more than a megabyte.
    private static func descend(levels: Int) -> Int {
        withUnsafeTemporaryAllocation(byteCount: 1_000, alignment: 1) { room in
            room.initializeMemory(as: UInt8.self, repeating: 1)
            return levels == 0 ? 0 : Int(room[levels % room.count]) + descend(levels: levels - 1)
        }
    }

    @Test func `A thread has room for deep calls, as those of SQLite's parser are`() throws {
        let answer = BlockingAnswer<Int>()
        try DetachedThread.start("test") {
            let depth = Self.descend(levels: 1_000)
            answer.give(.success(depth))
        }
        #expect(try answer.wait() == 1_000)
    }

    #if os(Linux)
        @Test(
            "System tools show a thread's name, or as much of it as Linux allows",
            arguments: ["", "key", "a long name"])
        func name(name: String) throws {
            let answer = BlockingAnswer<String>()
            try DetachedThread.start(name) {
                answer.give(Result { try String(contentsOfFile: "/proc/thread-self/comm", encoding: .utf8) })
            }
            #expect(try answer.wait() == "CipherStore \(name)".prefix(15) + "\n")
        }
    #endif
}
