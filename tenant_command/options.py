"""Options that several commands share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

YES = click.option("--yes", is_flag=True, help="Ask nothing.")
FILE = click.option("-f", "--file", "file", required=True, metavar="FILE", help="YAML or JSON; `-` is standard input.")
KEY = click.option("--key", metavar="KEY", help="The idempotency key; sent again under the same it happens once.")
TOKEN_FILE = click.option(
    "--to", "file", metavar="FILE", type=click.Path(path_type=Path), help="Write the token there, for you alone."
)
LIMIT = click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most so many; without it all.")


def all_of(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Make one decorator of several options, in the order in which the help shows them."""

    def declare(handler: Any) -> Any:
        for option in reversed(options):
            handler = option(handler)
        return handler

    return declare


def only_given(**fields: Any) -> dict[str, Any]:
    """Leave out what was not said."""
    return {name: value for name, value in fields.items() if value is not None and value != ()}


def split_names(said: str | None) -> list[str] | None:
    """Read a list with commas between."""
    return None if said is None else [name for name in (one.strip() for one in said.split(",")) if name]


# Which requests a route is for, whatever it does to them.
REQUESTS = all_of(
    click.option("--path", "pathPattern", metavar="PATTERN", help="The paths; a final `/*` is any rest."),
    click.option("--method", metavar="METHOD", help="One method; else any."),
    click.option("--agent", "agents", multiple=True, metavar="ID", help="Only this agent's requests. May be repeated."),
    click.option("--priority", type=int, help="Of several routes that match, the highest wins."),
    click.option("--enabled/--disabled", default=None, help="Whether the route is used."),
)
