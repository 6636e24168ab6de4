"""Keep a credential from coming back: stars in its place, in every form it is likely to take. Decisions 8.

Guarantees: each known form is replaced by as many stars as it has bytes, however the answer is cut into chunks; a byte
waits only as long as it may be the start of one. A form that is not listed here passes.
"""

from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from string import ascii_letters, digits
from typing import Final

STAR: Final = b"*"
# Shorter derived forms would turn up by chance in what has nothing to do with the value.
SHORTEST_DERIVED: Final = 6
# Characters beyond the unreserved ones that encoders leave alone: RFC 3986 strictly, Python and most path encoders,
# encodeURIComponent, encodeURI, and the form encoding of browsers.
_LEFT_ALONE: Final = ("", "/", "!'()*", "!'()*;/?:@&=+$,#", "*")
# Characters that JSON encoders write as \u00XX although they need not: none, those of HTML, HTML's with its quotes.
_HEX_ESCAPED: Final = ("", "<>&", "<>&'", "<>&'\"+`")
_LETTERS: Final = frozenset(ascii_letters + digits)
_UNRESERVED: Final = _LETTERS | frozenset("-._")
_JSON_PLAIN: Final = _LETTERS | frozenset("-._~ =:")
_JSON_SHORT: Final = {
    '"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t",
}  # fmt: skip
# The start by which a needle is first looked for at the end of a chunk.
_START: Final = 4


def needles(value: str) -> tuple[bytes, ...]:
    """What to look for, longest first. White space around the value is left out, so no line end is ever held back."""
    text = value.strip()
    raw = text.encode()
    if not raw:
        return ()
    derived = {
        form
        for form in (*_base64(raw), *_percent(text), *_json(text), raw.hex().encode(), raw.hex().upper().encode())
        if len(form) >= SHORTEST_DERIVED
    }
    return tuple(sorted(derived | {raw}, key=lambda form: (-len(form), form)))


def mask_text(text: bytes, needles: Sequence[bytes]) -> bytes:
    """A whole text with every occurrence masked."""
    spans = _spans(text, needles)
    return _starred(text, spans) if spans else text


class Masker:
    """Masks a text that comes in chunks. The parts given back are together as long as the parts taken."""

    __slots__ = ("_covered", "_held", "_needles", "_short", "_starts")

    def __init__(self, needles: Sequence[bytes]) -> None:
        self._needles = needles
        self._starts = [(needle[:_START], needle, len(needle)) for needle in needles if len(needle) > _START]
        self._short = {needle[:size] for needle in needles for size in range(1, min(len(needle), _START))}
        self._held = b""
        # How many of the held bytes are masked already, by an occurrence that began before them.
        self._covered = 0

    def __repr__(self) -> str:
        return "Masker()"

    def feed(self, chunk: bytes) -> bytes:
        """Take a chunk; give back what is decided. Held are only bytes that may be the start of an occurrence."""
        data = self._held + chunk if self._held else chunk
        spans = _spans(data, self._needles)
        cut = len(data) - self._undecided(data)
        self._held = data[cut:]
        if self._covered:
            spans.append((0, self._covered))
        if not spans:
            return data[:cut]
        # What lies inside the held bytes is found again; what reaches into them is not.
        self._covered = max(0, max((end for start, end in spans if start < cut), default=self._covered + cut) - cut)
        return _starred(data, spans)[:cut]

    def end(self) -> bytes:
        """Give back what was held: no more chunks come, or what comes is another text."""
        data, covered = self._held, self._covered
        self._held, self._covered = b"", 0
        if not data:
            return b""
        return _starred(data, [(0, covered), *_spans(data, self._needles)])

    def _undecided(self, data: bytes) -> int:
        """The length of the longest end of the data that is a start of a needle, but not a whole one."""
        size, longest = len(data), 0
        for start, needle, length in self._starts:
            at = data.find(start, max(0, size - length + 1))
            while at >= 0 and size - at > longest:
                if needle.startswith(data[at:]):
                    longest = size - at
                    break
                at = data.find(start, at + 1)
        for length in range(min(_START - 1, size), longest, -1):
            if data[-length:] in self._short:
                return length
        return longest


def _spans(data: bytes, needles: Sequence[bytes]) -> list[tuple[int, int]]:
    found = []
    for needle in needles:
        at = data.find(needle)
        while at >= 0:
            found.append((at, at + len(needle)))
            at = data.find(needle, at + 1)
    return found


def _starred(data: bytes, spans: Sequence[tuple[int, int]]) -> bytes:
    masked = bytearray(data)
    for start, end in spans:
        masked[start:end] = STAR * (end - start)
    return bytes(masked)


def _base64(raw: bytes) -> Iterator[bytes]:
    """The characters that the value alone decides, for each way it can lie in the groups of three bytes."""
    for before in range(3):
        first, last = -(-before * 8 // 6), (before + len(raw)) * 8 // 6
        for encode in (b64encode, urlsafe_b64encode):
            yield encode(bytes(before) + raw)[first:last]


def _percent(text: str) -> Iterator[bytes]:
    choices = product(_LEFT_ALONE, ("%20", "+"), ("~", "%7E"), ("X", "x"))
    return _escaped(text, _UNRESERVED, _percent_escape, choices)


def _percent_escape(letter: str, left_alone: str, space: str, tilde: str, digits: str) -> str:
    if letter in left_alone:
        return letter
    if letter in " ~":
        return space if letter == " " else tilde.replace("E", format(14, digits))
    return "".join(f"%{byte:02{digits}}" for byte in letter.encode())


def _json(text: str) -> Iterator[bytes]:
    choices = product(_HEX_ESCAPED, ("/", "\\/"), (False, True), ("X", "x"))
    return _escaped(text, _JSON_PLAIN, _json_escape, choices)


def _json_escape(letter: str, hex_escaped: str, slash: str, ascii_only: bool, digits: str) -> str:
    if letter in hex_escaped or (letter > "~" and ascii_only) or (letter < " " and letter not in _JSON_SHORT):
        units = letter.encode("utf-16-be")
        return "".join(f"\\u{int.from_bytes(units[at : at + 2]):04{digits}}" for at in range(0, len(units), 2))
    return slash if letter == "/" else _JSON_SHORT.get(letter, letter)


def _escaped(
    text: str, plain: frozenset[str], escape: Callable[..., str], choices: Iterable[tuple[object, ...]]
) -> Iterator[bytes]:
    """The text as each encoder writes it. Those that agree on its letters are asked once: it may be 64 KiB."""
    present = set(text)
    letters = present - plain
    tables = {tuple((letter, escape(letter, *choice)) for letter in letters) for choice in choices}
    for table in tables if letters else ():
        spelling = {letter: letter for letter in present} | dict(table)
        yield "".join(map(spelling.__getitem__, text)).encode()
