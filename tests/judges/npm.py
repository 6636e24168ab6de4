"""The JavaScript judges, as their lock file has them."""

from pathlib import Path

from tests.outside import npm
from tests.outside.npm import missing

__all__ = ["ANVIL", "JUDGES", "install", "missing"]

JUDGES = Path(__file__).parent
ANVIL = JUDGES / "node_modules" / ".bin" / "anvil"


def install() -> None:
    """Install them, unless that has been done."""
    npm.install(JUDGES)
