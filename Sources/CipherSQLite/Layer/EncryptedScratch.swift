internal import CCipherEngine
internal import CipherPrimitives
internal import CipherSystemFiles

/// A temporary file of SQLite, such as a sorter's, encrypted with a key that exists only in this object.
///
/// SQLCipher encrypts databases and their journals, but not the rows that SQLite sorts or holds in temporary tables.
/// Each block is encrypted separately, as SQLCipher encrypts a page: AES-256 in CBC mode, with a random initialization
/// vector that is stored before the block. Nothing authenticates a block, because the file has no name, so only this
/// process has access to it.
package final class EncryptedScratch: LayeredFile {
    /// The smallest page size that is common.
    ///
    /// SQLite mostly reads and writes whole pages, which are whole blocks then.
    private static let blockSize = 1024
    private static let vectorSize = 16
    private static let storedSize = vectorSize + blockSize

    private let file: DescriptorFile
    private let encryption: AESCBC
    private let decryption: AESCBC
    /// The number of bytes that SQLite has written.
    private var size: Int64 = 0
    /// The content of a block that is read or written in part.
    private let plain = UnsafeMutableRawBufferPointer.allocate(byteCount: blockSize, alignment: 16)
    /// The blocks as they are stored.
    private var stored: [UInt8] = []
    /// Held during each call, because SQLite sorts on several threads if an engine is built for it.
    private let lock = Lock()

    /// Creates an empty file; `nil` if the generator of random numbers or the cipher fails.
    package init?(_ file: DescriptorFile) {
        guard let key = try? SecretBytes.random(count: 32),
            let encryption = key.withUnsafeBytes({ AESCBC(.encrypt, key: $0) }),
            let decryption = key.withUnsafeBytes({ AESCBC(.decrypt, key: $0) })
        else { return nil }
        self.file = file
        self.encryption = encryption
        self.decryption = decryption
    }

    deinit {
        Cryptography.erase(plain)
        plain.deallocate()
    }

    package func getSize(_ size: inout Int64) -> Int32 {
        size = lock.withLock { self.size }
        return SQLITE_OK
    }

    package func read(into buffer: UnsafeMutableRawPointer, count: Int, offset: Int64) -> Int32 {
        lock.withLock {
            let available = Int(max(0, min(Int64(count), size - offset)))
            (buffer + available).initializeMemory(as: UInt8.self, repeating: 0, count: count - available)
            let blocks = blocks(offset, available)
            guard load(blocks) == SQLITE_OK else { return DescriptorFile.readFailure }
            for part in parts(offset, available) {
                let target = part.isWhole ? buffer + part.position : plain.baseAddress
                guard let target, open(part.block, of: blocks, into: target) else { return DescriptorFile.readFailure }
                if !part.isWhole {
                    (buffer + part.position).copyMemory(from: target + part.start, byteCount: part.count)
                }
            }
            return available < count ? DescriptorFile.shortRead : SQLITE_OK
        }
    }

    package func write(_ content: UnsafeRawPointer, count: Int, offset: Int64) -> Int32 {
        lock.withLock {
            let blocks = blocks(offset, count)
            let parts = parts(offset, count)
            // The rest of a block that is written in part stays as it is.
            if parts.contains(where: { !$0.isWhole }) {
                guard load(blocks) == SQLITE_OK else { return DescriptorFile.readFailure }
            } else {
                makeRoom(for: blocks)
            }
            for part in parts {
                var source = content + part.position
                if !part.isWhole {
                    guard let block = plain.baseAddress, open(part.block, of: blocks, into: block) else {
                        return DescriptorFile.readFailure
                    }
                    (block + part.start).copyMemory(from: source, byteCount: part.count)
                    source = UnsafeRawPointer(block)
                }
                guard seal(part.block, of: blocks, from: source) else { return DescriptorFile.writeFailure }
            }
            let result = stored.withUnsafeBytes { bytes in
                bytes.baseAddress.map {
                    file.write($0, count: bytes.count, offset: blocks.lowerBound * Int64(Self.storedSize))
                }
            }
            if result ?? SQLITE_OK == SQLITE_OK { size = max(size, offset + Int64(count)) }
            return result ?? SQLITE_OK
        }
    }

    package func truncate(to newSize: Int64) -> Int32 {
        lock.withLock {
            guard newSize < size else { return SQLITE_OK }
            let blocks = (newSize + Int64(Self.blockSize) - 1) / Int64(Self.blockSize)
            // The rest of the last block stays: SQLite reads only bytes that it has written.
            let result = file.truncate(to: blocks * Int64(Self.storedSize))
            if result == SQLITE_OK { size = newSize }
            return result
        }
    }

    /// Does nothing, because the file does not survive a crash.
    package func sync() -> Int32 { SQLITE_OK }
    package func close() -> Int32 { SQLITE_OK }

    /// The bytes of one block in a range of bytes.
    private struct Part {
        let block: Int64
        /// The position in the range.
        let position: Int
        /// The position in the block.
        let start: Int
        let count: Int
        var isWhole: Bool { count == blockSize }
    }

    /// Returns the blocks that contain a range of bytes.
    private func blocks(_ offset: Int64, _ count: Int) -> Range<Int64> {
        let size = Int64(Self.blockSize)
        return offset / size..<(offset + Int64(count) + size - 1) / size
    }

    private func parts(_ offset: Int64, _ count: Int) -> [Part] {
        guard count > 0 else { return [] }
        let size = Int64(Self.blockSize)
        return blocks(offset, count).map { block in
            let first = max(offset, block * size)
            let end = min(offset + Int64(count), (block + 1) * size)
            return Part(
                block: block, position: Int(first - offset), start: Int(first - block * size), count: Int(end - first))
        }
    }

    private func makeRoom(for blocks: Range<Int64>) {
        let count = blocks.count * Self.storedSize
        if stored.count != count { stored = Array(repeating: 0, count: count) }
    }

    /// Reads blocks as they are stored, with zeros beyond the end of the file.
    private func load(_ blocks: Range<Int64>) -> Int32 {
        makeRoom(for: blocks)
        let result = stored.withUnsafeMutableBytes { bytes in
            bytes.baseAddress.map {
                file.read(into: $0, count: bytes.count, offset: blocks.lowerBound * Int64(Self.storedSize))
            }
        }
        return result == DescriptorFile.shortRead ? SQLITE_OK : result ?? SQLITE_OK
    }

    /// Decrypts one of the blocks that were loaded; `false` if the cipher fails.
    private func open(_ block: Int64, of blocks: Range<Int64>, into content: UnsafeMutableRawPointer) -> Bool {
        let start = Int(block - blocks.lowerBound) * Self.storedSize
        return stored.withUnsafeBufferPointer { bytes in
            guard let vector = bytes.baseAddress.map({ $0 + start }) else { return false }
            // A block that was never written is a hole in the file, and no initialization vector is zero.
            guard bytes[start..<start + Self.vectorSize].contains(where: { $0 != 0 }) else {
                content.initializeMemory(as: UInt8.self, repeating: 0, count: Self.blockSize)
                return true
            }
            return decryption.apply(
                vector + Self.vectorSize, count: Self.blockSize, vector: vector,
                into: content.assumingMemoryBound(to: UInt8.self))
        }
    }

    /// Encrypts one of the blocks; `false` if the cipher or the generator of random numbers fails.
    private func seal(_ block: Int64, of blocks: Range<Int64>, from content: UnsafeRawPointer) -> Bool {
        let start = Int(block - blocks.lowerBound) * Self.storedSize
        return stored.withUnsafeMutableBufferPointer { bytes in
            guard let vector = bytes.baseAddress.map({ $0 + start }),
                Cryptography.randomize(UnsafeMutableRawBufferPointer(start: vector, count: Self.vectorSize))
            else { return false }
            return encryption.apply(
                content.assumingMemoryBound(to: UInt8.self), count: Self.blockSize, vector: vector,
                into: vector + Self.vectorSize)
        }
    }
}
