internal import CipherSQLite
import Testing

/// The known faults of SQLite that a file can reach.
struct EngineFaultTests {
    @Test(
        "A version has the faults that were found in it and not yet fixed",
        arguments: [
            (3_015_002, "CVE-2019-8457", true), (3_015_002, "CVE-2025-29087", false),
            (3_046_001, "CVE-2025-29087", true), (3_046_001, "CVE-2019-8457", false),
            (3_049_001, "CVE-2025-29087", false), (3_050_001, "CVE-2025-6965", true),
            (3_051_003, "CVE-2025-6965", false),
        ])
    func versions(version: Int, id: String, isAffected: Bool) {
        #expect(EngineFault.all(in: version).contains { $0.id == id } == isAffected)
    }

    @Test("The documents name the kinds of objects by which a file can reach the newest engine's unfenced faults")
    func unfenced() {
        let unfenced = EngineFault.all(in: 3_046_001).filter { $0.fence == nil }
        #expect(Set(unfenced.map(\.id)) == ["CVE-2026-11824", "CVE-2025-6965", "CVE-2025-7709"])
        #expect(unfenced.allSatisfy { $0.cause.hasPrefix("an FTS5 table ") || $0.cause.hasPrefix("a view ") })
    }

    @Test("Each fault is either fenced or has advice", arguments: [3_015_002, 3_030_000, 3_046_001])
    func fences(version: Int) {
        for fault in EngineFault.all(in: version) {
            #expect((fault.fence == nil) != (fault.advice == nil), "\(fault.id)")
        }
    }
}
