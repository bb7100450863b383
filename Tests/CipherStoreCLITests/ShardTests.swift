import CipherTestSupport
import Foundation
import Testing

/// Fleets that are divided into shards, as a scheduler specifies them.
@Suite struct ShardTests {
    private let fixture: FleetFixture

    init() throws { fixture = try FleetFixture() }

    private func make(_ count: Int) throws {
        for number in 0..<count { try fixture.make("\(number % 3)/tenant-\(number).db") }
    }

    @Test("Each file belongs to one shard, and to the same one in every run")
    func cut() throws {
        try make(12)
        var shards: [[String: String]] = []
        for _ in 0..<2 {
            for index in 0..<3 {
                let run = try fixture.run("encrypt", "--shadow", "--shard", "\(index)/3")
                #expect(run.status == 0, "\(run.errors)")
                shards.append(try FleetLines(run).outcomes)
            }
        }
        #expect(shards[..<3].reduce(0) { $0 + $1.count } == 12)
        #expect(Set(shards[..<3].flatMap(\.keys)).count == 12)
        #expect(Array(shards[..<3]) == Array(shards[3...]))
        // Other programs can also compute the shard.
        let digest = try ToolRun.run("/bin/sh", ["-c", "printf 0/tenant-0.db | sha256sum"]).output.prefix(16)
        let number = try #require(UInt64(digest, radix: 16))
        #expect(shards[Int(number % 3)]["0/tenant-0.db"] == "shadow")
    }

    @Test("A file beside a database is reported by that database's shard")
    func beside() throws {
        for name in ["a.db", "b.db", "c.db", "d.db"] {
            try fixture.make(name)
            try fixture.make("\(name)-plaintext")
        }
        for index in 0..<3 {
            let lines = try FleetLines(try fixture.run("encrypt", "--shadow", "--shard", "\(index)/3"))
            let names = lines.outcomes.keys.filter { $0.hasSuffix(".db") }
            #expect(lines.outcomes.count == 2 * names.count)
            for name in names { #expect(lines.errorCodes["\(name)-plaintext"] == "besideDatabase") }
        }
    }

    static let environments: [(environment: [String: String], options: [String], shard: String)] = [
        (array(id: 7, 4, 9, count: 6), [], "shard 3/6, as set by SLURM_ARRAY_TASK_ID"),
        (array(id: 2, 2, 7, count: 2), ["--shards", "8"], "shard 2/8, as set by SLURM_ARRAY_TASK_ID and --shards"),
        (["JOB_COMPLETION_INDEX": "4"], ["--shards", "5"], "shard 4/5, as set by JOB_COMPLETION_INDEX and --shards"),
    ]

    private static func array(id: Int, _ least: Int, _ most: Int, count: Int) -> [String: String] {
        [
            "SLURM_ARRAY_TASK_ID": "\(id)", "SLURM_ARRAY_TASK_MIN": "\(least)", "SLURM_ARRAY_TASK_MAX": "\(most)",
            "SLURM_ARRAY_TASK_COUNT": "\(count)",
        ]
    }

    @Test(
        "The number of a Slurm task or a Kubernetes index selects the shard, and the report states it",
        arguments: environments
    )
    func scheduler(_ given: (environment: [String: String], options: [String], shard: String)) throws {
        try make(9)
        let report = fixture.tool.keys.path("report")
        let arguments = ["encrypt"] + fixture.common + given.options + ["--report", report]
        let run = try fixture.tool.run(arguments, environment: given.environment)
        #expect(run.status == 0, "\(run.errors)")
        #expect(run.errors.contains(given.shard), "\(run.errors)")
        let first = try #require(try String(contentsOfFile: report, encoding: .utf8).split(separator: "\n").first)
        let header = try #require(try JSONSerialization.jsonObject(with: Data(first.utf8)) as? [String: Any])
        let fleet = try #require(header["fleet"] as? [String: Any])
        let shard = try #require(fleet["shard"] as? Int)
        let shards = try #require(fleet["shards"] as? Int)
        #expect(given.shard == "shard \(shard)/\(shards), as set by \(fleet["shardFrom"] as? String ?? "")")
    }

    @Test("The option --shard takes precedence over a scheduler's variables")
    func optionFirst() throws {
        try make(3)
        let arguments = ["encrypt"] + fixture.common + ["--shard", "0/1"]
        let run = try fixture.tool.run(arguments, environment: ["JOB_COMPLETION_INDEX": "4"])
        #expect(run.status == 0, "\(run.errors)")
        #expect(try FleetLines(run).summary["databases"] == 3)
    }

    static let wrong: [(environment: [String: String], options: [String], says: String)] = [
        ([:], ["--shard", "8/8"], "there is no shard 8 of 8"),
        ([:], ["--shard", "-1/8"], "there is no shard -1 of 8"),
        ([:], ["--shard", "0/0"], "there is no shard 0 of 0"),
        ([:], ["--shard", "1"], "such as 0/8"),
        ([:], ["--shard", "1/2/3"], "such as 0/8"),
        ([:], ["--shards", "8"], "--shards requires SLURM_ARRAY_TASK_ID"),
        ([:], ["--shards", "8", "--shard", "0/8"], "cannot be used together"),
        (["JOB_COMPLETION_INDEX": "0"], [], "the number of shards is unknown"),
        (["JOB_COMPLETION_INDEX": "8"], ["--shards", "8"], "there is no shard 8 of 8"),
        (["SLURM_ARRAY_TASK_ID": "x"], [], "is not a number"),
        (["SLURM_ARRAY_TASK_ID": "3"], [], "at least one of"),
        (array(id: 5, 2, 5, count: 2), [], "have gaps"),
    ]

    @Test("An undetermined shard ends the run before it begins", arguments: wrong)
    func wrongShard(_ given: (environment: [String: String], options: [String], says: String)) throws {
        try make(1)
        let before = try FolderDigest(fixture.tool.folder.url)
        let run = try fixture.tool.run(["encrypt"] + fixture.common + given.options, environment: given.environment)
        #expect(run.status == 64, "\(run.errors)")
        #expect(run.errors.contains(given.says), "\(run.errors)")
        #expect(try FolderDigest(fixture.tool.folder.url) == before)
    }
}
