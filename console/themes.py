"""Colours by night and by day: few, each with one meaning."""

from textual.app import App
from textual.theme import Theme

# What stands in an empty line for typing is read like anything else.
_READABLE = {"text-disabled": "auto 60%"}
DARK = Theme(
    name="custody-dark",
    dark=True,
    primary="#5b8dbe",
    secondary="#7a8aa0",
    accent="#8fb8de",
    warning="#d9a441",
    error="#e5646e",
    success="#6fb58a",
    foreground="#d6dbe3",
    background="#12161c",
    surface="#161b22",
    panel="#202731",
    variables=_READABLE,
)
LIGHT = Theme(
    name="custody-light",
    dark=False,
    primary="#2f6496",
    secondary="#5c6b80",
    accent="#2f6496",
    warning="#9a6200",
    error="#b3202c",
    success="#246b41",
    foreground="#1c2430",
    background="#f3f4f6",
    surface="#fbfbfc",
    panel="#e4e8ee",
    variables=_READABLE,
)


def register(app: App[None], name: str) -> None:
    """Make both known and show one: `dark` or `light`."""
    app.register_theme(DARK)
    app.register_theme(LIGHT)
    app.theme = f"custody-{name}"


def turn(app: App[None]) -> None:
    """From dark to light, or back."""
    app.theme = LIGHT.name if app.theme == DARK.name else DARK.name
