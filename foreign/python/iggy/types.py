"""What the server answers, as immutable records. Times are timezone-aware, sizes are bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from iggy._native import HeaderValue

Id = int | str
"""A stream, topic, group or user: its number, or its name."""

Header = HeaderValue | bytes | str | bool | int | float
"""A value of a header: a bare one has the kind string, raw, bool, int64 or float64."""

Json = Any


def moment(micros: int) -> datetime:
    """Microseconds since the Unix epoch as a time."""
    return datetime.fromtimestamp(micros / 1_000_000, UTC)


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream."""

    id: int
    name: str
    created_at: datetime
    size_bytes: int
    messages_count: int
    topics_count: int
    options: Mapping[str, str]
    derived_options: Mapping[str, str]

    @classmethod
    def _of(cls, given: Json) -> Stream:
        return cls(**_stream(given))


def _stream(given: Json) -> dict[str, Any]:
    return {
        "id": given["id"],
        "name": given["name"],
        "created_at": moment(given["created_at"]),
        "size_bytes": given["size_bytes"],
        "messages_count": given["messages_count"],
        "topics_count": given["topics_count"],
        "options": given["options"],
        "derived_options": given["derived_options"],
    }


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic."""

    id: int
    name: str
    created_at: datetime
    size_bytes: int
    messages_count: int
    partitions_count: int
    options: Mapping[str, str]
    derived_options: Mapping[str, str]

    @classmethod
    def _of(cls, given: Json) -> Topic:
        return cls(**_topic(given))


def _topic(given: Json) -> dict[str, Any]:
    return {
        "id": given["id"],
        "name": given["name"],
        "created_at": moment(given["created_at"]),
        "size_bytes": given["size_bytes"],
        "messages_count": given["messages_count"],
        "partitions_count": given["partitions_count"],
        "options": given["options"],
        "derived_options": given["derived_options"],
    }


@dataclass(frozen=True, slots=True)
class StreamDetails(Stream):
    """A stream and its topics."""

    topics: tuple[Topic, ...]

    @classmethod
    def _of(cls, given: Json) -> StreamDetails:
        return cls(**_stream(given), topics=tuple(Topic._of(topic) for topic in given["topics"]))


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition of a topic."""

    id: int
    created_at: datetime
    segments_count: int
    current_offset: int
    size_bytes: int
    messages_count: int
    incarnation: int
    members: tuple[int, ...]
    in_sync: tuple[int, ...]

    @classmethod
    def _of(cls, given: Json) -> Partition:
        return cls(
            id=given["id"],
            created_at=moment(given["created_at"]),
            segments_count=given["segments_count"],
            current_offset=given["current_offset"],
            size_bytes=given["size_bytes"],
            messages_count=given["messages_count"],
            incarnation=given["incarnation"],
            members=tuple(given["members"]),
            in_sync=tuple(given["in_sync"]),
        )


@dataclass(frozen=True, slots=True)
class TopicDetails(Topic):
    """A topic and its partitions."""

    partitions: tuple[Partition, ...]

    @classmethod
    def _of(cls, given: Json) -> TopicDetails:
        return cls(**_topic(given), partitions=tuple(Partition._of(each) for each in given["partitions"]))


@dataclass(frozen=True, slots=True)
class ConsumerGroup:
    """A consumer group."""

    id: int
    name: str
    partitions_count: int
    members_count: int

    @classmethod
    def _of(cls, given: Json) -> ConsumerGroup:
        return cls(given["id"], given["name"], given["partitions_count"], given["members_count"])


