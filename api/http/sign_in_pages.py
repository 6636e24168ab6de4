"""Pages on which people sign in: they share the part that does it, with its style and script."""

from typing import Final

from api.http import pages

_FOLDER = pages.FOLDER / "sign-in"
_SIGN_IN: Final = (_FOLDER / "sign-in.html").read_text().strip()
_MADE: Final = (_FOLDER / "made.html").read_text().strip()
ASSETS: Final = pages.assets("/sign-in", _FOLDER)


def compose(name: str, step: str) -> str:
    """A page with the part in its places; `step` says which of its steps that is."""
    text = pages.page(name).replace("{{sign_in}}", _SIGN_IN.replace("{{step}}", step))
    return text.replace("{{made}}", _MADE)
