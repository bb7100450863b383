internal import CipherSQLText
import Testing

struct SQLNameTests {
    static let mentioning = [
        "chat", "SELECT * FROM Chat", "(CHAT)", "\"chat\"", "x.chat,y", "chats, chat", "chat chat2", "[ch]chat",
    ]

    @Test("A name is mentioned if it occurs as a separate word, in any letter case", arguments: mentioning)
    func isMentioned(sql: String) {
        #expect(SQLName("cHAT").isMentioned(in: sql))
    }

    static let others = ["", "cha", "chats", "_chat", "chat$", "chat1", "échat", "chaté", "cha t", "CHATS mychat"]

    @Test("A name is not mentioned by part of a longer word", arguments: others)
    func isNotMentioned(sql: String) {
        #expect(!SQLName("chat").isMentioned(in: sql))
    }

    @Test("A name is compared byte by byte, ignoring the case of ASCII letters")
    func isCompared() {
        #expect(SQLName("AZaz@[") == SQLName("azAZ@["))
        #expect(SQLName("É") != SQLName("é"))
        #expect(SQLName("e\u{301}") != SQLName("\u{e9}"))
        #expect(!SQLName("").isMentioned(in: "anything"))
    }
}
