//! What a node says of itself: statistics, clients, the cluster, diagnostics.

use super::Request;
use crate::connection::Bound;
use crate::connection::registry::Entry;
use crate::diagnostics;
use crate::node::{CLUSTER_NAME, Node};
use bytes::{Bytes, BytesMut};
use iggy_metadata::{Metadata, Target};
use iggy_protocol::codec::{Decode, Encode};
use iggy_protocol::command::Command;
use iggy_protocol::error_code::ErrorCode;
use iggy_protocol::reply::system::{
    ClientDetails, ClientGroup, ClientSummary, Clients, ClusterMetadata, ClusterNode, NO_USER, NodeRole, NodeStatus,
};
use iggy_protocol::request::system::{GetClient, GetSnapshot};
use std::sync::Arc;

/// Transport number of TCP (wire 11.7).
const TCP: u8 = 1;

pub(super) fn serve(request: Request, bound: Bound, command: Command, metadata: &Metadata) {
    if let Err(code) = metadata.authorize(bound.user_id, command, Target::Nothing) {
        return request.refuse(code);
    }
    let node = Arc::clone(&request.connection.node);
    let result = match command {
        Command::GetStats => return stats(request),
        Command::GetSnapshot => return snapshot(request),
        Command::GetClusterMetadata => Ok(cluster(&node)),
        Command::GetMe => Ok(details(&node, metadata, request.connection.client_id)),
        Command::GetClient => GetClient::from_bytes(&request.body)
            .map(|asked| details(&node, metadata, asked.client_id))
            .map_err(|error| error.code()),
        Command::GetClients => Ok(clients(&node, metadata)),
        _ => Err(ErrorCode::InvalidCommand),
    };
    request.answer(result);
}

/// Reading the process table takes milliseconds: off the shard.
fn stats(request: Request) {
    let node = Arc::clone(&request.connection.node);
    tokio::task::spawn_local(async move {
        let result = tokio::task::spawn_blocking(move || diagnostics::stats(&node)).await;
        request.answer(result.map_err(|_| ErrorCode::Error));
    });
}

fn snapshot(request: Request) {
    let asked = match GetSnapshot::from_bytes(&request.body) {
        Ok(asked) => asked,
        Err(error) => return request.refuse(error.code()),
    };
    let node = Arc::clone(&request.connection.node);
    tokio::task::spawn_local(async move {
        let result = tokio::task::spawn_blocking(move || diagnostics::snapshot(&node, &asked)).await;
        request.answer(result.unwrap_or(Err(ErrorCode::SnapshotFileCompletionFailed)));
    });
}

fn cluster(node: &Node) -> Bytes {
    let advertised = node.config.node.advertised_address.clone();
    let nodes = vec![ClusterNode {
        replica_id: 0,
        name: "node-0".to_owned(),
        ip: advertised.unwrap_or_else(|| node.tcp_address.ip().to_string()),
        tcp: node.tcp_address.port(),
        quic: 0,
        http: 0,
        websocket: 0,
        role: NodeRole::Leader,
        status: NodeStatus::Healthy,
    }];
    encoded(&ClusterMetadata {
        name: CLUSTER_NAME.to_owned(),
        nodes,
    })
}

fn encoded(value: &impl Encode) -> Bytes {
    let mut body = BytesMut::new();
    value.encode(&mut body);
    body.freeze()
}

fn summary(entry: &Entry, groups: usize) -> ClientSummary {
    ClientSummary {
        client_id: entry.client_id,
        user_id: entry.user_id.unwrap_or(NO_USER),
        transport: TCP,
        address: entry.address.to_string(),
        groups_count: groups as u32,
    }
}

/// One client, or nothing for an unknown number.
fn details(node: &Node, metadata: &Metadata, client_id: u32) -> Bytes {
    let Some(entry) = node.connections.get(client_id) else {
        return Bytes::new();
    };
    let groups = entry
        .session
        .map(|session| metadata.groups_of(session))
        .unwrap_or_default();
    let client = summary(&entry, groups.len());
    let group = |key: &iggy_metadata::GroupKey| ClientGroup {
        stream_id: key.stream_id,
        topic_id: key.topic_id,
        group_id: key.group_id,
    };
    encoded(&ClientDetails {
        client,
        groups: groups.iter().map(group).collect(),
    })
}

fn clients(node: &Node, metadata: &Metadata) -> Bytes {
    let clients = node.connections.list();
    let summary = |entry: &Entry| {
        summary(
            entry,
            entry.session.map_or(0, |session| metadata.groups_of(session).len()),
        )
    };
    encoded(&Clients {
        clients: clients.iter().map(summary).collect(),
    })
}
