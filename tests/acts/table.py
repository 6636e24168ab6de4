"""All acts there are, by their routes and by their commands."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.acts.act import Act, Journey

if TYPE_CHECKING:
    from tests.table.world import World

_FILES = sorted(file.stem for file in Path(__file__).parent.glob("*.py") if file.stem != "table")
_AREAS = [importlib.import_module(f"tests.acts.{name}") for name in _FILES]
ACTS: tuple[Act, ...] = tuple(act for area in _AREAS for act in getattr(area, "ACTS", ()))
# With a route twice in it, it is twice in here: tests/table/test_declarations.py.
ROUTES: tuple[str, ...] = tuple(route for act in ACTS for route in act.places)
BY_ROUTE: dict[str, Act] = {route: act for act in ACTS for route in act.places}
BY_COMMAND: dict[str, Act] = {act.command: act for act in ACTS if act.command and act.nothing is not None}
NOTHING: dict[str, dict[str, Any]] = {name: act.nothing for name, act in BY_COMMAND.items() if act.nothing is not None}
JOURNEYS: dict[str, Callable[["World"], Journey]] = {
    route: act.journey for route, act in BY_ROUTE.items() if act.journey is not None
}
BODIES: dict[str, Callable[["World"], Any]] = {
    route: act.body for route, act in BY_ROUTE.items() if act.body is not None
}
