import Foundation

/// One run of a program, recorded as its changes to the files of one folder.
///
/// If a call could change a file there and is not understood, an error is thrown.
struct Recording {
    private struct Descriptor {
        enum Target {
            case folder
            case file(Int, name: String)
        }
        let target: Target
        let appends: Bool
        var position = 0
    }

    private let folder: String
    private var descriptors: [Int: Descriptor] = [:]
    private var files: [String: Int] = [:]
    private var sizes: [Int: Int] = [:]
    private var fileCount = 0
    private(set) var operations: [Operation] = []

    /// Interprets the calls.
    ///
    /// - Parameters:
    ///   - folder: Its path as the program was given it, without symbolic links.
    ///   - initial: The sizes of the files that were in the folder, in the order of their numbers.
    init(_ calls: [SystemCall], folder: String, initial: [(name: String, size: Int)]) throws {
        self.folder = folder
        for (name, size) in initial {
            files[name] = fileCount
            sizes[fileCount] = size
            fileCount += 1
        }
        for call in calls { try take(call) }
    }

    private mutating func take(_ call: SystemCall) throws {
        switch call.name {
        case "open": try open(call, path: call.text(0), flags: call.arguments[1], mode: 2)
        case "openat":
            if call.arguments[2].contains("O_TMPFILE") {
                try openNameless(call, path(call, 0), mode: 3)
            } else {
                try open(call, path: path(call, 0), flags: call.arguments[2], mode: 3)
            }
        case "close": descriptors[try call.number(0)] = nil
        case "lseek": descriptors[try call.number(0)]?.position = call.result
        case "write", "pwrite64": try write(call)
        case "ftruncate": try truncate(call)
        case "fsync", "fdatasync": try sync(call)
        // The call only begins to write, which the system may do at any time. It guarantees nothing.
        case "sync_file_range": break
        case "rename": try rename(call, call.text(0), call.text(1))
        case "renameat": try rename(call, path(call, 0), path(call, 2))
        case "renameat2":
            if call.arguments[4].contains("EXCHANGE") {
                try exchange(call, path(call, 0), path(call, 2))
            } else {
                try rename(call, path(call, 0), path(call, 2))
            }
        case "link": try link(call, call.text(0), call.text(1))
        case "linkat": try link(call, path(call, 0), path(call, 2))
        case "unlink": try unlink(call, call.text(0))
        case "unlinkat": try unlink(call, path(call, 0))
        case "chmod": try setMode(call, call.text(0), call.octal(1))
        case "fchmodat", "fchmodat2": try setMode(call, path(call, 0), call.octal(2))
        case "fchmod":
            guard case .file(let file, _) = descriptors[try call.number(0)]?.target else { return }
            add(.setMode(file: file, try call.octal(1)), call)
        case "mmap":
            // Whoever opens the database first creates the index of a log again. Any other mapping would hide writes.
            guard call.arguments[3].contains("MAP_SHARED"), call.arguments[2].contains("PROT_WRITE"),
                case .file(_, let name) = descriptors[try call.number(4)]?.target
            else { return }
            guard name.hasSuffix("-shm") else { throw unknown(call) }
        default: try refuse(call)
        }
    }

    /// A call that is not understood must not concern the folder.
    private func refuse(_ call: SystemCall) throws {
        for index in call.arguments.indices {
            if let number = Int(call.arguments[index]), descriptors[number] != nil { throw unknown(call) }
            if call.arguments[index].hasPrefix("\""), try name(call.text(index)) != nil { throw unknown(call) }
        }
        if ["sync", "syncfs"].contains(call.name) { throw unknown(call) }
    }

    private func unknown(_ call: SystemCall) -> TraceError {
        TraceError(detail: "the model does not support \(call.name)")
    }

    private mutating func add(_ change: Operation.Change, _ call: SystemCall) {
        operations.append(Operation(change: change, began: call.began, ended: call.ended))
    }

    /// Returns the number of the file that has a name at the end.
    func file(named name: String) -> Int? { files[name] }

    /// Returns the name inside the folder.
    private func name(_ path: String) -> String? {
        path.hasPrefix(folder + "/") ? String(path.dropFirst(folder.count + 1)) : nil
    }

