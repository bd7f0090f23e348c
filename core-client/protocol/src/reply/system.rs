//! Statistics, roster, described options and connected clients (wire 11).

use bytes::{BufMut, Bytes, BytesMut};

use crate::codec::{Decode, DecodeError, Encode, Reader};
use crate::name::Name;
use crate::request::system::byte_enum;
use crate::wire_struct::{Field, composite_fields, wire_struct};

wire_struct! {
    /// The numbers of a node that precede its names (wire 11.2).
    pub struct StatsNumbers {
        /// Process id.
        process_id: u32,
        /// Processor use of the process in percent.
        cpu_usage: f32,
        /// Processor use of the machine in percent.
        total_cpu_usage: f32,
        /// Memory of the process in bytes.
        memory_usage: u64,
        /// Memory of the machine in bytes.
        total_memory: u64,
        /// Available memory of the machine in bytes.
        available_memory: u64,
        /// How long the process runs, in microseconds.
        run_time: u64,
        /// When it started, in microseconds since the Unix epoch.
        start_time: u64,
        /// Bytes read.
        read_bytes: u64,
        /// Bytes written.
        written_bytes: u64,
        /// Bytes of all messages.
        messages_size_bytes: u64,
        /// Streams.
        streams_count: u32,
        /// Topics.
        topics_count: u32,
        /// Partitions.
        partitions_count: u32,
        /// Segments.
        segments_count: u32,
        /// Messages.
        messages_count: u64,
        /// Connected clients.
        clients_count: u32,
        /// Consumer groups.
        consumer_groups_count: u32,
    }

    /// How often reads of a partition were served from memory.
    pub struct CacheMetrics {
        /// The stream.
        stream_id: u32,
        /// The topic.
        topic_id: u32,
        /// The partition.
        partition_id: u32,
        /// Reads from memory.
        hits: u64,
        /// Reads from disk.
        misses: u64,
        /// Share of reads from memory.
        hit_ratio: f32,
    }

    /// One node of the roster (wire 11.4). A port of 0 means that the node does not serve that transport.
    pub struct ClusterNode {
        /// Its replica id, unique in the cluster.
        replica_id: u8,
        /// Its name.
        name: String,
        /// Its address.
        ip: String,
        /// TCP port.
        tcp: u16,
        /// QUIC port.
        quic: u16,
        /// HTTP port.
        http: u16,
        /// WebSocket port.
        websocket: u16,
        /// Whether it leads the metadata group.
        role: NodeRole,
        /// How it is.
        status: NodeStatus,
    }

    /// The roster.
    pub struct ClusterMetadata {
        /// Name of the cluster.
        name: String,
        /// Its nodes.
        nodes: Vec<ClusterNode> = counted,
    }

    /// One option (wire 11.5).
    pub struct OptionDescription {
        /// The key.
        key: Name,
        /// Kind of the canonical value.
        kind: u8,
        /// Bit 0 updatable, 1 resettable, 2 secret, 3 read-only, 4 critical.
        flags: u8,
        /// The default in that kind's encoding; empty when there is none.
        default: Bytes,
        /// A sentence for people.
        description: String,
    }

    /// The options of a scope.
    pub struct OptionDescriptions {
        /// In catalogue order.
        options: Vec<OptionDescription> = counted,
    }

    /// A connected client (wire 11.7).
    pub struct ClientSummary {
        /// The server's number of the connection.
        client_id: u32,
        /// Its user; 2^32-1 before login.
        user_id: u32,
        /// 1 TCP, 2 QUIC, 3 HTTP, 4 WebSocket.
        transport: u8,
        /// Where it connects from.
        address: String,
        /// Groups it is a member of.
        groups_count: u32,
    }

    /// A group a client is a member of.
    pub struct ClientGroup {
        /// The stream.
        stream_id: u32,
        /// The topic.
        topic_id: u32,
        /// The group.
        group_id: u32,
    }

    /// All connected clients.
    pub struct Clients {
        /// In connection order.
        clients: Vec<ClientSummary> = to_end,
    }
}

/// User of a client that has not signed in.
pub const NO_USER: u32 = u32::MAX;

impl Field for Bytes {
    fn write(&self, out: &mut BytesMut) {
        out.put_u32_le(self.len() as u32);
        out.put_slice(self);
    }

    fn read(reader: &mut Reader<'_>, field: &'static str) -> Result<Self, DecodeError> {
        let length = reader.u32(field)? as usize;
        reader.bytes(field, length).map(Self::copy_from_slice)
    }
}

