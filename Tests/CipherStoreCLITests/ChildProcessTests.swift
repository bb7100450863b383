import CipherPlatform
import CipherTestSupport
import Testing

struct ChildProcessTests {
    @Test("A program that is let go has ended, and does not hide other children from those who wait for any child")
    func letGo() throws {
        var child: ChildProcess? = try ChildProcess("/bin/sleep", ["1000"])
        let process = try #require(child).identifier
        child = nil
        #expect(waitpid(process, nil, WNOHANG) == -1 && errno == ECHILD)
    }
}
