import CipherStore
import Foundation
import Observation
import WidgetKit

/// The state of the app, with the store.
@MainActor @Observable
final class ChatModel {
    private(set) var messages: [Message] = []
    private(set) var failure: String?
    @ObservationIgnored private var store: EncryptedStore?
    @ObservationIgnored private var isInBackground = false

    /// Reads the messages at once, so that the first frame shows them.
    ///
    /// A read-only store does not convert or migrate the file, so this takes milliseconds. If the file needs an
    /// upgrade, the first frame is empty, and ``run()`` shows the messages after the upgrade.
    init() {
        if let messages = try? Self.messagesAtLaunch() { self.messages = messages }
        Task { await run() }
    }

    private static func messagesAtLaunch() throws -> [Message] {
        let store = try EncryptedStore.openReadOnlyBlocking(
            Chat.configuration, directory: Chat.folder(), keyProvider: Chat.key)
        return try store.readBlocking(Chat.messages(100))
    }

    /// Opens the store, which upgrades the file if necessary, and shows every change.
    private func run() async {
        do {
            let store = try await EncryptedStore.open(
                Chat.configuration, directory: Chat.folder(), keyProvider: Chat.key)
            self.store = store
            if isInBackground { suspend() }
            for try await messages in store.observe(Chat.messages(100)) { self.messages = messages }
        } catch {
            failure = String(describing: error)
        }
    }

    func send(_ body: String) async {
        do {
            try await store?.write { db in try db.insert(Message(sender: "me", body: body), into: "message") }
        } catch {
            failure = String(describing: error)
        }
    }

    /// Closes the files before the system suspends the app, and asks the system to wait for that.
    func suspend() {
        isInBackground = true
        WidgetCenter.shared.reloadAllTimelines()
        guard let store else { return }
        ProcessInfo.processInfo.performExpiringActivity(withReason: "closing the database") { isExpired in
            try? store.suspendBlocking(interruptingAfter: isExpired ? .zero : .seconds(3))
            // The app may be active again by now.
            Task { @MainActor in self.resumeIfActive() }
        }
    }

    func resume() {
        isInBackground = false
        resumeIfActive()
    }

    private func resumeIfActive() {
        if !isInBackground { store?.resume() }
    }
}
