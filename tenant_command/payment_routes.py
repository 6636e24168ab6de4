"""Payment routes: which requests of agents the proxy may pay for, how much, and to whom."""

from typing import Any, Final

import click

from console.wire.answers import convert
from console.wire.shapes_secrets import PaymentRoute, most_per_call, target
from tenant_command.call import Call
from tenant_command.command import command
from tenant_command.finding import find
from tenant_command.options import LIMIT, REQUESTS, YES, only_given
from tenant_command.printing import Column

_PATH: Final = "/payment-routes"
_USDC: Final = "evm:8453:0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"


@click.group("payment-routes", no_args_is_help=True)
def payment_routes() -> None:
    """Say which requests the proxy may pay for.

    It pays where a server asks for it by HTTP 402 (x402).
    """


@command("list", group=payment_routes, example="custody payment-routes list")
@LIMIT
async def list_payment_routes(call: Call, *, limit: int | None) -> None:
    """List the routes, newest first."""
    columns: dict[str, Column] = {
        "REQUESTS": lambda one: target(convert(one, PaymentRoute)),
        "AT MOST": lambda one: ", ".join(most_per_call(convert(one, PaymentRoute))),
        "PAID TO": lambda one: _payees(convert(one, PaymentRoute)),
        "PRIORITY": "priority",
        "ENABLED": "enabled",
        "ID": "id",
    }
    nothing = "There are no payment routes. Make one with `custody payment-routes add`."
    call.out.rows(await call.every(_PATH, most=limit), columns, nothing=nothing)


@command("add", group=payment_routes, example=f"custody payment-routes add api.example.com --max {_USDC}=10000")
@click.argument("host")
@click.option(
    "--max",
    "most",
    multiple=True,
    required=True,
    metavar="ASSET=AMOUNT",
    help="What one call may cost in this asset, in its smallest unit. May be repeated.",
)
@click.option("--pay-to", "payTo", multiple=True, metavar="ADDRESS", help="Who may be paid. May be repeated.")
@click.option("--any-payee", "allowUnknownPayTo", is_flag=True, default=None, help="Pay any address.")
@click.option(
    "--scheme", "schemes", multiple=True, type=click.Choice(("exact", "upto")), help="May be repeated; else `exact`."
)
@REQUESTS
async def add(call: Call, *, host: str, most: tuple[str, ...], **given: Any) -> None:
    """Let requests to HOST be paid for.

    A credential route must let them through besides. Without --pay-to and --any-payee a rule `approved-addresses` of
    the agent has to name who is paid.
    """
    body = {"hostPattern": host, "maxPerCall": _prices(most), **only_given(**given)}
    made = await call.send("POST", _PATH, body)
    call.out.show(made, f"Made the payment route {made['id']}: {target(convert(made, PaymentRoute))}.")


@command("delete", group=payment_routes, example="custody payment-routes delete 9c6a2a8e-2a1f-4b57-9d0e-6f8a3c1d2b4e")
@click.argument("route")
@YES
async def delete(call: Call, *, route: str, yes: bool) -> None:
    """Delete a payment route.

    ROUTE is its id. What it paid for stays paid.
    """
    found = await find(call, _PATH, route, by="id", what="payment route", word="payment-routes")
    what = target(convert(found, PaymentRoute))
    call.confirm(f"Delete the payment route for {what}?", assumed=yes)
    call.out.show(await call.send("DELETE", f"{_PATH}/{found['id']}"), f"Deleted the payment route for {what}.")


def _prices(said: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in said:
        asset, equals, amount = one.rpartition("=")
        if not equals or not asset or asset in found:
            raise click.UsageError(f"{one!r} is no price: write --max ASSET=AMOUNT, once for each asset")
        found[asset] = amount
    return found


def _payees(route: PaymentRoute) -> str:
    if route.allow_unknown_pay_to:
        return "anybody"
    return ", ".join(route.pay_to) or "whom a rule of the agent names"
