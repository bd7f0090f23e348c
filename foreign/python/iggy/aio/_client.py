"""The client."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from types import TracebackType
from typing import Any, Literal, Self

from iggy import _native
from iggy._arguments import (
    Option,
    Start,
    arguments,
    consumer as consumer_of,
    consumer_json,
    options as options_json,
    partitioning as partitioning_json,
    poll_options as poll_options_json,
    start as start_json,
)
from iggy._native import Checkpoint, Message, PolledMessages
from iggy.aio._loop import event_loop
from iggy.aio._producer import Producer
from iggy.aio._reading import Consumer, Events, Reader
from iggy.options import (
    Background,
    ClientOptions,
    Consumer as ConsumerId,
    Direct,
    Encryption,
    NewTopic,
    Partitioning,
    PollOptions,
    micros,
)
from iggy.types import (
    Assignment,
    Cluster,
    ConnectedClient,
    ConnectedClientDetails,
    ConnectionInfo,
    ConsumerGroup,
    ConsumerGroupDetails,
    ConsumerOffset,
    Id,
    Identity,
    OptionDescription,
    Permissions,
    PersonalAccessToken,
    SendConfirmation,
    Stats,
    Stream,
    StreamDetails,
    Topic,
    TopicDetails,
    User,
    UserDetails,
    UserStatus,
)

Partitioner = Callable[[str, str, list[Message]], int]
"""Chooses the partition of a send: gets stream, topic and messages. Called on a thread of the client."""


class Client:
    """A client of the server.

    Args:
        connection_string: ``iggy://user:password@host:port?key=value``, or with a token instead of user and password.
        options: Settings; each overrides what the connection string says.
        partitioner: Chooses the partition of every send.

    Raises:
        InvalidInputError: The connection string or a setting is wrong; says which part and what is allowed.

    It is a context manager that connects and shuts down. One client serves any number of tasks and threads; after a fork
    the child must make its own.
    """

    def __init__(
        self,
        connection_string: str | None = None,
        *,
        options: ClientOptions | None = None,
        partitioner: Partitioner | None = None,
    ) -> None:
        settings = (options or ClientOptions())._json()
        if connection_string is not None:
            settings["connection_string"] = connection_string
        self._native = _native.Client(json.dumps(settings), partitioner)

    async def _invoke(self, operation: str, /, **given: Any) -> Any:
        answer: str = await self._native.invoke(event_loop(), operation, arguments(given))
        return json.loads(answer)

    # The client itself.

    async def connect(self) -> None:
        """Connects, and signs in whoever is configured. Returns at once when that is done already."""
        await self._invoke("connect")

    async def disconnect(self) -> None:
        """Closes every connection; the server keeps the session until it expires."""
        await self._invoke("disconnect")

    async def shutdown(self) -> None:
        """Closes the client for good. May be called again."""
        await self._invoke("shutdown")

    async def get_connection_info(self) -> ConnectionInfo:
        """The transport, and the node that is talked to."""
        return ConnectionInfo(**await self._invoke("get_connection_info"))

    async def heartbeat_interval(self) -> timedelta:
        """Time between two pings of a link."""
        return timedelta(microseconds=await self._invoke("heartbeat_interval"))

    async def uncertain_operations(self) -> list[int]:
        """The operations whose outcome is unknown, ascending."""
        found: list[int] = await self._invoke("uncertain_operations")
        return found

    async def resolve_operation(self, operation: int, deadline: timedelta) -> bool:
        """Finds out whether a write of unknown outcome was applied. Its lane is free afterwards.

        Raises:
            UncertainError: The deadline passed first, or it can no longer be known.
        """
        found = await self._invoke("resolve_operation", operation=operation, deadline=deadline)
        return bool(found["outcome"] == "applied")

    async def abandon_operation(self, operation: int) -> None:
        """Gives up on a write of unknown outcome and frees its lane."""
        await self._invoke("abandon_operation", operation=operation)

    def events(self) -> Events:
        """Subscribes to what happens to the client: connected, disconnected, signed_in, signed_out, shutdown."""
        return Events(self._native.subscribe_events())

    # Signing in.

    async def login_user(self, username: str, password: str) -> Identity:
        """Signs in, connecting if need be. A client that is signed in logs out first."""
        return Identity._of(await self._invoke("login_user", username=username, password=password))

    async def login_with_personal_access_token(self, token: str) -> Identity:
        """Signs in by token."""
        return Identity._of(await self._invoke("login_with_personal_access_token", token=token))

    async def logout_user(self) -> None:
        """Signs out: the session ends in the whole cluster and its group memberships with it."""
        await self._invoke("logout_user")

    async def user_id(self) -> int | None:
        """The user this client is signed in as."""
        found: int | None = await self._invoke("user_id")
        return found

    # The server.

    async def ping(self) -> None:
        """Asks the server for a sign of life."""
        await self._invoke("ping")

    async def get_stats(self) -> Stats:
        """Statistics of the node that answers."""
        return Stats._of(await self._invoke("get_stats"))

    async def get_me(self) -> ConnectedClientDetails:
        """This connection as the server sees it."""
        return ConnectedClientDetails._of(await self._invoke("get_me"))

    async def get_client(self, client_id: int) -> ConnectedClientDetails | None:
        """A connection."""
        found = await self._invoke("get_client", client_id=client_id)
        return None if found is None else ConnectedClientDetails._of(found)

    async def get_clients(self) -> list[ConnectedClient]:
        """All connections."""
        return [ConnectedClient._of(each) for each in await self._invoke("get_clients")]

    async def get_cluster_metadata(self) -> Cluster:
        """The nodes of the cluster."""
        return Cluster._of(await self._invoke("get_cluster_metadata"))

    async def describe_options(self, scope: Literal["stream", "topic", "user"]) -> list[OptionDescription]:
        """The options of a kind of resource."""
        return [OptionDescription(**each) for each in await self._invoke("describe_options", scope=scope)]

    async def snapshot(self, types: Iterable[str] = (), compression: str | None = None) -> bytes:
        """A diagnostic snapshot as a zip archive: everything unless ``types`` says what."""
        found: str = await self._invoke("snapshot", types=list(types), compression=compression)
        return base64.b64decode(found)

    async def get_metadata_changes(
        self,
        start: str = "earliest",
        *,
        token: str | None = None,
        since: int | None = None,
        until: int | None = None,
        limit: int | None = None,
        groups: Sequence[int] = (),
    ) -> dict[str, Any]:
        """A page of metadata changes: from ``"earliest"``, ``"latest"``, the ``next`` of a page, or what exists now
        (``"current"``, with the ``token`` of a page to go on)."""
        found: dict[str, Any] = await self._invoke(
            "get_metadata_changes", start=start, token=token, since=since, until=until, limit=limit, groups=list(groups)
        )
        return found

    async def send_binary_request(
        self, code: int, payload: bytes = b"", *, replica_id: int | None = None, deadline: timedelta | None = None
    ) -> bytes:
        """A raw request by its command code: routed and retried like a typed one, or to one node, whose refusal is the
        answer."""
        limit = None if deadline is None else micros(deadline)
        answer: bytes = await self._native.send_binary_request(event_loop(), code, payload, replica_id, limit)
        return answer

    # Streams.

    async def get_stream(self, stream: Id) -> StreamDetails | None:
        """A stream and its topics."""
        found = await self._invoke("get_stream", stream=stream)
        return None if found is None else StreamDetails._of(found)

    async def get_streams(self) -> list[Stream]:
        """All streams."""
        return [Stream._of(each) for each in await self._invoke("get_streams")]

    async def create_stream(
        self, name: str, *, encryption_key: bytes | None = None, options: Mapping[str, Option] | None = None
    ) -> StreamDetails:
        """Creates a stream; with a key of 32 bytes of its own, messages at rest are encrypted with it."""
        key = None if encryption_key is None else base64.b64encode(encryption_key).decode()
        created = await self._invoke("create_stream", name=name, encryption_key=key, options=options_json(options))
        return StreamDetails._of(created)

    async def update_stream(
        self,
        stream: Id,
        *,
        name: str | None = None,
        options: Mapping[str, Option] | None = None,
        reset: Iterable[str] = (),
    ) -> None:
        """Changes settings of a stream, or resets them."""
        changed = options_json(options) | ({} if name is None else {"name": name})
        await self._invoke("update_stream", stream=stream, options=changed, reset=list(reset))

    async def delete_stream(self, stream: Id) -> None:
        """Deletes a stream with all it holds."""
        await self._invoke("delete_stream", stream=stream)

    # Topics, partitions and segments.

    async def get_topic(self, stream: Id, topic: Id) -> TopicDetails | None:
        """A topic and its partitions."""
        found = await self._invoke("get_topic", stream=stream, topic=topic)
        return None if found is None else TopicDetails._of(found)

    async def get_topics(self, stream: Id) -> list[Topic]:
        """The topics of a stream."""
        return [Topic._of(each) for each in await self._invoke("get_topics", stream=stream)]

    async def create_topic(
        self,
        stream: Id,
        name: str,
        *,
        partitions_count: int | None = None,
        options: Mapping[str, Option] | None = None,
    ) -> TopicDetails:
        """Creates a topic: by default of one partition, with the settings of the server."""
        created = await self._invoke(
            "create_topic",
            stream=stream,
            name=name,
            partitions_count=partitions_count,
            options=options_json(options),
        )
        return TopicDetails._of(created)

    async def update_topic(
        self,
        stream: Id,
        topic: Id,
        *,
        name: str | None = None,
        options: Mapping[str, Option] | None = None,
        reset: Iterable[str] = (),
    ) -> None:
        """Changes settings of a topic, or resets them."""
        changed = options_json(options) | ({} if name is None else {"name": name})
        await self._invoke("update_topic", stream=stream, topic=topic, options=changed, reset=list(reset))

    async def delete_topic(self, stream: Id, topic: Id) -> None:
        """Deletes a topic with all it holds."""
        await self._invoke("delete_topic", stream=stream, topic=topic)

    async def create_partitions(self, stream: Id, topic: Id, count: int) -> None:
        """Adds partitions."""
        await self._invoke("create_partitions", stream=stream, topic=topic, count=count)

    async def delete_partitions(self, stream: Id, topic: Id, count: int) -> None:
        """Removes the last partitions with all they hold."""
        await self._invoke("delete_partitions", stream=stream, topic=topic, count=count)

    async def delete_segments(self, stream: Id, topic: Id, partition_id: int, count: int) -> None:
        """Deletes the oldest segments of a partition, never the one in use."""
        await self._invoke("delete_segments", stream=stream, topic=topic, partition_id=partition_id, count=count)

    # Consumer groups.

    async def get_consumer_group(self, stream: Id, topic: Id, group: Id) -> ConsumerGroupDetails | None:
        """A group and its members."""
        found = await self._invoke("get_consumer_group", stream=stream, topic=topic, group=group)
        return None if found is None else ConsumerGroupDetails._of(found)

    async def get_consumer_groups(self, stream: Id, topic: Id) -> list[ConsumerGroup]:
        """The groups of a topic."""
        found = await self._invoke("get_consumer_groups", stream=stream, topic=topic)
        return [ConsumerGroup._of(each) for each in found]

    async def create_consumer_group(self, stream: Id, topic: Id, name: str) -> ConsumerGroupDetails:
        """Creates a group."""
        created = await self._invoke("create_consumer_group", stream=stream, topic=topic, name=name)
        return ConsumerGroupDetails._of(created)

    async def delete_consumer_group(self, stream: Id, topic: Id, group: Id) -> None:
        """Deletes a group with its stored offsets."""
        await self._invoke("delete_consumer_group", stream=stream, topic=topic, group=group)

    async def join_consumer_group(self, stream: Id, topic: Id, group: Id) -> None:
        """Makes this client a member. A :class:`Consumer` does that by itself."""
        await self._invoke("join_consumer_group", stream=stream, topic=topic, group=group)

    async def leave_consumer_group(self, stream: Id, topic: Id, group: Id) -> None:
        """Ends the membership of this client."""
        await self._invoke("leave_consumer_group", stream=stream, topic=topic, group=group)

    async def sync_consumer_group(self, stream: Id, topic: Id, group: Id) -> Assignment | None:
        """What this client owns now; ``None`` when it is no member."""
        found = await self._invoke("sync_consumer_group", stream=stream, topic=topic, group=group)
        return None if found is None else Assignment._of(found)

    # Stored offsets.

    async def get_consumer_offset(
        self, consumer: ConsumerId | Id, stream: Id, topic: Id, partition_id: int
    ) -> ConsumerOffset | None:
        """The stored offset of a consumer; ``None`` when nothing is stored."""
        found = await self._invoke(
            "get_consumer_offset",
            consumer=consumer_json(consumer),
            stream=stream,
            topic=topic,
            partition_id=partition_id,
        )
        return None if found is None else ConsumerOffset._of(found)

    async def store_consumer_offset(
        self, consumer: ConsumerId | Id, stream: Id, topic: Id, partition_id: int, offset: int
    ) -> None:
        """Stores an offset: that of the last message that was processed."""
        await self._invoke(
            "store_consumer_offset",
            consumer=consumer_json(consumer),
            stream=stream,
            topic=topic,
            partition_id=partition_id,
            offset=offset,
        )

    async def delete_consumer_offset(
        self, consumer: ConsumerId | Id, stream: Id, topic: Id, partition_id: int
    ) -> None:
        """Forgets a stored offset."""
        await self._invoke(
            "delete_consumer_offset",
            consumer=consumer_json(consumer),
            stream=stream,
            topic=topic,
            partition_id=partition_id,
        )

    async def store_consumer_position(
        self, consumer: ConsumerId | Id, stream: Id, topic: Id, checkpoint: Checkpoint
    ) -> None:
        """Stores the position of messages that were read. One of an older history is refused."""
        await self._native.store_consumer_position(event_loop(), consumer_of(consumer), stream, topic, checkpoint)

    async def delete_consumer_position(
        self, consumer: ConsumerId | Id, stream: Id, topic: Id, checkpoint: Checkpoint
    ) -> None:
        """Forgets the stored offset of the partition and history of a position."""
        await self._native.delete_consumer_position(event_loop(), consumer_of(consumer), stream, topic, checkpoint)

    # Messages.

    async def send_messages(
        self, stream: Id, topic: Id, partitioning: Partitioning, messages: Iterable[Message | str | bytes]
    ) -> list[SendConfirmation]:
        """Sends one batch and says where it is.

        Raises:
            UncertainError: The messages may or may not be stored: resolve or abandon ``operation``.
        """
        batch = [each if isinstance(each, Message) else Message(each) for each in messages]
        how = partitioning_json(partitioning)
        found: str = await self._native.send_messages(event_loop(), stream, topic, how, batch)
        return [SendConfirmation._of(each) for each in json.loads(found)]

    async def next_producer_id(self) -> int:
        """An id for batches of :meth:`send_producer_messages`."""
        found: int = await self._invoke("next_producer_id")
        return found

    async def send_producer_messages(
        self,
        stream: Id,
        topic: Id,
        partition_id: int,
        messages: Iterable[Message | str | bytes],
        *,
        producer_id: int,
        epoch: int,
        base_sequence: int,
    ) -> list[SendConfirmation]:
        """Sends a batch of an idempotent producer: the partition writes it once, however often it is sent."""
        batch = [each if isinstance(each, Message) else Message(each) for each in messages]
        section = (producer_id, epoch, base_sequence)
        found: str = await self._native.send_producer_messages(
            event_loop(), stream, topic, partition_id, section, batch
        )
        return [SendConfirmation._of(each) for each in json.loads(found)]

    async def poll_messages(
        self,
        stream: Id,
        topic: Id,
        partition_id: int,
        consumer: ConsumerId | Id,
        polling_strategy: Start,
        options: PollOptions | None = None,
    ) -> PolledMessages:
        """Reads messages of one partition, waiting for them if ``options`` say so.

        Giving the call up ends the read at the server. With a commit on read it may have stored its offset all the same.
        """
        polled: PolledMessages = await self._native.poll_messages(
            event_loop(),
            stream,
            topic,
            partition_id,
            consumer_of(consumer),
            start_json(polling_strategy),
            poll_options_json(options),
        )
        return polled

    def producer(
        self,
        stream: Id,
        topic: Id,
        *,
        partitioning: Partitioning | None = None,
        partitioner: Partitioner | None = None,
        create_stream: bool | None = None,
        create_topic: bool | NewTopic | None = None,
        idempotent: bool | None = None,
        direct: Direct | None = None,
        background: Background | None = None,
        on_error: Callable[[Exception], None] | None = None,
        encryption: Encryption | None = None,
        without_encryption: bool | None = None,
    ) -> Producer:
        """A producer of a topic; it starts with ``init`` or as a context manager.

        Args:
            partitioning: How sends find their partition. Default balanced.
            partitioner: Chooses the partition of each send instead.
            create_stream: Whether a missing stream is created. Default true.
            create_topic: Whether, or how, a missing topic is created. Default with one partition.
            idempotent: Whether the partition writes each batch once, however often it is sent. Default false.
            direct: Sends from the calling task; the default.
            background: Sends in the background instead.
            on_error: Gets the exception of each background send that failed, on a thread of the client.
            encryption: Another encryption than the client's.
            without_encryption: No encryption, though the client has one.
        """
        settings = arguments(
            {
                "partitioning": partitioning,
                "create_stream": create_stream,
                "create_topic": create_topic,
                "idempotent": idempotent,
                "direct": direct,
                "background": background,
                "encryption": encryption,
                "without_encryption": without_encryption,
            }
        )
        return Producer(self._native.producer(stream, topic, settings, partitioner, on_error), stream, topic)

    def consumer(
        self,
        name: Id,
        stream: Id,
        topic: Id,
        *,
        partitions: Iterable[int],
        start: Start | None = None,
        poll_options: PollOptions | None = None,
        prefetch_bytes: int | None = None,
        prefetch_messages: int | None = None,
        polling_retry_interval: timedelta | None = None,
        init_retries: int | None = None,
        init_retry_interval: timedelta | None = None,
        allow_replay: bool | None = None,
        offset_drain_timeout: timedelta | None = None,
        encryption: Encryption | None = None,
        without_encryption: bool | None = None,
    ) -> Consumer:
        """A consumer of named partitions; it starts with ``init`` or as a context manager.

        Args:
            partitions: What it reads.
            start: Where each partition starts. Default after the stored offset.
            poll_options: Limits and commit policy of its reads. Default a wait of 5 s and manual commits.
            prefetch_bytes: Bytes read ahead at most. Default 16 MiB.
            prefetch_messages: Messages read ahead at most. Default 16000, or the count of a read.
            polling_retry_interval: Longest pause before a refused partition is read again. Default 1 s.
            init_retries: Further tries of ``init`` when something is missing. Default none.
            init_retry_interval: Pause before each. Default 1 s.
            allow_replay: Hands messages out again that were handed out before a rebalance. Default false.
            offset_drain_timeout: How long positions may take to be stored at the end. Default 5 s.
            encryption: Another encryption than the client's.
            without_encryption: No encryption, though the client has one.
        """
        return self._consumer(
            name,
            stream,
            topic,
            False,
            partitions=tuple(partitions),
            start=start,
            poll_options=poll_options,
            prefetch_bytes=prefetch_bytes,
            prefetch_messages=prefetch_messages,
            polling_retry_interval=polling_retry_interval,
            init_retries=_retries(init_retries, init_retry_interval),
            allow_replay=allow_replay,
            offset_drain_timeout=offset_drain_timeout,
            encryption=encryption,
            without_encryption=without_encryption,
        )

    def consumer_group(
        self,
        name: Id,
        stream: Id,
        topic: Id,
        *,
        create_consumer_group: bool | None = None,
        start: Start | None = None,
        poll_options: PollOptions | None = None,
        prefetch_bytes: int | None = None,
        prefetch_messages: int | None = None,
        polling_retry_interval: timedelta | None = None,
        init_retries: int | None = None,
        init_retry_interval: timedelta | None = None,
        allow_replay: bool | None = None,
        offset_drain_timeout: timedelta | None = None,
        encryption: Encryption | None = None,
        without_encryption: bool | None = None,
    ) -> Consumer:
        """A member of a consumer group, which shares the partitions of a topic out among its members.

        Args:
            create_consumer_group: Whether a missing group is created. Default true.

        The other arguments are those of :meth:`consumer`.
        """
        return self._consumer(
            name,
            stream,
            topic,
            True,
            create_consumer_group=create_consumer_group,
            start=start,
            poll_options=poll_options,
            prefetch_bytes=prefetch_bytes,
            prefetch_messages=prefetch_messages,
            polling_retry_interval=polling_retry_interval,
            init_retries=_retries(init_retries, init_retry_interval),
            allow_replay=allow_replay,
            offset_drain_timeout=offset_drain_timeout,
            encryption=encryption,
            without_encryption=without_encryption,
        )

    def _consumer(self, name: Id, stream: Id, topic: Id, is_group: bool, **settings: Any) -> Consumer:
        native = self._native.consumer(name, stream, topic, is_group, arguments(settings))
        return Consumer(native, name, stream, topic, is_group)

    async def reader(
        self,
        stream: Id,
        topic: Id,
        consumer: ConsumerId | Id,
        *,
        partitions: Iterable[int],
        start: Start | None = None,
        options: PollOptions | None = None,
        prefetch_bytes: int | None = None,
        prefetch_messages: int | None = None,
    ) -> Reader:
        """A reader of many partitions in batches; close it, or use it as a context manager.

        Args:
            partitions: What it reads.
            start: Where each partition starts. Default after the stored offset.
            options: Limits and commit policy of its reads. Default a wait of 5 s and manual commits.
            prefetch_bytes: Bytes read ahead at most. Default 16 MiB.
            prefetch_messages: Messages read ahead at most. Default 16000, or the count of a read.
        """
        settings = arguments(
            {
                "partitions": tuple(partitions),
                "start": start,
                "options": options,
                "prefetch_bytes": prefetch_bytes,
                "prefetch_messages": prefetch_messages,
            }
        )
        made = await self._native.reader(event_loop(), stream, topic, consumer_of(consumer), settings)
        return Reader(made)

    # Users.

    async def get_user(self, user: Id) -> UserDetails | None:
        """A user and what it may do."""
        found = await self._invoke("get_user", user=user)
        return None if found is None else UserDetails._of(found)

    async def get_users(self) -> list[User]:
        """All users."""
        return [User._of(each) for each in await self._invoke("get_users")]

    async def create_user(
        self,
        username: str,
        password: str,
        *,
        status: UserStatus | None = None,
        permissions: Permissions | None = None,
        options: Mapping[str, Option] | None = None,
    ) -> UserDetails:
        """Creates a user with a name of 3..=50 and a password of 3..=100 bytes."""
        created = await self._invoke(
            "create_user",
            username=username,
            password=password,
            status=status,
            permissions=permissions,
            options=options_json(options),
        )
        return UserDetails._of(created)

    async def update_user(
        self,
        user: Id,
        *,
        username: str | None = None,
        status: UserStatus | None = None,
        options: Mapping[str, Option] | None = None,
        reset: Iterable[str] = (),
    ) -> None:
        """Changes a user."""
        await self._invoke(
            "update_user",
            user=user,
            username=username,
            status=status,
            options=options_json(options),
            reset=list(reset),
        )

    async def update_permissions(self, user: Id, permissions: Permissions | None) -> None:
        """Replaces what a user may do."""
        await self._invoke("update_permissions", user=user, permissions=permissions)

    async def change_password(self, user: Id, current: str, new: str) -> None:
        """Changes a password; sessions of the user go on."""
        await self._invoke("change_password", user=user, current=current, new=new)

    async def delete_user(self, user: Id) -> None:
        """Deletes a user; its sessions end."""
        await self._invoke("delete_user", user=user)

    # Personal access tokens.

    async def get_personal_access_tokens(self) -> list[PersonalAccessToken]:
        """The tokens of this user, without their text."""
        return [PersonalAccessToken._of(each) for each in await self._invoke("get_personal_access_tokens")]

    async def create_personal_access_token(self, name: str, expiry: timedelta | None = None) -> str:
        """Creates a token and returns its text, which is never shown again. It never expires unless told otherwise."""
        token: str = await self._invoke("create_personal_access_token", name=name, expiry=expiry)
        return token

    async def delete_personal_access_token(self, name: str) -> None:
        """Deletes a token of this user."""
        await self._invoke("delete_personal_access_token", name=name)

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.shutdown()


def _retries(count: int | None, interval: timedelta | None) -> dict[str, Any] | None:
    if count is None:
        return None
    return {"count": count} if interval is None else {"count": count, "interval": micros(interval)}
