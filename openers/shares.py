"""Shares and recovery keys as people take them away from a terminal: shown once each, and typed back.

Only at a terminal, and on its other screen, which leaves no lines to scroll back to. Never in files or arguments.
"""

import contextlib
import os
import secrets
import termios
from collections.abc import Callable, Iterator, Sequence

import msgspec

from openers.outcomes import BadSettings, NotOpened, Refused

# So many of several are typed back, drawn when all were shown: nobody knows before which.
TYPED_BACK = 2
TRIES = 3
MOST_TYPED = 1024
_OTHER_SCREEN, _FIRST_SCREEN, _CLEAR = "\x1b[?1049h", "\x1b[?1049l", "\x1b[H\x1b[2J\x1b[3J"
_WORDS_IN_A_LINE = 3


class Paper(msgspec.Struct, frozen=True):
    """One thing that a person takes away, and how what they type is read to be compared."""

    label: str
    text: str
    read: Callable[[str], object]

    def __repr__(self) -> str:
        return f"Paper({self.label})"


class Terminal:
    """The terminal of who runs this, whatever standard input and output are."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def say(self, text: str) -> None:
        """Write to it."""
        given = text.encode()
        while given:
            given = given[os.write(self._descriptor, given) :]

    def ask(self, words: str) -> str:
        """Read a line that is not shown while it is typed; Refused where nobody types any more."""
        before = termios.tcgetattr(self._descriptor)
        silent = [*before]
        silent[3] &= ~termios.ECHO
        # Who stops this leaves what is shown on the screen.
        silent[6] = [*before[6]]
        silent[6][termios.VSUSP] = b"\0"
        termios.tcsetattr(self._descriptor, termios.TCSAFLUSH, silent)
        try:
            self.say(words)
            typed = os.read(self._descriptor, MOST_TYPED + 1)
        finally:
            termios.tcsetattr(self._descriptor, termios.TCSAFLUSH, before)
            self.say("\n")
        if not typed.endswith(b"\n"):
            raise Refused("Nothing was typed, and nothing was changed. What was written down is to be thrown away.")
        return typed.decode("ascii", "replace").removesuffix("\n")

    @contextlib.contextmanager
    def other_screen(self) -> Iterator[None]:
        """Show on a screen that is gone afterwards."""
        self.say(_OTHER_SCREEN + _CLEAR)
        try:
            yield
        finally:
            self.say(_CLEAR + _FIRST_SCREEN)


@contextlib.contextmanager
def open_terminal() -> Iterator[Terminal]:
    """The terminal that this is run at; BadSettings without one."""
    try:
        descriptor = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        raise BadSettings("Shares and recovery keys are shown at a terminal only: run this in one.") from None
    try:
        yield Terminal(descriptor)
    finally:
        os.close(descriptor)


def hand_out(things: Sequence[Paper], terminal: Terminal) -> None:
    """Show each once, one after the other, and have some typed back; raises unless they were written down right."""
    for at, thing in enumerate(things):
        with terminal.other_screen():
            terminal.say(f"{thing.label}, {at + 1} of {len(things)} to write down. It is shown this once.\n\n")
            terminal.say(_layout(thing.text))
            terminal.ask("\nEnter, when it is written down and read over: ")
    drawn = sorted(secrets.SystemRandom().sample(range(len(things)), min(TYPED_BACK, len(things))))
    for at in drawn:
        _have_typed(things[at], terminal)


def _have_typed(thing: Paper, terminal: Terminal) -> None:
    expected = thing.read(thing.text)
    for _ in range(TRIES):
        try:
            if thing.read(terminal.ask(f"Type back, from paper and not shown: {thing.label}: ")) == expected:
                return
            terminal.say("That is another one.\n")
        except NotOpened as problem:
            if isinstance(problem, Refused):
                raise
            terminal.say(f"{problem.sentence}\n")
    raise Refused(
        f"Nothing was changed: {thing.label} was not typed back in {TRIES} tries. Throw away what was written."
    )


def _layout(text: str) -> str:
    """Words with their numbers, three in a line; a recovery key as it is."""
    words = text.split()
    if len(words) <= _WORDS_IN_A_LINE:
        return f"  {text}\n"
    lines = [words[at : at + _WORDS_IN_A_LINE] for at in range(0, len(words), _WORDS_IN_A_LINE)]
    return "".join(
        "".join(f"  {row * _WORDS_IN_A_LINE + at + 1:2} {word:12}" for at, word in enumerate(line)).rstrip() + "\n"
        for row, line in enumerate(lines)
    )
