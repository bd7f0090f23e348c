// Creates a stream and a topic, sends a few messages and reads them back.

import Foundation
import Iggy

let address = CommandLine.arguments.dropFirst().first ?? "iggy://iggy:iggy@127.0.0.1:8090"
let client = try IggyClient(connectionString: address)
try await client.connect()
try await client.createStream(name: "getting-started")
try await client.createTopic(
    streamID: "getting-started", name: "greetings", options: TopicCreateOptions(partitionsCount: 1))
try await client.sendMessages(
    streamID: "getting-started", topicID: "greetings", partitioning: .partition(0),
    messages: ["hello 0", "hello 1", "hello 2"])

let polled = try await client.pollMessages(
    streamID: "getting-started", topicID: "greetings", partitionID: 0, consumer: "reader", strategy: .first,
    options: PollOptions(count: 10, maxWait: .seconds(1)))
for message in polled {
    print(message.offset, message.payloadString)
}
try await client.shutdown()
exit(polled.count == 3 ? 0 : 1)
