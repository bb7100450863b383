internal import CipherStoreCLI
import CipherTestSupport
import Foundation
import Testing

/// The installation and the files that it adds.
@Suite struct InstallTests {
    private static let script = Repository.root.appending(path: "Scripts/install").path(percentEncoded: false)

    @Test("The tool, its manual page and its completions are installed below DESTDIR and PREFIX")
    func installsBelowDestinationAndPrefix() throws {
        let folder = try TemporaryFolder()
        // The tests link Swift's libraries dynamically, so their own program has a RUNPATH.
        let program = try folder.write("#!/bin/sh\nexec '\(Programs.tool)' \"$@\"\n", to: "program", mode: 0o755)
        let run = try ToolRun.run(
            Self.script, ["--binary", program],
            environment: ["DESTDIR": folder.path("staged"), "PREFIX": "/opt/tools"])
        #expect(run.status == 0, "\(run.errors)")
        let installed = try FileManager.default.subpathsOfDirectory(atPath: folder.path("")).filter {
            var isFolder: ObjCBool = false
            return FileManager.default.fileExists(atPath: folder.path($0), isDirectory: &isFolder)
                && !isFolder.boolValue
        }
        #expect(
            Set(installed) == [
                "program",
                "staged/opt/tools/bin/cipherstore", "staged/opt/tools/share/bash-completion/completions/cipherstore",
                "staged/opt/tools/share/man/man1/cipherstore.1",
                "staged/opt/tools/share/zsh/site-functions/_cipherstore",
            ])
        let version = try ToolRun.run(folder.path("staged/opt/tools/bin/cipherstore"), ["--version"])
        #expect(version.output == HelpText.version)
    }

    #if os(Linux)
        @Test("A program that names a folder to load libraries from is not installed")
        func refusesRunPath() throws {
            let folder = try TemporaryFolder()
            let run = try ToolRun.run(
                Self.script, ["--binary", Programs.tool],
                environment: ["DESTDIR": folder.path("staged"), "PREFIX": "/opt/tools"])
            #expect(run.status == 1)
            #expect(run.errors.contains("$ORIGIN") && run.errors.contains("--disable-local-rpath"), "\(run.errors)")
            #expect(try folder.names.isEmpty)
        }
    #endif

    @Test("A prefix that is not an absolute path is refused")
    func refusesPrefixThatIsNoPlace() throws {
        let run = try ToolRun.run(
            Self.script, ["--binary", Programs.tool],
            environment: ["PREFIX": "tools"])
        #expect(run.status == 1)
        #expect(run.errors.contains("PREFIX must be an absolute path"))
    }

    @Test(
        "groff formats the manual page without warnings, and the page names every command",
        .enabled("groff is not installed") { Shells.have("groff") })
    func manualPageHasNoComplaint() throws {
        let folder = try TemporaryFolder()
        let page = try folder.write(ManualPage.text, to: "cipherstore.1")
        let run = try ToolRun.run(try #require(Shells.path("groff")), ["-man", "-ww", "-Tascii", page])
        #expect(run.status == 0)
        #expect(run.errors.isEmpty)
        for command in Command.all { #expect(run.output.contains("cipherstore \(command.name)")) }
    }

    @Test("The changelog begins with the current version")
    func changelogBeginsWithTheVersion() throws {
        let text = try String(contentsOf: Repository.root.appending(path: "CHANGELOG.md"), encoding: .utf8)
        let newest = try #require(text.split(separator: "\n").first { $0.hasPrefix("## ") })
        #expect(newest.hasPrefix("## \(ToolVersion.number)"))
    }
}
