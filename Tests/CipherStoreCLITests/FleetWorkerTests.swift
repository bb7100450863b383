import CipherPlatform
import CipherTestSupport
import Foundation
import Testing

#if os(Linux)
    /// The processes in which a run works on its files.
    ///
    /// `/proc` shows them. A process that holds a write lock on a database keeps its worker at work.
    @Suite struct FleetWorkerTests {
        private let fixture: FleetFixture
        private let report: String

        init() throws {
            fixture = try FleetFixture()
            report = fixture.tool.keys.path("report.jsonl")
            for path in ["a.db", "b.db", "c.db"] { try fixture.make(path) }
        }

        /// A run whose worker waits until another process closes the first database.
        private struct Waiting {
            let run: ToolProcess
            let holder: ToolProcess
            let worker: Int32
        }

        private func waiting(_ command: [String] = ["encrypt"], _ arguments: String...) throws -> Waiting {
            let holder = try fixture.tool.holdingLock("write", fixture.tool.folder.path("a.db"))
            let limits = ["--jobs", "1", "--busy-timeout", "600", "--report", report]
            let run = try ToolProcess(
                Programs.tool, [command[0]] + fixture.common + limits + command.dropFirst() + arguments)
            return Waiting(run: run, holder: holder, worker: try Self.awaitedChild(of: run))
        }

        /// Returns the child process of a run that has received a file; `nil` if there is none yet.
        private static func child(of run: ToolProcess) -> Int32? {
            let processes = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
            return processes.compactMap { Int32($0) }.first { process in
                let status = (try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)) ?? ""
                // This limit is set when a file is received.
                return status.contains("\nPPid:\t\(run.identifier)\n") && (limit("Max cpu time", of: process) ?? 0) > 60
            }
        }

        private static func awaitedChild(of run: ToolProcess) throws -> Int32 {
            while true {
                if let child = child(of: run) { return child }
                let errors = try run.errorsSoFar
                try #require(run.isRunning, "the run ended before it started a worker: \(errors)")
            }
        }

        /// Returns the effective limit of a process; `nil` for no limit.
        private static func limit(_ name: String, of process: Int32) -> Int? {
            let limits = (try? String(contentsOfFile: "/proc/\(process)/limits", encoding: .utf8)) ?? ""
            let line = limits.split(separator: "\n").first { $0.hasPrefix(name) }
            return line.flatMap { Int($0.dropFirst(name.count).split(separator: " ")[0]) }
        }

        /// Returns the limit for a value of `--memory-limit`: the stacks of the threads are not part of that value.
        private static func memory(_ mebibytes: Int) -> Int {
            (mebibytes + 4 * ProcessInfo.processInfo.activeProcessorCount) << 20
        }

        private func finish(_ waiting: Waiting) throws -> ToolRun {
            _ = try waiting.holder.finish()
            return try fixture.tool.checked(waiting.run.finish())
        }

        private func reportedCodes() throws -> [String: String] {
            var codes: [String: String] = [:]
            for line in try String(contentsOfFile: report, encoding: .utf8).split(separator: "\n") {
                let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
                guard let path = object?["path"] as? String else { continue }
                codes[path] = (object?["error"] as? [String: Any])?["code"] as? String ?? "none"
            }
            return codes
        }

        @Test(
            "A file whose worker is killed costs one failure, the other files are done, and the next run does this one",
            arguments: [SIGKILL, SIGSEGV, SIGABRT])
        func killed(_ signal: Int32) throws {
            let before = try fixture.tool.snapshot()
            let waiting = try waiting()
            #expect(kill(waiting.worker, signal) == 0)
            let run = try fixture.tool.checked(waiting.run.finish())
            #expect(try fixture.tool.snapshot()["a.db"] == before["a.db"])
            _ = try waiting.holder.finish()
            #expect(run.status == 1, "\(run.errors)")
            #expect(try FleetLines(run).outcomes == ["a.db": "failed", "b.db": "encrypted", "c.db": "encrypted"])
            #expect(try FleetLines(run).errorCodes == ["a.db": "crashed"])
            #expect(run.errors.contains("by signal \(signal) ("))
            #expect(try reportedCodes() == ["a.db": "crashed", "b.db": "none", "c.db": "none"])
            let again = try fixture.run("encrypt", "--resume", report)
            #expect(again.status == 0, "\(again.errors)")
            #expect(try FleetLines(again).outcomes == ["a.db": "encrypted"])
            #expect(try fixture.tool.folder.names == ["a.db", "b.db", "c.db"])
        }

        @Test("A file whose worker has used its processor time is a failure with its own code")
        func time() throws {
            let waiting = try waiting()
            // The system sends this signal when the limit is reached.
            #expect(kill(waiting.worker, SIGXCPU) == 0)
            let run = try finish(waiting)
            #expect(run.status == 1, "\(run.errors)")
            #expect(try FleetLines(run).errorCodes == ["a.db": "timeLimit"])
            #expect(try reportedCodes() == ["a.db": "timeLimit", "b.db": "none", "c.db": "none"])
        }

        @Test("A worker has the documented limits, and its processor time is limited anew for each file")
        func limits() throws {
            let waiting = try waiting()
            #expect(Self.limit("Max data size", of: waiting.worker) == Self.memory(512))
            // Whole seconds are added to what the process has used.
            #expect((61...90).contains(try #require(Self.limit("Max cpu time", of: waiting.worker))))
            #expect(Self.limit("Max core file size", of: waiting.worker) == 0)
            #expect(try finish(waiting).status == 0)
        }

        @Test("The options change the limits, and 0 takes a limit away")
        func options() throws {
            let limited = try waiting(["encrypt"], "--memory-limit", "100", "--time-limit", "1000")
            #expect(Self.limit("Max data size", of: limited.worker) == Self.memory(100))
            #expect((1_001...1_030).contains(try #require(Self.limit("Max cpu time", of: limited.worker))))
            #expect(try finish(limited).status == 0)
            // The limit of the test's own process is passed on, so it may be anything.
            #expect(try fixture.run("verify", "--memory-limit", "0", "--time-limit", "0").status == 0)
            for wrong in [["--memory-limit", "1"], ["--memory-limit", "x"], ["--time-limit", "-1"]] {
                #expect(try fixture.run(["verify"] + fixture.common + wrong).status == 64)
            }
        }

        @Test("A file that needs more memory than the limit is a failure, and the other files are done")
        func memory() throws {
            // The longest value is read as a whole for the CHECK, twice.
            try fixture.tool.make(
                "large.db",
                "CREATE TABLE t(b CHECK(length(upper(b)) > 0)); INSERT INTO t VALUES(hex(zeroblob(30000000)))")
            let before = try fixture.tool.snapshot()["large.db"]
            let run = try fixture.run("encrypt", "--memory-limit", "64", "--report", report)
            #expect(run.status == 1, "\(run.errors)")
            let lines = try FleetLines(run)
            #expect(lines.outcomes.filter { $1 == "encrypted" }.keys.sorted() == ["a.db", "b.db", "c.db"])
            #expect(lines.errorCodes == ["large.db": "memoryLimit"])
            #expect(try reportedCodes()["large.db"] == "memoryLimit")
            #expect(try fixture.tool.snapshot()["large.db"] == before)
            #expect(try fixture.tool.folder.names == ["a.db", "b.db", "c.db", "large.db"])
            #expect(try fixture.run("encrypt").status == 0)
        }

        @Test("A signal to the run cancels the file in progress, and one to the worker alone has no effect")
        func signals() throws {
            let before = try fixture.tool.snapshot()
            let waiting = try waiting()
            for signal in [SIGINT, SIGTERM, SIGHUP] { #expect(kill(waiting.worker, signal) == 0) }
            #expect(kill(waiting.run.identifier, SIGTERM) == 0)
            let run = try fixture.tool.checked(waiting.run.finish())
            #expect(try fixture.tool.snapshot()["a.db"] == before["a.db"])
            _ = try waiting.holder.finish()
            #expect(run.status == 143, "\(run.errors)")
            #expect(try FleetLines(run).summary["left"] == 3)
            #expect(try reportedCodes().isEmpty)
            #expect(try fixture.run("encrypt").status == 0)
        }

        @Test("When the run is killed, its worker ends, and the next run completes the work")
        func orphan() throws {
            let waiting = try waiting()
            waiting.run.kill()
            _ = try waiting.run.finish()
            while Self.isRunning(waiting.worker) {}
            _ = try waiting.holder.finish()
            let run = try fixture.run("encrypt")
            #expect(run.status == 0, "\(run.errors)")
            #expect(try fixture.tool.folder.names == ["a.db", "b.db", "c.db"])
        }

        private static func isRunning(_ process: Int32) -> Bool {
            guard let status = try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8) else {
                return false
            }
            // A process whose parent has ended may stay as a zombie.
            return !status.contains("\nState:\tZ")
        }

        @Test("A key on standard input reaches the workers, and is in no command line and no environment")
        func typedKey() throws {
            let holder = try fixture.tool.holdingLock("write", fixture.tool.folder.path("a.db"))
            let key = "exec \"$@\" <'\(fixture.tool.key)'"
            let arguments = ["encrypt", fixture.tool.folder.path(""), "--recursive", "--json", "--key-file", "-"]
            let run = try ToolProcess(
                "/bin/sh",
                ["-c", key, "sh", Programs.tool] + arguments + ["--jobs", "1", "--busy-timeout", "600"])
            let worker = try Self.awaitedChild(of: run)
            for name in ["cmdline", "environ"] {
                let content = try Data(contentsOf: URL(filePath: "/proc/\(worker)/\(name)"))
                #expect(!String(decoding: content, as: UTF8.self).contains(ToolFixture.rawKey))
            }
            _ = try holder.finish()
            let finished = try fixture.tool.checked(run.finish())
            #expect(finished.status == 0, "\(finished.errors)")
            let verified = try fixture.run("verify")
            #expect(try FleetLines(verified).summary["plaintext"] == 0 && verified.status == 0)
        }

        @Test("The word with which a run starts its workers is not a command")
        func word() throws {
            let before = try fixture.tool.snapshot()
            #expect(try fixture.run(["fleet-worker", "encrypt"] + fixture.common).status == 64)
            #expect(try fixture.tool.snapshot() == before)
        }

        @Test(
            "An unprivileged user's processes cannot be read by the same user's other processes, and work as usual",
            .enabled(if: geteuid() == 0 && FileManager.default.isExecutableFile(atPath: "/usr/bin/setpriv")))
        func protected() throws {
            // The program's own folder may be closed to other users.
            let program = fixture.tool.keys.path("cipherstore")
            try FileManager.default.copyItem(atPath: Programs.tool, toPath: program)
            let own = "chown -R 65534:65534 \"$1\" \"$2\" && shift 2 && exec setpriv --reuid=65534 --regid=65534 "
            let holder = try fixture.tool.holdingLock("write", fixture.tool.folder.path("a.db"))
            let run = try ToolProcess(
                "/bin/sh",
                ["-c", own + "--clear-groups \"$@\"", "sh", fixture.tool.folder.path(""), fixture.tool.keys.path("")]
                    + [program, "encrypt"] + fixture.common + ["--jobs", "1", "--busy-timeout", "600"])
            for process in [run.identifier, try Self.awaitedChild(of: run)] {
                // The system gives root the files of a process that is not dumpable.
                var status = stat()
                #expect(stat("/proc/\(process)/mem", &status) == 0 && status.st_uid == 0)
            }
            _ = try holder.finish()
            let finished = try fixture.tool.checked(run.finish())
            #expect(finished.status == 0, "\(finished.errors)")
        }
    }
#endif
