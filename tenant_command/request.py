"""One request of the API in its own words, with credential, signature, factor and idempotency key done."""

from typing import Any

import click
import msgspec

from tenant_command.call import Call
from tenant_command.command import command
from tenant_command.options import KEY

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


@command("api", example="custody api PATCH /agents/buyer -f name='Buys paper'")
@click.argument("method", type=click.Choice(_METHODS, case_sensitive=False))
@click.argument("path")
@click.option("-f", "--field", "fields", multiple=True, metavar="NAME=TEXT", help="A field, as text. May be repeated.")
@click.option("-F", "--json-field", "values", multiple=True, metavar="NAME=JSON", help="A field of any kind, as JSON.")
@click.option("--input", "file", type=click.File("rb"), help="The whole body, from a file or `-`.")
@KEY
async def api(  # noqa: PLR0913 - everything that a request is
    call: Call, *, method: str, path: str, fields: tuple[str, ...], values: tuple[str, ...], file: Any, key: str | None
) -> None:
    """Send any request of the API; print its answer.

    That is the data of the answer, as JSON. Fields are the body's, and a GET's query. `{tenant}` in PATH is the id of
    the tenant.
    """
    given = body_of(fields, values)
    path = path if path.startswith("/") else f"/{path}"
    if "{tenant}" in path:
        path = path.replace("{tenant}", await call.tenant())
    if method == "GET":
        if file is not None:
            raise click.UsageError("a GET has no body: omit --input")
        call.out.data(await call.get(path, **given))
        return
    if file is not None and given:
        raise click.UsageError("--input is the whole body: omit the fields, or put them into it")
    call.out.data(await call.send_once(method, path, given if file is None else _read(file), key=key))


def body_of(fields: tuple[str, ...], values: tuple[str, ...]) -> dict[str, Any]:
    """Read `NAME=TEXT` and `NAME=JSON`; raises UsageError for what is neither."""
    found: dict[str, Any] = {}
    for one, as_json in [*((one, False) for one in fields), *((one, True) for one in values)]:
        name, equals, value = one.partition("=")
        if not name or not equals:
            raise click.UsageError(f"{one!r} is no field: write NAME=VALUE")
        if name in found:
            raise click.UsageError(f"the field {name!r} is there twice")
        try:
            found[name] = msgspec.json.decode(value) if as_json else value
        except msgspec.DecodeError:
            raise click.UsageError(f"the value of {name!r} is no JSON: text goes to -f, or into quotes") from None
    return found


def _read(file: Any) -> Any:
    try:
        return msgspec.json.decode(file.read())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise click.UsageError(f"{file.name} is no JSON") from None
