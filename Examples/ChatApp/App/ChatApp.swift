// An iOS app with its database in an app group, which the widget reads. Nobody has run it: Scripts/apple compiles it on
// Linux, against declarations of SwiftUI and WidgetKit. docs/APPLE.md lists what to test on a Mac and on a device.

import SwiftUI

@main
struct ChatApp: App {
    @State private var model = ChatModel()
    @Environment(\.scenePhase) private var phase

    var body: some Scene {
        WindowGroup {
            MessageList(model: model)
        }
        .onChange(of: phase) { _, phase in
            switch phase {
            case .active: model.resume()
            case .background: model.suspend()
            default: break
            }
        }
    }
}

struct MessageList: View {
    let model: ChatModel

    var body: some View {
        VStack {
            if let failure = model.failure { Text(failure) }
            List(model.messages) { message in
                VStack(alignment: .leading) {
                    Text(message.sender)
                    Text(message.body)
                }
            }
            Button("Wave") { Task { await model.send("👋") } }
        }
    }
}
