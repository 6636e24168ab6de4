"""Credential routes: which requests of agents get which secret, and where it goes in them."""

from typing import Any, Final

import click

from console.wire.answers import convert
from console.wire.shapes_secrets import CredentialRoute, Explanation, explanation_in_lines, injection, target
from tenant_command.call import Call
from tenant_command.command import command
from tenant_command.finding import find
from tenant_command.options import LIMIT, REQUESTS, YES, all_of, only_given
from tenant_command.printing import Column
from tenant_command.request import body_of

_PATH: Final = "/secrets/routes"
_PLACES: Final = ("header", "basic", "query", "body", "json", "text", "awsSigV4", "none")
# Where most APIs want their key; said of a route that says nothing of it.
_BEARER: Final = {"injectAs": "header", "injectKey": "Authorization", "injectFormat": "Bearer {value}"}
_FIELDS: Final = all_of(
    click.option("--as", "injectAs", type=click.Choice(_PLACES), help="Where the secret goes."),
    click.option("--key", "injectKey", metavar="NAME", help="The name of the header, parameter, field or place."),
    click.option("--format", "injectFormat", metavar="TEXT", help="The text that goes in, with `{value}` in it."),
    REQUESTS,
    click.option(
        "-F", "--json-field", "fields", multiple=True, metavar="NAME=JSON", help="Any other field. May be repeated."
    ),
)


@click.group("routes", no_args_is_help=True)
def routes() -> None:
    """Say which secret goes into which requests.

    These are the requests that agents send through the proxy.
    """


@command("list", group=routes, example="custody routes list")
@LIMIT
async def list_routes(call: Call, *, limit: int | None) -> None:
    """List the routes, newest first."""
    found = await call.every(_PATH, most=limit)
    names = {} if call.out.as_json else await _names(call)
    columns: dict[str, Column] = {
        "REQUESTS": lambda one: target(convert(one, CredentialRoute)),
        "SECRET": lambda one: names.get(one["secretId"], one["secretId"] or "-"),
        "GOES INTO": lambda one: injection(convert(one, CredentialRoute)),
        "PRIORITY": "priority",
        "ENABLED": "enabled",
        "ID": "id",
    }
    call.out.rows(found, columns, nothing="There are no routes. Make one with `custody routes add`.")


@command("add", group=routes, example="custody routes add api.openai.com --secret openai")
@click.argument("host")
@click.option("--secret", metavar="NAME", help="The secret, by its name or id.")
@_FIELDS
async def add(call: Call, *, host: str, secret: str | None, fields: tuple[str, ...], **given: Any) -> None:
    """Put a secret into requests to HOST.

    Without --as it goes into the header Authorization, as `Bearer {value}`. `--as none` only lets them through.
    """
    place = only_given(**given)
    if not {"injectAs", "injectKey", "injectFormat"} & place.keys():
        place |= _BEARER
    if secret is None and place.get("injectAs") != "none":
        raise click.UsageError("name the secret with --secret, or say --as none")
    if secret is not None:
        place["secretId"] = (await find(call, "/secrets", secret, by="name", what="secret", word="secrets"))["id"]
    made = await call.send("POST", _PATH, {"hostPattern": host, **place, **body_of((), fields)})
    call.out.show(made, f"Made the route {made['id']}: {target(convert(made, CredentialRoute))}.")


@command("add-preset", group=routes, example="custody routes add-preset openai --secret openai")
@click.argument("preset")
@click.option("--secret", metavar="NAME", help="The secret, by its name or id, unless the preset brings one.")
@click.option("--agent", "agents", multiple=True, metavar="ID", help="Only this agent's requests. May be repeated.")
async def add_preset(call: Call, *, preset: str, secret: str | None, agents: tuple[str, ...]) -> None:
    """Make a route as a preset of your tenant's configuration says."""
    body: dict[str, Any] = {"presetId": preset} | only_given(agents=agents)
    if secret is not None:
        body["secretId"] = (await find(call, "/secrets", secret, by="name", what="secret", word="secrets"))["id"]
    made = await call.send("POST", f"{_PATH}/preset", body)
    call.out.show(made, f"Made the route {made['id']}: {target(convert(made, CredentialRoute))}.")


@command("change", group=routes, example="custody routes change 9c6a2a8e-2a1f-4b57-9d0e-6f8a3c1d2b4e --disabled")
@click.argument("route")
@click.option("--host", "hostPattern", metavar="PATTERN", help="The hosts.")
@_FIELDS
async def change(call: Call, *, route: str, fields: tuple[str, ...], **given: Any) -> None:
    """Change a route; what no option names stays.

    ROUTE is its id. Its secret never changes.
    """
    body = only_given(**given) | body_of((), fields)
    if not body:
        raise click.UsageError("say what to change")
    made = await call.send("PUT", f"{_PATH}/{(await _find(call, route))['id']}", body)
    call.out.show(made, f"Changed the route {made['id']}: {target(convert(made, CredentialRoute))}.")


@command("delete", group=routes, example="custody routes delete 9c6a2a8e-2a1f-4b57-9d0e-6f8a3c1d2b4e --yes")
@click.argument("route")
@YES
async def delete(call: Call, *, route: str, yes: bool) -> None:
    """Delete a route; its secret stays. ROUTE is its id."""
    found = await _find(call, route)
    what = target(convert(found, CredentialRoute))
    call.confirm(f"Delete the route for {what}?", assumed=yes)
    call.out.show(await call.send("DELETE", f"{_PATH}/{found['id']}"), f"Deleted the route for {what}.")


@command("explain", group=routes, example="custody routes explain buyer GET https://api.openai.com/v1/models")
@click.argument("agent")
@click.argument("method")
@click.argument("address", metavar="URL")
async def explain(call: Call, *, agent: str, method: str, address: str) -> None:
    """Tell which route a request would get, and why.

    It also says why not another. Nothing is sent to URL.
    """
    answer = await call.send("POST", f"{_PATH}/explain", {"agentId": agent, "method": method, "url": address})
    if call.out.as_json:
        call.out.data(answer)
        return
    known = {one["id"]: convert(one, CredentialRoute) for one in await call.every(_PATH)}
    lines = explanation_in_lines(convert(answer, Explanation), known, await _names(call))
    call.out.show(answer, *lines.split("\n"))


async def _names(call: Call) -> dict[str, str]:
    return {one["id"]: one["name"] for one in await call.every("/secrets")}


async def _find(call: Call, route: str) -> dict[str, Any]:
    return await find(call, _PATH, route, by="id", what="credential route", word="routes")
