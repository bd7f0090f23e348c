// Sends in batches, in the background, and exactly once.

import Foundation
import Iggy

let address = CommandLine.arguments.dropFirst().first ?? "iggy://iggy:iggy@127.0.0.1:8090"
let client = try IggyClient(connectionString: address)
try await client.connect()

// A producer creates what is missing, and splits long sends into batches.
let direct = try client.producer(
    streamID: "producing", topicID: "direct",
    configuration: ProducerConfiguration(sending: .direct(DirectSending(batchLength: 100))))
try await direct.initialize()
let confirmations = try await direct.send((1...250).map { IggyMessage("\($0)") })
print("stored in \(confirmations.count) batches")
try await direct.shutdown()

// In the background sends return at once; shutting down waits until everything is stored.
let background = try client.producer(
    streamID: "producing", topicID: "background",
    configuration: ProducerConfiguration(
        sending: .background(BackgroundSending(lingerTime: .milliseconds(5))),
        onError: { print("not sent: \($0)") }))
try await background.initialize()
for number in 0..<1000 {
    try await background.send("\(number)")
}
try await background.shutdown()

// The partition writes each batch once, even when a reply was lost and it is sent again.
let idempotent = try client.producer(
    streamID: "producing", topicID: "idempotent", configuration: ProducerConfiguration(idempotent: true))
try await idempotent.initialize()
try await idempotent.send(["once"])
try await idempotent.shutdown()

var right = true
for (topic, count) in [("direct", 250), ("background", 1000), ("idempotent", 1)] as [(String, UInt64)] {
    let found = try await client.getTopic(streamID: "producing", topicID: .named(topic))?.messagesCount
    print(topic, found ?? 0)
    right = right && found == count
}
try await client.shutdown()
exit(right ? 0 : 1)
