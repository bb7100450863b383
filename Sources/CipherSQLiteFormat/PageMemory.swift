/// The memory of a cursor, which is allocated when needed and then reused.
@usableFromInline struct PageMemory: ~Copyable {
    private let pageSize: Int
    private var pages: [UnsafeMutableRawBufferPointer] = []
    private var chain: UnsafeMutableRawBufferPointer?
    private var whole = UnsafeMutableRawBufferPointer(start: nil, count: 0)

    init(_ pageSize: Int) { self.pageSize = pageSize }

    deinit {
        for page in pages { page.deallocate() }
        chain?.deallocate()
        whole.deallocate()
    }

    /// Returns the memory for a page at a level of the b-tree.
    @usableFromInline mutating func page(_ level: Int) -> UnsafeMutableRawBufferPointer {
        while pages.count <= level { pages.append(.allocate(byteCount: pageSize, alignment: 16)) }
        return pages[level]
    }

    /// Returns the memory for one overflow page.
    @usableFromInline mutating func overflow() -> UnsafeMutableRawBufferPointer {
        if let chain { return chain }
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: pageSize, alignment: 16)
        chain = memory
        return memory
    }

    /// Returns the memory for a payload.
    mutating func payload(_ length: Int) -> UnsafeMutableRawBufferPointer {
        if whole.count < length {
            whole.deallocate()
            whole = .allocate(byteCount: max(length, 2 * whole.count), alignment: 16)
        }
        return UnsafeMutableRawBufferPointer(rebasing: whole[..<length])
    }
}
