"""The commands that a reader is told to run: a checkout has a Makefile and scripts, an installed wheel has neither."""

from pathlib import Path
from typing import Final

_ROOT = Path(__file__).parents[1]
IS_CHECKOUT: Final = (_ROOT / "Makefile").is_file() and (_ROOT / "scripts" / "set-up").is_file()
# Starts everything in development, and puts the packages in place.
START: Final = "`make run`" if IS_CHECKOUT else "`custody up`"
SET_UP: Final = "run scripts/set-up" if IS_CHECKOUT else "install the wheel of Custody again, with what it needs"
