// The node, and how requests ended.

import Foundation
import Iggy

@MainActor let systemSteps: [String: Step] = [
    "ping": { world, _ in try await world.client().ping() },
    "finds_itself": { world, told in
        let me = try await world.client().getMe()
        try await check(world.client().getClients().map(\.clientID).contains(me.clientID), "among them")
        let user = try await world.client().getUser(userID: .named(told.text("user")))?.id
        try same(user, me.userID)
        try await same(user, world.client().getClient(clientID: me.clientID)?.userID)
    },
    "statistics_are": { world, told in
        let found = try await world.client().getStats()
        try same(told.number("streams"), found.streamsCount)
        try same(told.number("topics"), found.topicsCount)
        try same(told.number("partitions"), found.partitionsCount)
        try same(told.wide("messages"), found.messagesCount)
    },
    "cluster_is": { world, told in
        let nodes = try await world.client().getClusterMetadata().nodes
        try same(told.int("nodes"), nodes.count)
        let port = world.address.split(separator: ":").last.flatMap { UInt16($0) }
        try same([port], nodes.filter { $0.role == "leader" }.map(\.tcp))
    },
    "note_changes": { world, _ in
        world.notedChanges = try await world.client().getMetadataChanges(ChangesRequest(start: .latest)).next ?? ""
    },
    "changes_include_creations": { world, _ in
        let page = try await world.client().getMetadataChanges(ChangesRequest(start: .after(world.notedChanges)))
        let kinds = page.records.map(\.kind)
        guard let stream = kinds.firstIndex(of: "stream_created"), let topic = kinds.firstIndex(of: "topic_created")
        else { throw StepFailed("\(kinds)") }
        try check(stream < topic, "\(kinds)")
    },
    "take_snapshot": { world, _ in
        world.answer = try await world.client().snapshot(SnapshotRequest(types: ["test"]))
    },
    "snapshot_is_zip": { world, _ in
        try world.expectNoError()
        try check(world.answer.starts(with: Data("PK".utf8)), "a zip archive")
    },
    "send_raw": { world, told in
        world.answer = try await world.client().sendBinaryRequest(code: told.number("code"))
    },
    "request_succeeds": { world, _ in try world.expectNoError() },
    "request_fails": { world, told in try same(told.text("error"), world.takeError().name) },
]
