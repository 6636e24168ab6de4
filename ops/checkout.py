"""The commands that a reader is told to run: a checkout has a Makefile and scripts, an installed wheel has neither."""

from pathlib import Path
from typing import Final

_ROOT = Path(__file__).parents[1]
IS_CHECKOUT: Final = (_ROOT / "Makefile").is_file() and (_ROOT / "scripts" / "set-up").is_file()
# Starts everything in development, and puts the packages in place.
START: Final = "`make run`" if IS_CHECKOUT else "`custody up`"
SET_UP: Final = "run scripts/set-up" if IS_CHECKOUT else "install the wheel of Custody again, with what it needs"
MCP: Final = "make mcp" if IS_CHECKOUT else "pip install 'custody[mcp]', with Python 3.13"
# The openers' own interpreter, with the libraries of holders, where `make openers` set it up.
OPENERS_PYTHON: Final = _ROOT / ".venv-openers" / "bin" / "python"
# The MCP server's own interpreter, as the first of these sets it up.
MCP_PYTHON: Final = _ROOT / ".venv-mcp" / "bin" / "python"
