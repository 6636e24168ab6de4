"""Pages on which people sign in: they share the part that does it, with its style and script."""

from pathlib import Path
from typing import Final

from api.http import pages

PAGES: Final = Path(__file__).parents[1] / "pages"
_FOLDER = PAGES / "sign-in"
_SIGN_IN: Final = (_FOLDER / "sign-in.html").read_text().strip()
_MADE: Final = (_FOLDER / "made.html").read_text().strip()
ASSETS: Final = pages.assets("/sign-in", _FOLDER)


def composed(page: Path, step: str) -> str:
    """A page with the part in its places; `step` says which of its steps that is."""
    text = page.read_text().replace("{{sign_in}}", _SIGN_IN.replace("{{step}}", step))
    return text.replace("{{made}}", _MADE)
