import CipherPlatform
import CipherTestSupport
import Foundation
import Testing

#if os(Linux)
    /// A signal ends an upgrade, and leaves the file unchanged.
    ///
    /// `/proc` shows whether the tool is already waiting for signals.
    @Suite struct CancellationTests {
        @Test(
            "A signal ends an upgrade that waits for another one, and nothing is changed",
            arguments: [SIGINT, SIGTERM, SIGHUP])
        func waitingForAnotherUpgrade(_ signal: Int32) throws {
            let fixture = try ToolFixture()
            try fixture.makeWithLiveLog()
            let holder = try fixture.holdingLock("folder", fixture.folder.path(""))
            let before = try fixture.snapshot()
            let tool = try ToolProcess(
                Programs.tool, ["encrypt", fixture.database, "--key-file", fixture.key, "--json"])
            try waitUntilWatched(signal, by: tool)
            #expect(kill(tool.identifier, signal) == 0)
            let run = try fixture.checked(tool.finish())
            #expect(run.status == 128 + signal, "\(run.errors)")
            #expect(try run.failureCode() == "cancelled")
            #expect(try fixture.snapshot() == before)
            _ = try holder.finish()
        }

        @Test(
            "A command that crashes prints no backtrace and may leave no core file, even if the environment asks for both",
            // Threads of Dispatch, which start the command, have blocked the others.
            arguments: [SIGSEGV, SIGBUS, SIGILL, SIGFPE])
        func crash(_ signal: Int32) throws {
            let fixture = try ToolFixture()
            try fixture.makeWithLiveLog()
            let holder = try fixture.holdingLock("folder", fixture.folder.path(""))
            let before = try fixture.snapshot()
            let tool = try ToolProcess(
                "/bin/sh",
                ["-c", "ulimit -c unlimited; exec \"$@\"", "sh", Programs.tool, "encrypt", fixture.database]
                    + ["--key-file", fixture.key],
                environment: ["SWIFT_BACKTRACE": "enable=yes"])
            func limits() throws -> String {
                try String(contentsOfFile: "/proc/\(tool.identifier)/limits", encoding: .utf8)
            }
            func isTool() throws -> Bool {
                try String(contentsOfFile: "/proc/\(tool.identifier)/comm", encoding: .utf8) == "cipherstore\n"
            }
            // The shell may have the same limit before it sets its own.
            while try !isTool() || !limits().contains(#/\nMax core file size +0 /#) { try #require(tool.isRunning) }
            try waitUntilWatched(SIGTERM, by: tool)
            #expect(kill(tool.identifier, signal) == 0)
            let run = try fixture.checked(tool.finish())
            #expect(run.status == 1_000 + signal)
            #expect(!run.errors.contains("Thread ") && !run.errors.contains("rax"), "\(run.errors)")
            #expect(try fixture.snapshot() == before)
            _ = try holder.finish()
        }

        /// A writer keeps the upgrade in its first stage until the signal arrives.
        @Test(
            "A signal during an upgrade ends it, and the file keeps its rows and its journal mode",
            arguments: ["DELETE", "WAL"])
        func amidst(_ mode: String) throws {
            let fixture = try ToolFixture()
            try fixture.make(mode: mode)
            let rows = ["query", fixture.database, "SELECT * FROM note", "--csv"]
            let rowsBefore = try fixture.run(rows).output
            let before = try fixture.snapshot()
            let holder = try fixture.holdingLock("write", fixture.database)
            let tool = try ToolProcess(
                Programs.tool,
                [
                    "encrypt", fixture.database, "--key-file", fixture.key, "--progress", "always", "--busy-timeout",
                    "600",
                ])
            while try !tool.errorsSoFar.contains("preparing") { try #require(tool.isRunning) }
            #expect(kill(tool.identifier, SIGINT) == 0)
            while try mask("ShdPnd", of: tool).contains(SIGINT) {}
            _ = try holder.finish()
            let run = try fixture.checked(tool.finish())
            #expect(run.status == 130, "\(run.errors)")
            #expect(run.errors.contains("nothing was changed"))
            // If two connections close at the same time, neither of them removes the log and its index.
            let logs: Set = mode == "WAL" ? ["app.db-wal", "app.db-shm"] : []
            #expect(try fixture.folder.names.filter { !logs.contains($0) } == ["app.db"])
            // Leaving WAL mode and returning to it counts as a change of the header, and changes nothing else.
            if mode == "DELETE" { #expect(try fixture.snapshot() == before) }
            let inspection = try fixture.run("inspect", fixture.database, "--json").object()
            #expect(inspection["state"] as? String == "plaintext")
            #expect(inspection["journalMode"] as? String == mode.lowercased())
            #expect(try fixture.run("verify", fixture.database).status == 0)
            #expect(try fixture.run(rows).output == rowsBefore)
        }

        /// A second signal ends the tool at once.
        @Test("A second signal ends the tool at once, and the next run completes the upgrade")
        func insistence() throws {
            let fixture = try ToolFixture()
            try fixture.make()
            let before = try fixture.snapshot()
            let holder = try fixture.holdingLock("write", fixture.database)
            let tool = try ToolProcess(
                Programs.tool,
                [
                    "encrypt", fixture.database, "--key-file", fixture.key, "--progress", "always", "--busy-timeout",
                    "600",
                ])
            while try !tool.errorsSoFar.contains("preparing") { try #require(tool.isRunning) }
            while tool.isRunning { _ = kill(tool.identifier, SIGINT) }
            // The first signal may have ended the wait before the second signal arrived.
            #expect([130, 1_000 + SIGINT].contains(try tool.finish().status))
            _ = try holder.finish()
            #expect(try fixture.snapshot()["app.db"] == before["app.db"])

            // The next run finishes the upgrade.
            #expect(try fixture.run("encrypt", fixture.database, "--key-file", fixture.key).status == 0)
            #expect(try fixture.folder.names == ["app.db"])
        }

        private func waitUntilWatched(_ signal: Int32, by tool: ToolProcess) throws {
            while try !mask("SigBlk", of: tool).contains(signal) { try #require(tool.isRunning) }
        }

        /// Returns one of the signal masks of a process, or an empty mask after the process has ended.
        private func mask(_ name: String, of tool: ToolProcess) throws -> Set<Int32> {
            guard let status = try? String(contentsOfFile: "/proc/\(tool.identifier)/status", encoding: .utf8),
                let line = status.split(separator: "\n").first(where: { $0.hasPrefix("\(name):") }),
                let bits = line.split(whereSeparator: { $0 == "\t" || $0 == " " }).last.flatMap({
                    UInt64($0, radix: 16)
                })
            else { return [] }
            return Set((1...Int32(64)).filter { bits & (1 << (UInt64($0) - 1)) != 0 })
        }
    }
#endif
