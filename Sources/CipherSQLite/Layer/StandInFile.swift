/// A database file for reading that is some bytes in memory until another file takes its place.
// Not `Sendable`: the connection's thread has it.
package final class StandInFile: LayeredFile {
    private let bytes: [UInt8]
    private var file: DescriptorFile?

    package init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Has a file in their place from now on; no transaction may be open.
    package func give(placeTo file: DescriptorFile) { self.file = file }

    package func getSize(_ size: inout Int64) -> Int32 {
        if let file { return file.getSize(&size) }
        size = Int64(bytes.count)
        return 0
    }

    package func read(into buffer: UnsafeMutableRawPointer, count: Int, offset: Int64) -> Int32 {
        if let file { return file.read(into: buffer, count: count, offset: offset) }
        let start = Int(clamping: offset)
        let available = max(0, min(count, bytes.count - start))
        bytes.withUnsafeBytes { bytes in
            guard available > 0, let first = bytes.baseAddress else { return }
            buffer.copyMemory(from: first + start, byteCount: available)
        }
        guard available < count else { return 0 }
        (buffer + available).initializeMemory(as: UInt8.self, repeating: 0, count: count - available)
        return DescriptorFile.shortRead
    }

    package func write(_ content: UnsafeRawPointer, count: Int, offset: Int64) -> Int32 { DescriptorFile.writeFailure }
    package func truncate(to size: Int64) -> Int32 { DescriptorFile.writeFailure }
    package func sync() -> Int32 { 0 }
    package func close() -> Int32 { 0 }
}
