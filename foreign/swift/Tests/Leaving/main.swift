// Ends with calls in flight and a client nobody closed: by returning, or by exit.

import Foundation
import Iggy

let client = try IggyClient(connectionString: CommandLine.arguments[1])
try await client.connect()
for _ in 0..<100 {
    Task {
        _ = try await client.pollMessages(
            streamID: "left", topicID: "t", partitionID: 0, consumer: "c", strategy: .offset(1_000_000),
            options: PollOptions(maxWait: .seconds(60)))
    }
}
for _ in 0..<900 { Task { try await client.ping() } }
// Some are under way when the first has ended.
try await client.ping()
if CommandLine.arguments[2] == "exit" { exit(0) }
