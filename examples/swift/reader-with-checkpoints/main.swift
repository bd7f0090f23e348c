// Reads many partitions in batches and goes on where it stopped.

import Foundation
import Iggy

@MainActor
func read(_ client: IggyClient, _ count: Int) async throws -> [String] {
    let reader = try await client.reader(
        streamID: "reading", topicID: "events", consumer: "audit",
        configuration: ReaderConfiguration(partitions: [0, 1, 2]))
    var texts: [String] = []
    while texts.count < count {
        let batch = try await reader.next()
        texts += batch.map(\.payloadString)
        if let checkpoint = batch.checkpoint { try await reader.commit(checkpoint) }
    }
    try await reader.close()
    return texts.sorted()
}

let address = CommandLine.arguments.dropFirst().first ?? "iggy://iggy:iggy@127.0.0.1:8090"
let client = try IggyClient(connectionString: address)
try await client.connect()
try await client.createStream(name: "reading")
try await client.createTopic(streamID: "reading", name: "events", options: TopicCreateOptions(partitionsCount: 3))
for run in 0..<2 {
    let sent = (0..<3).map { "run \(run), partition \($0)" }
    for (partition, text) in sent.enumerated() {
        try await client.sendMessages(
            streamID: "reading", topicID: "events", partitioning: .partition(UInt32(partition)),
            messages: [IggyMessage(text)])
    }
    // The second run starts after what the first one committed.
    let texts = try await read(client, 3)
    print(texts.joined(separator: "; "))
    if texts != sent { exit(1) }
}
try await client.shutdown()
