"""Users, permissions, signing in, tokens."""

from typing import Any

import pytest
from pytest_bdd import given, parsers, then, when

import iggy
from steps.messages import next_messages, send_by
from steps.polls import PLENTY, poll_by
from values import names
from world import World

step = parsers.re
PASSWORD = "secret123"


@given("a signed-in client")
def signed_in(world: World) -> None:
    world.run(world.sign_in())


def permissions(world: World, text: str) -> iggy.Permissions:
    """Permissions in words."""
    if text == "do nothing":
        return iggy.Permissions()
    prefix = "poll messages of "
    if not text.startswith(prefix):
        granted: Any = frozenset([text.replace(" ", "_")])
        return iggy.Permissions(granted)
    stream = text.removeprefix(prefix)
    number = 1_000
    if stream != "another stream":
        found = world.run(world.client.get_stream(stream.strip('"')))
        assert found
        number = found.id
    return iggy.Permissions(streams={number: iggy.StreamPermissions(frozenset(["poll_messages"]))})


@given(step(r'the user "(?P<name>.*)" who may (?P<may>.*)'))
def a_user(world: World, name: str, may: str) -> None:
    world.run(world.client.create_user(name, PASSWORD, permissions=permissions(world, may)))


@when(step(r'the user "(?P<name>.*)" with the password "(?P<password>.*)" is created'))
def create_user(world: World, name: str, password: str) -> None:
    world.try_(world.client.create_user(name, password))


@then(step(r'the user "(?P<name>.*)" exists and is active'))
def user_is_active(world: World, name: str) -> None:
    world.expect_no_error()
    found = world.run(world.client.get_user(name))
    assert found and (found.username, found.status) == (name, "active")


@when(step(r'the user "(?P<name>.*)" is made inactive'))
def make_inactive(world: World, name: str) -> None:
    world.try_(world.client.update_user(name, status="inactive"))


@when(step(r'the user "(?P<name>[^"]*)" is deleted'))
def delete_user(world: World, name: str) -> None:
    world.try_(world.client.delete_user(name))


@then(step(r'the user "(?P<name>.*)" does not exist'))
def user_is_missing(world: World, name: str) -> None:
    world.expect_no_error()
    assert world.run(world.client.get_user(name)) is None


@when(step(r'the permissions of "(?P<name>.*)" become (?P<may>.*)'))
def change_permissions(world: World, name: str, may: str) -> None:
    world.try_(world.client.update_permissions(name, permissions(world, may)))


@when(step(r'the password of "(?P<name>.*)" is changed to "(?P<new>.*)"'))
def change_password(world: World, name: str, new: str) -> None:
    world.try_(world.client.change_password(name, PASSWORD, new))


async def try_sign_in(world: World, credentials: str) -> None:
    client = await world.connect(credentials)
    async with client:
        await client.get_me()


@then(step(r'signing in as "(?P<name>.*)" with "(?P<password>.*)" succeeds'))
def sign_in(world: World, name: str, password: str) -> None:
    world.run(try_sign_in(world, f"{name}:{password}"))


@then(step(r'signing in as "(?P<name>.*)" with "(?P<password>.*)" fails with "(?P<code>\w+)"'))
def sign_in_fails(world: World, name: str, password: str, code: str) -> None:
    world.expect_no_error()
    with pytest.raises(iggy.IggyError) as raised:
        world.run(try_sign_in(world, f"{name}:{password}"))
    assert raised.value.name == code


def client_of(world: World, name: str) -> iggy.Client:
    """The client of a user, signed in at first use."""
    if name not in world.clients:
        world.clients[name] = world.run(world.connect(f"{name}:{PASSWORD}"))
    return world.clients[name]


@given(step(r'"(?P<name>[^"]*)" is signed in'))
def user_signs_in(world: World, name: str) -> None:
    client_of(world, name)


@when(step(r'"(?P<name>[^"]*)" polls partition (?P<partition>\d+)'))
def user_polls(world: World, name: str, partition: str) -> None:
    client = client_of(world, name)
    poll_by(world, client, int(partition), "reader", iggy.PollingStrategy.first(), PLENTY)


@when(step(r'"(?P<name>[^"]*)" sends (?P<count>\d+) messages to partition (?P<partition>\d+)'))
def user_sends(world: World, name: str, count: str, partition: str) -> None:
    client = client_of(world, name)
    messages = next_messages(world, int(partition), int(count))
    world.try_(send_by(world, client, int(partition), messages))


@when(step(r'"(?P<name>[^"]*)" creates the stream "(?P<stream>.*)"'))
def user_creates(world: World, name: str, stream: str) -> None:
    world.try_(client_of(world, name).create_stream(stream))


@when(step(r'"(?P<name>[^"]*)" lists the users'))
def user_lists(world: World, name: str) -> None:
    world.try_(client_of(world, name).get_users())


@given(step(r'the token "(?P<name>[^"]*)"'))
def a_token(world: World, name: str) -> None:
    world.tokens[name] = world.run(world.client.create_personal_access_token(name))


@when(step(r'the token "(?P<name>[^"]*)" is created'))
def create_token(world: World, name: str) -> None:
    world.try_(world.client.create_personal_access_token(name))


@when(step(r'the token "(?P<name>[^"]*)" is deleted'))
def delete_token(world: World, name: str) -> None:
    world.try_(world.client.delete_personal_access_token(name))


@then(step(r"the tokens are (?P<expected>.*)"))
def tokens_are(world: World, expected: str) -> None:
    found = world.run(world.client.get_personal_access_tokens())
    assert [token.name for token in found] == names(expected)


async def try_token(world: World, token: str) -> None:
    """Signs in with a token that is held apart from the address."""
    client = iggy.Client(options=iggy.ClientOptions(server_address=world.node.address))
    try:
        await client.login_with_personal_access_token(token)
        await client.get_me()
    finally:
        await client.shutdown()


@then(step(r'signing in with the token "(?P<name>.*)" succeeds'))
def token_signs_in(world: World, name: str) -> None:
    world.run(try_token(world, world.tokens[name]))


@then(step(r'signing in with the token "(?P<name>.*)" fails with "(?P<code>\w+)"'))
def token_is_refused(world: World, name: str, code: str) -> None:
    world.expect_no_error()
    text_is_refused(world, world.tokens[name], code)


@then(step(r'signing in with the token text "(?P<text>.*)" fails with "(?P<code>\w+)"'))
def text_is_refused(world: World, text: str, code: str) -> None:
    with pytest.raises(iggy.IggyError) as raised:
        world.run(try_token(world, text))
    assert raised.value.name == code


@then(step(r'a client whose connection string holds the token "(?P<name>.*)" can ask who it is'))
def token_in_connection_string(world: World, name: str) -> None:
    world.run(try_sign_in(world, world.tokens[name]))
