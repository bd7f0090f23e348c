"""The node itself: its state, its changes, its restarts."""

from pytest_bdd import given, parsers, then, when

from world import World

step = parsers.re


@when("the node is pinged")
def ping(world: World) -> None:
    world.try_(world.client.ping())


@then(step(r'the client finds itself among the clients, signed in as "(?P<name>.*)"'))
def finds_itself(world: World, name: str) -> None:
    me = world.run(world.client.get_me())
    assert me.client_id in {client.client_id for client in world.run(world.client.get_clients())}
    found = world.run(world.client.get_client(me.client_id))
    user = world.run(world.client.get_user(name))
    assert found and user and me.user_id == found.user_id == user.id


@then(
    step(
        r"the statistics count (?P<streams>\d+) streams, (?P<topics>\d+) topics, (?P<partitions>\d+) partitions"
        r" and (?P<messages>\d+) messages"
    )
)
def statistics(world: World, streams: str, topics: str, partitions: str, messages: str) -> None:
    found = world.run(world.client.get_stats())
    counted = (found.streams_count, found.topics_count, found.partitions_count, found.messages_count)
    assert counted == (int(streams), int(topics), int(partitions), int(messages))


@then(step(r"the cluster has (?P<count>\d+) nodes and its leader is the node the client talks to"))
def roster(world: World, count: str) -> None:
    nodes = world.run(world.client.get_cluster_metadata()).nodes
    assert len(nodes) == int(count)
    port = int(world.node.address.rsplit(":", 1)[1])
    assert [node.tcp for node in nodes if node.role == "leader"] == [port]


@given("the changes are noted")
def note_changes(world: World) -> None:
    world.noted_changes = world.run(world.client.get_metadata_changes("latest"))["next"]


@then("the changes since then include the creation of a stream and of a topic, in that order")
def changes_since(world: World) -> None:
    page = world.run(world.client.get_metadata_changes(world.noted_changes))
    kinds = [record["kind"] for record in page["records"]]
    assert kinds.index("stream_created") < kinds.index("topic_created")


@when("a snapshot of the test entry is taken")
def snapshot(world: World) -> None:
    world.answer = world.try_(world.client.snapshot(["test"])) or b""


@then("the snapshot is a zip archive")
def is_zip(world: World) -> None:
    world.expect_no_error()
    assert world.answer.startswith(b"PK")


@when(step(r"the raw command (?P<code>\d+) is sent"))
def raw(world: World, code: str) -> None:
    world.try_(world.client.send_binary_request(int(code)))


@when("the server is restarted")
def restart(world: World) -> None:
    world.node.tell("restart")


@when("the server is killed and started again")
def kill(world: World) -> None:
    world.node.tell("kill")
    world.node.tell("start")


@when("the server is stopped")
def stop(world: World) -> None:
    world.node.tell("stop")


@when("the server is started")
def start(world: World) -> None:
    world.node.tell("start")