@dataclass(frozen=True, slots=True)
class ConsumerGroupMember:
    """A member and the partitions it owns."""

    id: int
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ConsumerGroupDetails(ConsumerGroup):
    """A consumer group and its members."""

    members: tuple[ConsumerGroupMember, ...]

    @classmethod
    def _of(cls, given: Json) -> ConsumerGroupDetails:
        members = tuple(ConsumerGroupMember(each["id"], tuple(each["partitions"])) for each in given["members"])
        return cls(given["id"], given["name"], given["partitions_count"], given["members_count"], members)


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a member owns since a rebalance."""

    generation: int
    partitions: tuple[int, ...]

    @classmethod
    def _of(cls, given: Json) -> Assignment:
        return cls(given["generation"], tuple(given["partitions"]))


@dataclass(frozen=True, slots=True)
class ConsumerOffset:
    """How far a consumer stored that it read."""

    partition_id: int
    current_offset: int
    stored_offset: int

    @classmethod
    def _of(cls, given: Json) -> ConsumerOffset:
        return cls(given["partition_id"], given["current_offset"], given["stored_offset"])


@dataclass(frozen=True, slots=True)
class SendConfirmation:
    """Where sent messages are."""

    stream_id: int
    topic_id: int
    partition_id: int
    base_offset: int

    @classmethod
    def _of(cls, given: Json) -> SendConfirmation:
        return cls(given["stream_id"], given["topic_id"], given["partition_id"], given["base_offset"])


GlobalPermission = Literal[
    "manage_servers",
    "read_servers",
    "manage_users",
    "read_users",
    "manage_streams",
    "read_streams",
    "manage_topics",
    "read_topics",
    "poll_messages",
    "send_messages",
]
StreamPermission = Literal[
    "manage_stream", "read_stream", "manage_topics", "read_topics", "poll_messages", "send_messages"
]
TopicPermission = Literal["manage_topic", "read_topic", "poll_messages", "send_messages"]


@dataclass(frozen=True, slots=True)
class StreamPermissions:
    """What a user may do with one stream, and with topics of it by their number."""

    granted: frozenset[StreamPermission] = frozenset()
    topics: Mapping[int, frozenset[TopicPermission]] | None = None


@dataclass(frozen=True, slots=True)
class Permissions:
    """What a user may do everywhere, and with streams by their number."""

    granted: frozenset[GlobalPermission] = frozenset()
    streams: Mapping[int, StreamPermissions] | None = None

    @classmethod
    def _of(cls, given: Json) -> Permissions:
        streams = {
            int(id): StreamPermissions(
                frozenset(stream["granted"]),
                {int(topic): frozenset(granted) for topic, granted in stream["topics"].items()},
            )
            for id, stream in given["streams"].items()
        }
        return cls(frozenset(given["global"]), streams)

    def _json(self) -> Json:
        return {
            "global": sorted(self.granted),
            "streams": {
                str(id): {
                    "granted": sorted(stream.granted),
                    "topics": {str(topic): sorted(granted) for topic, granted in (stream.topics or {}).items()},
                }
                for id, stream in (self.streams or {}).items()
            },
        }


UserStatus = Literal["active", "inactive"]


@dataclass(frozen=True, slots=True)
class User:
    """A user."""

    id: int
    username: str
    status: UserStatus
    created_at: datetime

    @classmethod
    def _of(cls, given: Json) -> User:
        return cls(given["id"], given["username"], given["status"], moment(given["created_at"]))


@dataclass(frozen=True, slots=True)
class UserDetails(User):
    """A user and what it may do; ``None`` when nothing was said about it."""

    permissions: Permissions | None

    @classmethod
    def _of(cls, given: Json) -> UserDetails:
        permissions = given["permissions"]
        return cls(
            given["id"],
            given["username"],
            given["status"],
            moment(given["created_at"]),
            None if permissions is None else Permissions._of(permissions),
        )


@dataclass(frozen=True, slots=True)
class PersonalAccessToken:
    """A token, without its text."""

    name: str
    expiry_at: datetime | None

    @classmethod
    def _of(cls, given: Json) -> PersonalAccessToken:
        expiry = given["expiry_at"]
        return cls(given["name"], None if expiry is None else moment(expiry))


@dataclass(frozen=True, slots=True)
class Identity:
    """Who is signed in."""

    user_id: int
    session: int

    @classmethod
    def _of(cls, given: Json) -> Identity:
        return cls(given["user_id"], given["session"])


@dataclass(frozen=True, slots=True)
class ConnectedClient:
    """A connection to the server; ``user_id`` is ``None`` before login."""

    client_id: int
    user_id: int | None
    transport: str
    address: str
    consumer_groups_count: int

    @classmethod
    def _of(cls, given: Json) -> ConnectedClient:
        return cls(
            given["client_id"],
            given["user_id"],
            given["transport"],
            given["address"],
            given["consumer_groups_count"],
        )


@dataclass(frozen=True, slots=True)
class ClientGroup:
    """A group a connection is a member of."""

    stream_id: int
    topic_id: int
    group_id: int


@dataclass(frozen=True, slots=True)
class ConnectedClientDetails(ConnectedClient):
    """A connection and its groups."""

    consumer_groups: tuple[ClientGroup, ...]

    @classmethod
    def _of(cls, given: Json) -> ConnectedClientDetails:
        groups = tuple(
            ClientGroup(each["stream_id"], each["topic_id"], each["group_id"]) for each in given["consumer_groups"]
        )
        return cls(
            given["client_id"],
            given["user_id"],
            given["transport"],
            given["address"],
            given["consumer_groups_count"],
            groups,
        )


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the cluster. The port of a transport it does not serve is ``None``."""

    replica_id: int
    name: str
    address: str
    tcp: int | None
    quic: int | None
    http: int | None
    websocket: int | None
    role: str
    status: str


@dataclass(frozen=True, slots=True)
class Cluster:
    """The nodes."""

    name: str
    nodes: tuple[Node, ...]

    @classmethod
    def _of(cls, given: Json) -> Cluster:
        return cls(given["name"], tuple(Node(**node) for node in given["nodes"]))


@dataclass(frozen=True, slots=True)
class ConnectionInfo:
    """The transport, and the node that is talked to."""

    protocol: str
    server_address: str


@dataclass(frozen=True, slots=True)
class OptionDescription:
    """An option of a kind of resource."""

    key: str
    kind: str | None
    default: str | None
    updatable: bool
    resettable: bool
    secret: bool
    read_only: bool
    critical: bool
    description: str


@dataclass(frozen=True, slots=True)
class CacheMetrics:
    """How often reads of a partition were served from memory."""

    stream_id: int
    topic_id: int
    partition_id: int
    hits: int
    misses: int
    hit_ratio: float


@dataclass(frozen=True, slots=True)
class Stats:
    """What a node counts about itself. Times are microseconds, processor use is percent of one core."""

    process_id: int
    cpu_usage: float
    total_cpu_usage: float
    memory_usage: int
    total_memory: int
    available_memory: int
    run_time: int
    start_time: int
    read_bytes: int
    written_bytes: int
    messages_size_bytes: int
    streams_count: int
    topics_count: int
    partitions_count: int
    segments_count: int
    messages_count: int
    clients_count: int
    consumer_groups_count: int
    hostname: str
    os_name: str
    os_version: str
    kernel_version: str
    iggy_server_version: str
    threads_count: int
    free_disk_space: int
    total_disk_space: int
    open_files_count: int
    open_files_limit: int
    cache: tuple[CacheMetrics, ...]

    @classmethod
    def _of(cls, given: Json) -> Stats:
        cache = tuple(CacheMetrics(**each) for each in given["cache"])
        return cls(**{**given, "cache": cache})


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a client, a reader or a consumer; which members it has depends on its name."""

    name: str
    members: Mapping[str, Any]

    @classmethod
    def _of(cls, given: Json) -> Event:
        return cls(given.pop("event"), given)
