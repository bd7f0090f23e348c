// Payloads and headers are encrypted by the client; the server never sees them.

import Foundation
import Iggy

let address = CommandLine.arguments.dropFirst().first ?? "iggy://iggy:iggy@127.0.0.1:8090"
var configuration = ClientConfiguration(connectionString: address)
configuration.encryption = .aes256Gcm(key: Data((0..<32).map { _ in UInt8.random(in: 0...255) }))
let client = try IggyClient(configuration: configuration)
try await client.connect()
let producer = try client.producer(streamID: "secrets", topicID: "letters")
try await producer.initialize()
try await producer.send("for your eyes only")
try await producer.shutdown()
let polled = try await client.pollMessages(
    streamID: "secrets", topicID: "letters", partitionID: 0, consumer: "reader", strategy: .first)
print("with the key: \(polled[0].payloadString)")
try await client.shutdown()

let stranger = try IggyClient(connectionString: address)
try await stranger.connect()
let seen = try await stranger.pollMessages(
    streamID: "secrets", topicID: "letters", partitionID: 0, consumer: "reader", strategy: .first)
print("without it: \(seen[0].payload.base64EncodedString())")
try await stranger.shutdown()
exit(seen[0].payloadString.contains("eyes") ? 1 : 0)
