"""The lines between `custody unlock` and the opener that waits for people's shares: ASCII, one each way and a greeting.

The opener greets a connection with `waiting CAME NEEDED SECONDS`. One line follows: a share, or nothing where somebody
only looks. The answer is `came CAME NEEDED SECONDS`, `opened`, or `no SENTENCE`.
"""

import re

import msgspec

# A share of 33 words has 296 letters and blanks at most.
MAX_LINE = 1024
# For a connection from its first byte to its last; typing is done before it.
LINE_SECONDS = 10.0
_COUNTS = re.compile(r"(waiting|came) ([0-9]{1,2}) ([0-9]{1,2}) ([0-9]{1,4})", re.ASCII)
_REFUSAL = re.compile(r"no ([ -~]{1,512})", re.ASCII)
OPENED = "opened"


class Refused(Exception):
    """The opener does not take it; the message is its sentence."""


class Malformed(Exception):
    """The line is none that an opener says."""


class Counts(msgspec.Struct, frozen=True):
    """The number of shares that came and that are needed, and the seconds for which those that came are kept."""

    came: int
    needed: int
    seconds: int

    def line(self, word: str) -> str:
        """Write it behind its word."""
        return f"{word} {self.came} {self.needed} {self.seconds}"


def read(line: bytes) -> Counts | None:
    """The counts that an opener says, None when it opened; Refused with its sentence."""
    text = line.decode("ascii", "replace").removesuffix("\n")
    if text == OPENED:
        return None
    if said := _COUNTS.fullmatch(text):
        return Counts(int(said[2]), int(said[3]), int(said[4]))
    if said := _REFUSAL.fullmatch(text):
        raise Refused(said[1])
    raise Malformed
