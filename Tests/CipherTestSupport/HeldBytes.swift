internal import CipherSQLiteFormat
import Foundation

/// Bytes in their own memory, for the page reader.
package final class HeldBytes: ByteSource, Sendable {
    package let bytes: [UInt8]

    package init(_ bytes: [UInt8]) { self.bytes = bytes }

    package convenience init(contentsOf path: String) throws {
        self.init([UInt8](try Data(contentsOf: URL(filePath: path))))
    }

    package var size: Int64 { Int64(bytes.count) }

    package func lend(
        at offset: Int64, count: Int, _ scratch: UnsafeMutableRawBufferPointer
    ) -> UnsafeRawBufferPointer? {
        guard offset >= 0, offset <= size - Int64(count) else { return nil }
        // Lends a copy, so that a use after the loan reads changed bytes.
        bytes.withUnsafeBytes {
            scratch.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[Int(offset)...].prefix(count)))
        }
        return UnsafeRawBufferPointer(rebasing: scratch[..<count])
    }
}
