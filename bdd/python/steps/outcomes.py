"""How the last request ended."""

from pytest_bdd import parsers, then

from world import World


@then("the request succeeds")
def succeeds(world: World) -> None:
    world.expect_no_error()


@then(parsers.re(r'the request fails with "(?P<code>\w+)"'))
def fails(world: World, code: str) -> None:
    error = world.take_error()
    assert error.name == code, error
