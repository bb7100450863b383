import CipherStore
import Foundation
import SwiftUI
import WidgetKit

struct LatestMessage: TimelineEntry {
    let date: Date
    let message: Message?
}

struct LatestMessageProvider: TimelineProvider {
    /// Reads the newest message.
    ///
    /// Nothing is written, and afterwards no file is open and no lock is held. There is no message if the app must
    /// upgrade the file first, or before the first unlock after a restart.
    private func latest() -> LatestMessage {
        let store = try? EncryptedStore.openReadOnlyBlocking(
            Chat.configuration, directory: Chat.folder(), keyProvider: Chat.key)
        let messages = try? store?.readBlocking(Chat.messages(1))
        return LatestMessage(date: Date(), message: messages?.first)
    }

    func placeholder(in context: Context) -> LatestMessage { LatestMessage(date: Date(), message: nil) }

    func getSnapshot(in context: Context, completion: @escaping (LatestMessage) -> Void) { completion(latest()) }

    func getTimeline(in context: Context, completion: @escaping (Timeline<LatestMessage>) -> Void) {
        // The app asks for a new timeline when it goes to the background.
        completion(Timeline(entries: [latest()], policy: .never))
    }
}

@main
struct ChatWidget: Widget {
    var body: some WidgetConfiguration {
        StaticConfiguration(kind: "LatestMessage", provider: LatestMessageProvider()) { entry in
            Text(entry.message?.body ?? "No messages")
        }
        .configurationDisplayName("Latest message")
    }
}
