// Talks TLS with a server whose certificate is signed by an authority of its own.
//
// Takes the address of the server and the file with the certificate to trust.

import Foundation
import Iggy

var configuration = ClientConfiguration()
configuration.serverAddress = CommandLine.arguments[1]
configuration.username = "iggy"
configuration.password = "iggy"
configuration.tls = TLS(domain: "localhost", caFile: CommandLine.arguments[2])
let client = try IggyClient(configuration: configuration)
try await client.connect()
let producer = try client.producer(streamID: "private", topicID: "letters")
try await producer.initialize()
try await producer.send("over TLS")
try await producer.shutdown()
let polled = try await client.pollMessages(
    streamID: "private", topicID: "letters", partitionID: 0, consumer: "reader", strategy: .first)
print(polled[0].payloadString)
try await client.shutdown()

configuration.tls = TLS(domain: "localhost")
let stranger = try IggyClient(configuration: configuration)
do {
    try await stranger.connect()
    exit(1)
} catch {
    print("without the authority: \(error)")
}
try await stranger.shutdown()
exit(polled[0].payloadString == "over TLS" ? 0 : 1)
