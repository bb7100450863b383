internal import CCipherSystem
internal import CipherDatabaseConversion
internal import CipherPlatform
internal import CipherSystemFiles

/// What a run tells a worker process.
enum FleetRequest: Codable, Sendable {
    case process(FleetJob)
    /// Restore the file in progress, as after a signal.
    case cancel
}

/// A file for a worker process; the duplicate of the locked folder's descriptor is sent with it.
struct FleetJob: Codable, Sendable {
    let paths: DatabasePaths
    /// The size of the file and of its log, in bytes.
    let bytes: Int64
    let showsProgress: Bool
}

/// What a worker process tells the run.
enum FleetAnswer: Codable, Sendable {
    case progress(Double)
    case result(FleetResult)
    /// The process keeps as many replaced files locked as it may, so another one must work on the file.
    case full
    /// The process could not begin, for example because a configuration no longer exists.
    case unable(FailureReport)
}

/// One end of the socket between a run and a worker process, with a line of JSON for each message.
///
/// One thread receives, and any thread sends.
// Unchecked, but thread-safe: `received` and `descriptor` are used only by the thread that receives.
final class FleetChannel: @unchecked Sendable {
    let socket: Int32
    private let lock = Lock()
    private var received: [UInt8] = []
    private var searched = 0
    private var descriptor: Int32 = -1
    private static let piece = 64 << 10
    /// A length in bytes that is greater than that of any message.
    private static let longestLine = 64 << 20

    init(_ socket: Int32) { self.socket = socket }

    deinit {
        if descriptor >= 0 { close(descriptor) }
        close(socket)
    }

    /// Sends a message, and a duplicate of a descriptor unless it is -1.
    ///
    /// - Returns: Whether the other end is still there.
    @discardableResult
    func send(_ message: some Encodable, descriptor: Int32 = -1) -> Bool {
        // The encoder escapes line breaks in strings.
        guard let line = try? JSONEncoder().encode(message) else { return false }
        var (rest, descriptor) = (Array(line + [UInt8(ascii: "\n")])[...], descriptor)
        return lock.withLock {
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes { cs_send(socket, $0.baseAddress, $0.count, descriptor) }
                guard count > 0 else { return false }
                rest = rest.dropFirst(count)
                descriptor = -1
            }
            return true
        }
    }

    /// Returns the next message that was received; `nil` if there is none yet.
    ///
    /// - Throws: An error if it is not a message.
    func next<Message: Decodable>(_ type: Message.Type) throws -> Message? {
        guard let end = received[searched...].firstIndex(of: UInt8(ascii: "\n")) else {
            searched = received.count
            return nil
        }
        defer {
            received.removeFirst(end + 1)
            searched = 0
        }
        return try JSONDecoder().decode(type, from: Data(received[..<end]))
    }

    /// Waits for more bytes of messages; returns `false` if the other end is gone.
    func receive() -> Bool {
        guard received.count <= Self.longestLine else { return false }
        let held = received.count
        received += [UInt8](repeating: 0, count: Self.piece)
        var descriptor: Int32 = -1
        let count = received.withUnsafeMutableBytes { bytes in
            cs_receive(socket, bytes.baseAddress?.advanced(by: held), Self.piece, &descriptor)
        }
        received.removeLast(Self.piece - max(0, count))
        if descriptor >= 0 {
            if self.descriptor >= 0 { close(self.descriptor) }
            self.descriptor = descriptor
        }
        return count > 0
    }

    /// Returns the descriptor that was received last, which the caller must close; -1 if there is none.
    func takeDescriptor() -> Int32 {
        defer { descriptor = -1 }
        return descriptor
    }
}
