// A member of a group: processes each message, then commits it. Start more of them and they share the partitions.

import Iggy

let address = CommandLine.arguments.dropFirst().first ?? "iggy://iggy:iggy@127.0.0.1:8090"
let client = try IggyClient(connectionString: address)
try await client.connect()
let producer = try client.producer(
    streamID: "groups", topicID: "invoices",
    configuration: ProducerConfiguration(createTopic: NewTopic(partitionsCount: 4)))
try await producer.initialize()
for number in 0..<20 {
    try await producer.send("invoice \(number)")
}
try await producer.shutdown()

let member = try client.consumerGroup(name: "billing", streamID: "groups", topicID: "invoices")
try await member.initialize()
var processed = 0
for try await received in member {
    print("partition \(received.partitionID): \(received.message.payloadString)")
    try await member.commit(received.checkpoint)
    processed += 1
    if processed == 20 { break }
}
// Leaving the loop began it; this waits until the member has left its group.
try await member.shutdown()
try await client.shutdown()
