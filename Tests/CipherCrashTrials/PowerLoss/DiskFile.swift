/// A file on a disk that loses power: what is durable, and what may have been written since.
struct DiskFile {
    var durable: FileImage
    var pending: [(change: FileImage.Change, ended: Int)] = []

    /// Makes durable every change that had ended when the sync began.
    mutating func sync(began: Int) {
        for entry in pending where entry.ended < began { durable.apply(entry.change) }
        pending.removeAll { $0.ended < began }
    }

    var changes: [FileImage.Change] { pending.map(\.change) }

    func image(_ changes: some Sequence<FileImage.Change>) -> FileImage {
        var image = durable
        for change in changes { image.apply(change) }
        return image
    }

    /// The file as the program sees it.
    var kept: FileImage { image(changes) }

    /// The forms that the file may have on the disk.
    func variants(_ policy: Policy) -> [(name: String, image: FileImage)] {
        guard !pending.isEmpty else { return [("synced", durable)] }
        var variants = [("unsynced lost", durable)]
        variants.append(("unsynced zero", image(changes.map(blank))))
        variants.append(("unsynced short", image(changes.map(Self.half))))
        guard policy == .exhaustive else { return variants }
        variants.append(("unsynced kept", kept))
        for count in changes.indices {
            let before = changes[..<count]
            variants.append(("first \(count) kept", image(before)))
            for torn in Self.torn(changes[count]) {
                variants.append(("first \(count) kept, next torn", image(before + [torn])))
            }
            variants.append(("only \(count) lost", image(before + changes[(count + 1)...])))
            variants.append(("only \(count) kept", image([changes[count]])))
        }
        return variants
    }

    /// The file has its new size, but not the new bytes.
    ///
    /// Where it was overwritten, it still has the old bytes.
    private func blank(_ change: FileImage.Change) -> FileImage.Change {
        guard case .write(let offset, let bytes) = change else { return change }
        let old = durable.bytes.dropFirst(offset).prefix(bytes.count)
        return .write(at: offset, old + [UInt8](repeating: 0, count: bytes.count - old.count))
    }

    private static func half(_ change: FileImage.Change) -> FileImage.Change {
        guard case .write(let offset, let bytes) = change else { return change }
        return .write(at: offset, Array(bytes.prefix(bytes.count / 2)))
    }

    /// A write of which only some sectors were written: the first one, all but the last, or the second half.
    private static func torn(_ change: FileImage.Change) -> [FileImage.Change] {
        guard case .write(let offset, let bytes) = change, bytes.count > 1 else { return [] }
        guard bytes.count > 512 else { return [half(change)] }
        let middle = bytes.count / 2 / 512 * 512
        return [
            .write(at: offset, Array(bytes.prefix(512))), .write(at: offset, Array(bytes.dropLast(512))),
            .write(at: offset + middle, Array(bytes[middle...])),
        ]
    }
}
