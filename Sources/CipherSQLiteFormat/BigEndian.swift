/// Numbers as SQLite's file format stores them: big-endian.
///
/// The caller must have checked that the bytes exist. Only a varint is checked here, because its own bytes determine
/// its length.
extension UnsafeRawBufferPointer {
    @inlinable @inline(__always) package func byte(_ offset: Int) -> UInt8 {
        load(fromByteOffset: offset, as: UInt8.self)
    }

    @inlinable @inline(__always) package func big16(_ offset: Int) -> Int {
        Int(UInt16(bigEndian: loadUnaligned(fromByteOffset: offset, as: UInt16.self)))
    }

    @inlinable package func big32(_ offset: Int) -> UInt32 {
        UInt32(bigEndian: loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }

    @inlinable package func big64(_ offset: Int) -> UInt64 {
        UInt64(bigEndian: loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    /// Reads the number of one to nine bytes at `offset` and moves `offset` past it; returns `nil` if the bytes end
    /// first.
    @inlinable @inline(__always) package func varint(_ offset: inout Int) -> UInt64? {
        guard offset < count else { return nil }
        let first = byte(offset)
        offset += 1
        guard first >= 0x80 else { return UInt64(first) }
        return longVarint(UInt64(first & 0x7f), &offset)
    }

    @inlinable func longVarint(_ start: UInt64, _ offset: inout Int) -> UInt64? {
        var value = start
        for _ in 0..<7 {
            guard offset < count else { return nil }
            let next = byte(offset)
            offset += 1
            value = value << 7 | UInt64(next & 0x7f)
            if next < 0x80 { return value }
        }
        // All eight bits of the ninth byte are part of the number.
        guard offset < count else { return nil }
        value = value << 8 | UInt64(byte(offset))
        offset += 1
        return value
    }

    /// Returns a part of the bytes, which must exist.
    @inlinable package func part(_ offset: Int, _ count: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: self[offset..<(offset + count)])
    }
}
