// Messages carry typed headers beside their payload.

import Foundation
import Iggy

let address = CommandLine.arguments.dropFirst().first ?? "iggy://iggy:iggy@127.0.0.1:8090"
let client = try IggyClient(connectionString: address)
try await client.connect()
let producer = try client.producer(streamID: "headers", topicID: "traced")
try await producer.initialize()
try await producer.send(IggyMessage("payload", headers: [
    "trace": "4bf92f3577b34da6",
    "attempt": .uint32(3),
    "sampled": true,
    "ratio": .float64(0.25),
]))
try await producer.shutdown()

let polled = try await client.pollMessages(
    streamID: "headers", topicID: "traced", partitionID: 0, consumer: "reader", strategy: .first)
let headers = try polled[0].headers()
print(headers["trace"]?.string ?? "", headers["ratio"]?.float64 ?? 0)
try await client.shutdown()
exit(headers["attempt"]?.uint32 == 3 ? 0 : 1)
