// Messages with the same key go to the same partition, in order.

import Foundation
import Iggy

let address = CommandLine.arguments.dropFirst().first ?? "iggy://iggy:iggy@127.0.0.1:8090"
let client = try IggyClient(connectionString: address)
try await client.connect()
try await client.createStream(name: "keys")
try await client.createTopic(streamID: "keys", name: "orders", options: TopicCreateOptions(partitionsCount: 10))
for customer in ["alice", "bob", "alice", "alice"] {
    let sent = try await client.sendMessages(
        streamID: "keys", topicID: "orders", partitioning: .key(customer), messages: ["order of \(customer)"])
    print("\(customer) is in partition \(sent[0].partitionID)")
}

// Or the application decides.
let producer = try client.producer(
    streamID: "keys", topicID: "orders", configuration: ProducerConfiguration(partitioner: { _, _, _ in 7 }))
try await producer.initialize()
let sent = try await producer.send("to the seventh")
try await producer.shutdown()
try await client.shutdown()
exit(sent[0].partitionID == 7 ? 0 : 1)
