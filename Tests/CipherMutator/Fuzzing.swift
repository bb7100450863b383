import CipherTestSupport
import Foundation

/// A sequence of trials, each determined by its number.
struct Fuzzing {
    private let seeds: TemporaryFolder
    private let keep: String?
    private var counts: [String: Int] = [:]
    private(set) var faults = 0

    /// - Parameter keep: A folder for the inputs that failed.
    init(keep: String?) throws {
        self.keep = keep
        seeds = try TemporaryFolder(inMemory: true)
        for name in SeedDatabases.names { try SeedDatabases.write(name, to: seeds.path("\(name).db")) }
    }

    /// Runs the trials from a number on, until the time is up or the given number of trials is done.
    ///
    /// - Parameter step: The distance to the number of the next trial, if several processes share the numbers.
    mutating func run(from first: UInt64, step: UInt64, count: Int?, seconds: Int) throws {
        let end = Date().addingTimeInterval(Double(seconds))
        var number = first
        var done = 0
        while Date() < end, done < count ?? .max {
            try trial(number)
            number += step
            done += 1
        }
        tellCounts()
    }

    private mutating func trial(_ number: UInt64) throws {
        var random = Random(seed: number)
        if random.oneIn(4) {
            let kind = random.pick(TextTrial.Kind.allCases)
            let (trial, folder) = try TextTrial.run(kind, &random)
            try note("\(kind.rawValue)\t\(trial.outcome)", trial.fault, number, folder)
        } else {
            let name = random.pick(SeedDatabases.names)
            // Uses separate random numbers, so that the rest of a trial stays the same.
            var naming = Random(seed: ~number)
            let folder = try damage(name, &random, &naming)
            let input = try copy(folder)
            let trial = try FileTrial.run(folder)
            try note("database \(name)\t\(trial.outcome)", trial.fault, number, input)
        }
    }

    /// Reads damaged databases with the page reader, in this process.
    ///
    /// - Parameter count: How many numbers are tried, from the first one on.
    mutating func read(from first: UInt64, count: UInt64) throws {
        for number in first..<(first &+ count) {
            var (random, naming) = (Random(seed: number), Random(seed: ~number))
            let name = random.pick(SeedDatabases.names)
            let folder = try damage(name, &random, &naming)
            func bytes(_ ending: String) throws -> [UInt8]? {
                let path = folder.path("app.db" + ending)
                guard FileManager.default.fileExists(atPath: path) else { return nil }
                return [UInt8](try Data(contentsOf: URL(filePath: path)))
            }
            let reading = try PageReading(database: bytes("") ?? [], log: bytes("-wal"), journal: bytes("-journal"))
            let outcome = reading.damage == 0 ? "whole" : "damaged"
            try note("read \(name)\t\(outcome)", reading.fault, number, folder)
        }
    }

    /// Reads damaged databases in separate processes until the time is up, and finds the trial that ends a process.
    mutating func readInProcesses(from first: UInt64, step: UInt64, seconds: Int) throws {
        let end = Date().addingTimeInterval(Double(seconds))
        let part: UInt64 = 256
        var number = first * part
        while Date() < end {
            try readInProcess(from: number, count: part)
            number += step * part
        }
        tellCounts()
    }

    private mutating func readInProcess(from first: UInt64, count: UInt64) throws {
        let run = try Child.run(Child.mutator, ["reading", "\(first)", "\(count)"])
        if run.status == 0 {
            for line in run.output.split(separator: "\n") where line.hasPrefix("count\t") {
                let fields = line.split(separator: "\t")
                counts["\(fields[1])\t\(fields[2])", default: 0] += Int(fields[3]) ?? 0
            }
        } else if count > 1 {
            try readInProcess(from: first, count: count / 2)
            try readInProcess(from: first + count / 2, count: count - count / 2)
        } else {
            faults += 1
            tell("fault\tseed \(first)\tread\nstatus \(run.status): \(run.output.suffix(400))")
        }
    }

    func tellCounts() {
        for (outcome, count) in counts.sorted(by: { $0.key < $1.key }) { tell("count\t\(outcome)\t\(count)") }
    }

    private func damage(
        _ name: String, _ random: inout Random, _ naming: inout Random
    ) throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        for ending in ["", "-wal", "-journal"] {
            let source = seeds.path("\(name).db\(ending)")
            guard FileManager.default.fileExists(atPath: source) else { continue }
            try FileManager.default.copyItem(atPath: source, toPath: folder.path("app.db" + ending))
        }
        let sidecar = try folder.names.first { $0 != "app.db" }
        let target = sidecar.flatMap { random.oneIn(3) ? nil : $0 } ?? "app.db"
        let url = folder.url.appending(path: target)
        var bytes = [UInt8](try Data(contentsOf: url))
        // Not beside a log or a journal, which would contain pages with the old names.
        if sidecar == nil, naming.oneIn(3) {
            var mutation = DatabaseMutation(bytes: bytes)
            mutation.rename(&naming)
            bytes = mutation.bytes
            if naming.oneIn(2) {
                try Data(bytes).write(to: url)
                return folder
            }
        }
        for _ in 0...random.pick([0, 0, 0, 1, 3]) {
            if target.hasSuffix("-wal") {
                var mutation = LogMutation(bytes: bytes)
                mutation.mutate(&random)
                bytes = mutation.bytes
            } else if target.hasSuffix("-journal") {
                var mutation = JournalMutation(bytes: bytes)
                mutation.mutate(&random)
                bytes = mutation.bytes
            } else {
                var mutation = DatabaseMutation(bytes: bytes)
                mutation.mutate(&random)
                bytes = mutation.bytes
            }
        }
        try Data(bytes).write(to: url)
        return folder
    }

    private func copy(_ folder: TemporaryFolder) throws -> TemporaryFolder {
        let copy = try TemporaryFolder()
        for name in try folder.names {
            try FileManager.default.copyItem(atPath: folder.path(name), toPath: copy.path(name))
        }
        return copy
    }

    private mutating func note(_ outcome: String, _ fault: String?, _ number: UInt64, _ input: TemporaryFolder) throws {
        counts[outcome, default: 0] += 1
        guard let fault else { return }
        faults += 1
        tell("fault\tseed \(number)\t\(outcome)\n\(fault)")
        guard let keep else { return }
        let place = URL(filePath: keep).appending(path: "\(number)")
        try FileManager.default.createDirectory(atPath: keep, withIntermediateDirectories: true)
        if FileManager.default.fileExists(atPath: place.path(percentEncoded: false)) { return }
        try FileManager.default.copyItem(at: input.url, to: place)
    }
}
