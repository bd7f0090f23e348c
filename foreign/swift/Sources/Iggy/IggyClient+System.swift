// The node, the cluster, and writes of unknown outcome.

import Foundation

extension IggyClient {
    // MARK: The node and the cluster

    /// Asks the server for a sign of life.
    public func ping() async throws(IggyError) { try await perform("ping") }

    /// What the node that answers counts about itself.
    public func getStats() async throws(IggyError) -> Stats { try await invoke("get_stats") }

    /// This connection as the server sees it.
    public func getMe() async throws(IggyError) -> ConnectedClientDetails { try await invoke("get_me") }

    /// A connection; nil when there is none.
    public func getClient(clientID: UInt32) async throws(IggyError) -> ConnectedClientDetails? {
        try await invoke("get_client", Settings().with("client_id", clientID))
    }

    /// All connections.
    public func getClients() async throws(IggyError) -> [ConnectedClient] { try await invoke("get_clients") }

    /// The nodes.
    public func getClusterMetadata() async throws(IggyError) -> Cluster { try await invoke("get_cluster_metadata") }

    /// The options of a kind of resource.
    public func describeOptions(_ scope: OptionScope) async throws(IggyError) -> [OptionDescription] {
        try await invoke("describe_options", Settings().with("scope", scope.rawValue))
    }

    /// A diagnostic snapshot as a zip archive.
    public func snapshot(_ request: SnapshotRequest = SnapshotRequest()) async throws(IggyError) -> Data {
        let arguments = Settings().with("types", request.types).with("compression", request.compression)
        let text: String = try await invoke("snapshot", arguments)
        guard let archive = Data(base64Encoded: text) else {
            throw IggyError(.internal, "the archive is no base64", outcome: .unknown)
        }
        return archive
    }

    /// A page of metadata changes.
    public func getMetadataChanges(
        _ request: ChangesRequest = ChangesRequest()
    ) async throws(IggyError) -> MetadataChanges {
        let native = native
        let text = try await awaiting {
            try await native.invoke(call: $0, operation: "get_metadata_changes", arguments: request.setting)
        }
        return try decoded(text)
    }

    /// The transport, and the node that is talked to.
    public func getConnectionInfo() async throws(IggyError) -> ConnectionInfo {
        try await invoke("get_connection_info")
    }

    /// Time between two pings of a link.
    public func heartbeatInterval() async throws(IggyError) -> Duration {
        .microseconds(try await invoke("heartbeat_interval") as UInt64)
    }

    // MARK: Writes of unknown outcome

    /// The writes whose outcome is unknown, ascending.
    public func uncertainOperations() async throws(IggyError) -> [UInt64] { try await invoke("uncertain_operations") }

    /// Whether a write of unknown outcome was applied, within a deadline. Its lane is free afterwards.
    public func resolveOperation(_ operation: UInt64, deadline: Duration) async throws(IggyError) -> Resolution {
        try await invoke("resolve_operation", Settings().with("operation", operation).with("deadline", deadline))
    }

    /// Gives up on a write of unknown outcome and frees its lane.
    public func abandonOperation(_ operation: UInt64) async throws(IggyError) {
        try await perform("abandon_operation", Settings().with("operation", operation))
    }
}
