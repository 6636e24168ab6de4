"""Secrets: what the proxy puts into requests of agents, and nobody gets back."""

from typing import Any, Final

import click

from console.wire.answers import convert
from console.wire.shapes_secrets import Secret, expiry
from tenant_command.call import Call
from tenant_command.command import command
from tenant_command.finding import find, look
from tenant_command.options import LIMIT, YES, only_given
from tenant_command.printing import Column
from tenant_command.secret_value import read_value

_PATH: Final = "/secrets"
_FROM = click.option("--from-file", "file", metavar="FILE", help="Read the value from a file; `-` is standard input.")


@click.group("secrets", no_args_is_help=True)
def secrets() -> None:
    """Store values that the proxy puts into requests.

    None is ever shown again.
    """


@command("list", group=secrets, example="custody secrets list --json")
@LIMIT
async def list_secrets(call: Call, *, limit: int | None) -> None:
    """List names and versions; no value is shown."""
    columns: dict[str, Column] = {
        "NAME": "name",
        "VERSION": "version",
        "EXPIRES": lambda one: _expiry(call, one),
        "DESCRIPTION": "description",
        "ID": "id",
    }
    nothing = "There are no secrets. Store one with `custody secrets set`."
    call.out.rows(await call.every(_PATH, most=limit), columns, nothing=nothing)


@command("set", group=secrets, example="custody secrets set openai --from-file openai.key")
@click.argument("name")
@_FROM
@click.option("--description", metavar="TEXT", help="A note of yours, on a secret that is new.")
@click.option("--expires-at", metavar="TIME", help="When routes stop using a secret that is new, with its zone.")
async def set_secret(
    call: Call, *, name: str, file: str | None, description: str | None, expires_at: str | None
) -> None:
    """Store a value under NAME, or replace it.

    The value comes from a file, from standard input, or is typed unseen; it cannot be an argument, which others on this
    machine could read. A line end behind it is cut off.
    """
    found = await look(call, _PATH, name, by="name", what="secret")
    given = only_given(description=description, expiresAt=expires_at)
    if found is not None and given:
        raise click.UsageError(f"the secret {name!r} exists and keeps its description and its end: omit both")
    value = read_value(call.out, file)
    if found is not None:
        await _rotate(call, found, value)
        return
    made = await call.send("POST", _PATH, {"name": name, "value": value, **given})
    _tell(call, made, f"Stored {made['name']}, version {made['version']}.")


@command("rotate", group=secrets, example="custody secrets rotate openai --from-file openai.key")
@click.argument("name")
@_FROM
async def rotate(call: Call, *, name: str, file: str | None) -> None:
    """Replace a value; the former one is destroyed.

    NAME is its name or id. The value comes from where `set` takes it.
    """
    found = await find(call, _PATH, name, by="name", what="secret", word="secrets")
    await _rotate(call, found, read_value(call.out, file))


@command("delete", group=secrets, example="custody secrets delete openai --yes")
@click.argument("name")
@YES
async def delete(call: Call, *, name: str, yes: bool) -> None:
    """Destroy a secret; routes that use it fail.

    NAME is its name or id.
    """
    found = await find(call, _PATH, name, by="name", what="secret", word="secrets")
    if not yes:
        routes: list[dict[str, Any]] = await call.every("/secrets/routes")
        users = sum(_uses(route, found["id"]) for route in routes)
        then = f" {users} of your routes use it and will fail." if users else ""
        call.confirm(f"Delete the secret {found['name']}?{then}", assumed=False)
    call.out.show(await call.send("DELETE", f"{_PATH}/{found['id']}"), f"Deleted {found['name']}.")


async def _rotate(call: Call, found: dict[str, Any], value: str) -> None:
    answer = await call.send("POST", f"{_PATH}/{found['id']}/rotate", {"value": value})
    _tell(call, answer, f"Stored {answer['name']}, version {answer['version']}; the former value is destroyed.")


def _tell(call: Call, answer: dict[str, Any], sentence: str) -> None:
    for warning in answer.get("warnings", []):
        call.out.warn(warning)
    call.out.show(answer, sentence)


def _uses(route: dict[str, Any], secret: str) -> bool:
    further = [one.get("secretId") for one in route.get("alsoInject", [])]
    return secret in (route.get("secretId"), *further)


def _expiry(call: Call, one: dict[str, Any]) -> str:
    found = expiry(convert(one, Secret), call.client.now())
    return found if isinstance(found, str) else found[0]
