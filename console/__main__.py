"""`custody console`: read the settings, then show the console here or in a browser."""

import gc
import os
import sys

from textual import constants

from console.entry.settings import BadSetting, Settings, load
from words.texts.plain import plain


def main() -> int:
    """Run it, and give the exit status."""
    try:
        settings = load(sys.argv[1:], os.environ)
        if settings.web:
            # A terminal has no use for a web server.
            from console.web import serve  # noqa: PLC0415

            return serve(sys.argv[1:], settings.port)
        insist_on_terminal()
    except BadSetting as problem:
        print(f"custody console: {plain(str(problem))}", file=sys.stderr)
        return 2
    return show(settings)


def insist_on_terminal() -> None:
    """Raise BadSetting where there is nothing to draw on; in a browser's console there is, though no terminal."""
    if constants.DRIVER is not None:
        return
    if not sys.stdin.isatty() or not sys.stdout.isatty():
        raise BadSetting("standard output is not a terminal; run it in a terminal, or in a browser with --web")
    if os.environ.get("TERM", "") in ("", "dumb", "unknown"):
        raise BadSetting("this terminal cannot draw (TERM); set TERM=xterm-256color if it can, or use --web")


def show(settings: Settings) -> int:
    """Draw until the person has enough."""
    # Imported only now, so that a message about a setting appears at once.
    from console.app import Console  # noqa: PLC0415

    # What is loaded by now stays: to look through it again and again for garbage would stop the screen each time.
    gc.freeze()
    console = Console(settings)
    console.run()
    return console.return_code or 0


if __name__ == "__main__":
    sys.exit(main())