byte_enum! {
    /// What a node is in the metadata group.
    NodeRole "node role" "0 (leader) or 1 (follower)" {
        /// Leads it.
        0 Leader "leader",
        /// Follows.
        1 Follower "follower",
    }
}

byte_enum! {
    /// How a node is.
    NodeStatus "node status" "0 healthy, 1 starting, 2 stopping, 3 unreachable or 4 maintenance" {
        /// Serving.
        0 Healthy "healthy",
        /// Starting.
        1 Starting "starting",
        /// Stopping.
        2 Stopping "stopping",
        /// Not heard from.
        3 Unreachable "unreachable",
        /// Under maintenance.
        4 Maintenance "maintenance",
    }
}

/// Statistics of a node (wire 11.2).
#[derive(Debug, Clone, PartialEq)]
pub struct Stats {
    /// The numbers that come first.
    pub numbers: StatsNumbers,
    /// Host name.
    pub hostname: String,
    /// Operating system.
    pub os_name: String,
    /// Version of the operating system.
    pub os_version: String,
    /// Version of the kernel.
    pub kernel_version: String,
    /// Version of the server.
    pub iggy_server_version: String,
    /// Version of the server, packed; 0 is none.
    pub iggy_server_semver: u32,
    /// Cache use by partition.
    pub cache_metrics: Vec<CacheMetrics>,
    /// Threads of the process.
    pub threads_count: u32,
    /// Free bytes of the disk.
    pub free_disk_space: u64,
    /// Bytes of the disk.
    pub total_disk_space: u64,
    /// Open files.
    pub open_files_count: u64,
    /// Most open files.
    pub open_files_limit: u64,
}

impl Encode for Stats {
    fn encode(&self, out: &mut BytesMut) {
        self.numbers.encode(out);
        let names = [
            &self.hostname,
            &self.os_name,
            &self.os_version,
            &self.kernel_version,
            &self.iggy_server_version,
        ];
        for name in names {
            name.write(out);
        }
        out.put_u32_le(self.iggy_server_semver);
        out.put_u32_le(self.cache_metrics.len() as u32);
        self.cache_metrics.iter().for_each(|metrics| metrics.encode(out));
        out.put_u32_le(self.threads_count);
        out.put_u64_le(self.free_disk_space);
        out.put_u64_le(self.total_disk_space);
        out.put_u64_le(self.open_files_count);
        out.put_u64_le(self.open_files_limit);
    }
}

const CACHE_METRICS_BYTES: usize = 32;

impl<'a> Decode<'a> for Stats {
    /// The two numbers of open files may be absent together.
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let numbers = StatsNumbers::decode(reader)?;
        let mut name = |field| reader.str32(field).map(str::to_owned);
        let (hostname, os_name, os_version) = (name("hostname")?, name("os_name")?, name("os_version")?);
        let (kernel_version, iggy_server_version) = (name("kernel_version")?, name("iggy_server_version")?);
        let iggy_server_semver = reader.u32("iggy_server_semver")?;
        let count = reader.count("cache_count", CACHE_METRICS_BYTES)?;
        let cache_metrics = (0..count)
            .map(|_| CacheMetrics::decode(reader))
            .collect::<Result<_, _>>()?;
        let threads_count = reader.u32("threads_count")?;
        let free_disk_space = reader.u64("free_disk_space")?;
        let total_disk_space = reader.u64("total_disk_space")?;
        let (open_files_count, open_files_limit) = match reader.remaining() {
            0 => (0, 0),
            _ => (reader.u64("open_files_count")?, reader.u64("open_files_limit")?),
        };
        Ok(Self {
            numbers,
            hostname,
            os_name,
            os_version,
            kernel_version,
            iggy_server_version,
            iggy_server_semver,
            cache_metrics,
            threads_count,
            free_disk_space,
            total_disk_space,
            open_files_count,
            open_files_limit,
        })
    }
}

/// A connected client and its groups.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientDetails {
    /// The client.
    pub client: ClientSummary,
    /// As many groups as the client says.
    pub groups: Vec<ClientGroup>,
}

impl Encode for ClientDetails {
    fn encode(&self, out: &mut BytesMut) {
        debug_assert_eq!(self.client.groups_count as usize, self.groups.len());
        self.client.encode(out);
        self.groups.iter().for_each(|group| group.encode(out));
    }
}

impl<'a> Decode<'a> for ClientDetails {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let client = ClientSummary::decode(reader)?;
        let groups = (0..client.groups_count)
            .map(|_| ClientGroup::decode(reader))
            .collect::<Result<_, _>>()?;
        Ok(Self { client, groups })
    }
}
