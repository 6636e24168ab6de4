"""A real terminal without a window: tmux, what it shows, and keys pressed in it."""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.fixtures.eventually import PATIENCE_SECONDS, eventually
from tests.outside.programs import Program, install

TMUX = Program(("tmux",), ("tmux",))
_GONE = "the program ended with "


class Terminal:
    """One window of a tmux of its own."""

    def __init__(self, program: Path, folder: Path) -> None:
        # A configuration or a server of the one who runs the tests must not play a part.
        self._tmux = [str(program), "-f", "/dev/null", "-S", str(folder / "tmux")]

    def tmux(self, *words: str) -> str:
        """Run one of tmux's commands."""
        return subprocess.run([*self._tmux, *words], capture_output=True, text=True, check=True, timeout=60).stdout

    @property
    def text(self) -> str:
        """Text on the screen."""
        return self.tmux("capture-pane", "-p")

    @property
    def modes(self) -> dict[str, str]:
        """Modes that a program may have left on: the other screen, the mouse, a hidden cursor."""
        names = ("alternate_on", "mouse_any_flag", "cursor_flag")
        said = self.tmux("display-message", "-p", " ".join(f"#{{{name}}}" for name in names)).split()
        return dict(zip(names, said, strict=True))

    def press(self, *keys: str) -> None:
        """Press keys by tmux's names: `a`, `Enter`, `C-c`."""
        self.tmux("send-keys", *keys)

    def resize(self, columns: int, lines: int) -> None:
        """Give the window another size."""
        self.tmux("resize-window", "-x", str(columns), "-y", str(lines))

    def sees(self, *words: str) -> str:
        """Wait until all of this stands on the screen; give the screen, lines joined by single blanks."""
        return self.until(lambda flat: all(word in flat for word in words), str(words))

    def until(self, true: Callable[[str], object], what: str) -> str:
        """Wait until something holds of the screen."""
        seen = eventually(
            lambda: self.text,
            lambda text: true(" ".join(text.split())),
            PATIENCE_SECONDS,
            lambda: f"{what} never came:\n{self.text}",
        )
        return " ".join(seen.split())

    def wait_for_end(self) -> int:
        """Wait for the program's end; its exit status."""
        flat = self.sees(_GONE)
        return int(flat.rpartition(_GONE)[2].split()[0])


@contextmanager
def terminal(
    command: list[str | Path], folder: Path, environment: Mapping[str, str], size: tuple[int, int] = (140, 44)
) -> Iterator[Terminal]:
    """Run a program in a terminal of this size, in a shell that stays there after it."""
    columns, lines = size
    words = " ".join(f"{name}={shlex.quote(value)}" for name, value in environment.items())
    program = shlex.join(str(word) for word in command)
    line = f"env -i {words} {program}; echo '{_GONE}'$?; exec cat"
    with tempfile.TemporaryDirectory(prefix="ct-") as sockets:
        window = Terminal(install(TMUX), Path(sockets))
        window.tmux("new-session", "-d", "-x", str(columns), "-y", str(lines), "-c", str(folder), line)
        try:
            yield window
        finally:
            window.tmux("kill-server")


def basics() -> dict[str, str]:
    """Return the environment that every terminal has."""
    return {"PATH": os.environ["PATH"], "TERM": "tmux-256color", "LANG": "C.UTF-8"}
