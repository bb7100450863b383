import Foundation

/// A file's bytes and mode.
struct FileImage: Hashable, Sendable {
    var bytes: [UInt8]
    var mode: Int

    // Compares all bytes at once. Swift would compare them one by one, and tens of thousands of states are compared.
    static func == (one: FileImage, other: FileImage) -> Bool {
        one.mode == other.mode && one.bytes.count == other.bytes.count
            && memcmp(one.bytes, other.bytes, one.bytes.count) == 0
    }

    func hash(into hasher: inout Hasher) {
        bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
    }

    /// A change that no sync has covered yet.
    enum Change {
        case write(at: Int, [UInt8])
        case truncate(Int)
        case setMode(Int)
    }

    mutating func apply(_ change: Change) {
        switch change {
        case .write(let offset, let content):
            grow(to: offset + content.count)
            bytes.replaceSubrange(offset..<offset + content.count, with: content)
        case .truncate(let size):
            grow(to: size)
            bytes.removeLast(bytes.count - size)
        case .setMode(let mode): self.mode = mode
        }
    }

    private mutating func grow(to size: Int) {
        // Appends an array, because its bytes are appended at once.
        if bytes.count < size { bytes += [UInt8](repeating: 0, count: size - bytes.count) }
    }
}
