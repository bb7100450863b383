/// How many of the possible states of a disk are built.
enum Policy {
    /// All names are kept or all are lost.
    ///
    /// The unsynced writes to each file are lost, zeroed or cut short.
    case quick
    /// The names are kept up to each point, or one of them is lost or kept.
    ///
    /// The writes to a file are kept up to each point, the next one is torn, or only one of them is lost or kept.
    case exhaustive
}

/// A folder on a disk that reliably keeps only what was synced.
///
/// A file's bytes are durable after a sync of the file; its name is durable only after a sync of the folder.
struct Disk {
    private enum NameChange {
        case set(String, file: Int)
        case move(String, to: String)
        case exchange(String, String)
        case remove(String)
    }

    private var files: [Int: DiskFile] = [:]
    private var names: [String: Int] = [:]
    private var durableNames: [String: Int] = [:]
    private var pending: [(change: NameChange, ended: Int)] = []

    /// A disk with durable files, numbered in their order.
    init(_ initial: [(name: String, image: FileImage)]) {
        for (number, (name, image)) in initial.enumerated() {
            files[number] = DiskFile(durable: image)
            names[name] = number
        }
        durableNames = names
    }

    mutating func apply(_ operation: Operation) {
        switch operation.change {
        case .create(let name, let file, let mode):
            files[file] = DiskFile(durable: FileImage(bytes: [], mode: mode))
            change(.set(name, file: file), operation)
        case .createNameless(let file, let mode): files[file] = DiskFile(durable: FileImage(bytes: [], mode: mode))
        case .name(let file, let name): change(.set(name, file: file), operation)
        case .write(let file, let offset, let bytes): change(file, .write(at: offset, bytes), operation)
        case .truncate(let file, let size): change(file, .truncate(size), operation)
        case .setMode(let file, let mode): change(file, .setMode(mode), operation)
        case .syncFile(let file): files[file]?.sync(began: operation.began)
        case .syncFolder:
            for entry in pending where entry.ended < operation.began { Self.apply(entry.change, &durableNames) }
            pending.removeAll { $0.ended < operation.began }
        case .rename(let old, let new): change(.move(old, to: new), operation)
        case .exchange(let one, let other): change(.exchange(one, other), operation)
        case .link(let old, let new):
            if let file = names[old] { change(.set(new, file: file), operation) }
        case .unlink(let name): change(.remove(name), operation)
        case .acknowledge: break
        }
    }

    private mutating func change(_ change: NameChange, _ operation: Operation) {
        Self.apply(change, &names)
        pending.append((change, operation.ended))
    }

    private mutating func change(_ file: Int, _ change: FileImage.Change, _ operation: Operation) {
        files[file]?.pending.append((change, operation.ended))
    }

    private static func apply(_ change: NameChange, _ names: inout [String: Int]) {
        switch change {
        case .set(let name, let file): names[name] = file
        case .move(let old, let new):
            // The change that gave the file its old name may have been lost.
            if let file = names.removeValue(forKey: old) { names[new] = file }
        case .exchange(let one, let other):
            // Both files must exist: if the change that made one of them was lost, so was this later change.
            guard let first = names[one], let second = names[other] else { return }
            (names[one], names[other]) = (second, first)
        case .remove(let name): names[name] = nil
        }
    }

    /// The states that the disk may contain, with a description of each.
    func states(_ policy: Policy) -> [(description: String, state: FolderState)] {
        nameVariants(policy).flatMap { label, names in
            fileVariants(names, policy).map { ("names \(label), \($0.0)", $0.1) }
        }
    }

    private func nameVariants(_ policy: Policy) -> [(String, [String: Int])] {
        func names(_ kept: some Sequence<Int>) -> [String: Int] {
            var names = durableNames
            for index in kept { Self.apply(pending[index].change, &names) }
            return names
        }
        let all = pending.indices
        guard !all.isEmpty else { return [("durable", durableNames)] }
        var variants = [("lost", names([])), ("kept", names(all))]
        guard policy == .exhaustive else { return variants }
        for index in all {
            variants.append(("kept up to \(index)", names(all.prefix(index + 1))))
            variants.append(("kept but \(index)", names(all.filter { $0 != index })))
            variants.append(("lost but \(index)", names([index])))
        }
        return variants
    }

    /// Combines each form of each file with the other files all lost and all kept.
    private func fileVariants(_ names: [String: Int], _ policy: Policy) -> [(String, FolderState)] {
        let lost = FolderState(files: names.compactMapValues { files[$0]?.durable }, numbers: names)
        let kept = FolderState(files: names.compactMapValues { files[$0]?.kept }, numbers: names)
        var states = [("all unsynced lost", lost)]
        if policy == .exhaustive { states.append(("all unsynced kept", kept)) }
        for (name, number) in names.sorted(by: { $0.key < $1.key }) {
            // Whoever opens the database first creates the index of a log again.
            guard let file = files[number], !file.pending.isEmpty, !name.hasSuffix("-shm") else { continue }
            for (label, image) in file.variants(policy) {
                for (others, base) in [("lost", lost), ("kept", kept)] where policy == .exhaustive || others == "lost" {
                    var state = base
                    state.files[name] = image
                    states.append(("\(name): \(label), others \(others)", state))
                }
            }
        }
        return states
    }
}
