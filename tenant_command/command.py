"""Declaring commands: what every one of them takes, and what runs it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import click

from tenant_command.call import Call, Given

Handler = Callable[..., Awaitable[None]]
_COMMON = (
    click.option("--profile", metavar="NAME", help="A profile of console.toml in your configuration folder."),
    click.option("--url", metavar="URL", help="The service, instead of the profile's or SERVICE_URL."),
    click.option("--tenant", metavar="ID", help="The tenant, instead of the profile's."),
    click.option("--json", "as_json", is_flag=True, help="Print what the service said, as JSON."),
)


def command(
    name: str, *, example: str, group: click.Group | None = None, new_profile: bool = False
) -> Callable[[Handler], click.Command]:
    """Make a command of a handler; its docstring is the help, and its first argument is the call.

    `new_profile`: a profile that is named need not be there yet, if the address is.
    """

    def declare(handler: Handler) -> click.Command:
        def run(**given: Any) -> None:
            common = Given(given.pop("profile"), given.pop("url"), given.pop("tenant"), as_json=given.pop("as_json"))
            asyncio.run(_run(handler, common, given, new_profile=new_profile))

        run.__doc__ = handler.__doc__
        declared: Any = run
        declared.__click_params__ = list(getattr(handler, "__click_params__", []))
        for option in reversed(_COMMON):
            declared = option(declared)
        made = click.command(name, epilog=f"Example: {example}")(declared)
        if group is not None:
            group.add_command(made)
        return made

    return declare


async def _run(handler: Handler, common: Given, given: dict[str, Any], *, new_profile: bool) -> None:
    async with Call.of(common, new_profile=new_profile) as call:
        await handler(call, **given)