    /// Returns a path that may be relative to a descriptor, which is the preceding argument.
    private func path(_ call: SystemCall, _ index: Int) throws -> String {
        let text = try call.text(index + 1)
        guard !text.hasPrefix("/"), let number = Int(call.arguments[index]),
            case .folder = descriptors[number]?.target
        else { return text }
        return "\(folder)/\(text)"
    }

    /// - Parameter mode: The index of the argument with the mode of a file that the call creates.
    private mutating func open(_ call: SystemCall, path text: String, flags: Substring, mode: Int) throws {
        if text == folder {
            descriptors[call.result] = Descriptor(target: .folder, appends: false)
            return
        }
        guard let name = name(text) else { return }
        let file: Int
        if let present = files[name] {
            file = present
            if flags.contains("O_TRUNC") {
                sizes[file] = 0
                add(.truncate(file: file, to: 0), call)
            }
        } else {
            file = fileCount
            fileCount += 1
            files[name] = file
            sizes[file] = 0
            add(.create(name, file: file, mode: try call.octal(mode)), call)
        }
        descriptors[call.result] = Descriptor(
            target: .file(file, name: name), appends: flags.contains("O_APPEND"))
    }

    /// A file that may get a name later.
    ///
    /// Without a name, it is gone after a power loss.
    private mutating func openNameless(_ call: SystemCall, _ place: String, mode: Int) throws {
        guard place == folder || place.hasPrefix(folder + "/") else { return }
        sizes[fileCount] = 0
        add(.createNameless(file: fileCount, mode: try call.octal(mode)), call)
        descriptors[call.result] = Descriptor(target: .file(fileCount, name: ""), appends: false)
        fileCount += 1
    }

    private mutating func write(_ call: SystemCall) throws {
        let number = try call.number(0)
        if number == 1, descriptors[1] == nil, let row = Int(try call.text(1).dropLast()) {
            add(.acknowledge(row), call)
        }
        guard let descriptor = descriptors[number], case .file(let file, _) = descriptor.target else { return }
        let bytes = try call.bytes(1).prefix(call.result)
        let size = sizes[file] ?? 0
        let offset = call.name == "pwrite64" ? try call.number(3) : descriptor.appends ? size : descriptor.position
        if call.name == "write" { descriptors[number]?.position = offset + call.result }
        sizes[file] = max(size, offset + bytes.count)
        add(.write(file: file, at: offset, Array(bytes)), call)
    }

    private mutating func truncate(_ call: SystemCall) throws {
        guard case .file(let file, _) = descriptors[try call.number(0)]?.target else { return }
        sizes[file] = try call.number(1)
        add(.truncate(file: file, to: try call.number(1)), call)
    }

    private mutating func sync(_ call: SystemCall) throws {
        switch descriptors[try call.number(0)]?.target {
        case .folder: add(.syncFolder, call)
        case .file(let file, _): add(.syncFile(file), call)
        case nil: return
        }
    }

    private mutating func rename(_ call: SystemCall, _ old: String, _ new: String) throws {
        guard let old = name(old), let new = name(new) else { return }
        files[new] = files.removeValue(forKey: old)
        add(.rename(old, to: new), call)
    }

    private mutating func exchange(_ call: SystemCall, _ one: String, _ other: String) throws {
        guard let one = name(one), let other = name(other) else { return }
        (files[one], files[other]) = (files[other], files[one])
        add(.exchange(one, other), call)
    }

    private mutating func link(_ call: SystemCall, _ old: String, _ new: String) throws {
        let ofDescriptor = "/proc/self/fd/"
        if old.hasPrefix(ofDescriptor), let new = name(new), let number = Int(old.dropFirst(ofDescriptor.count)),
            case .file(let file, _) = descriptors[number]?.target
        {
            files[new] = file
            return add(.name(file: file, new), call)
        }
        guard let old = name(old), let new = name(new) else { return }
        files[new] = files[old]
        add(.link(old, to: new), call)
    }

    private mutating func unlink(_ call: SystemCall, _ path: String) throws {
        guard let name = name(path) else { return }
        files[name] = nil
        add(.unlink(name), call)
    }

    private mutating func setMode(_ call: SystemCall, _ path: String, _ mode: Int) throws {
        guard let name = name(path), let file = files[name] else { return }
        add(.setMode(file: file, mode), call)
    }
}
