"""Keep a credential from coming back: stars in its place, in every form it is likely to take. Decisions 8.

Guarantees: each known form is replaced by as many stars as it has bytes, however the answer is cut into chunks; a form
that is not listed here passes. How much waits follows from the kind of bytes a text ends in, never from which: else an
agent whose upstream says chosen bytes could read the value off the pauses. The work grows with the text alone.
"""

import re
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from string import ascii_letters, digits
from typing import Final

STAR: Final = b"*"
# Shorter derived forms would turn up by chance in what has nothing to do with the value.
SHORTEST_DERIVED: Final = 6
# Of a longer value, in bytes, only the commonest forms are looked for: all of them would be a hundred times its size.
LARGE: Final = 4096
# Characters beyond the unreserved ones that encoders leave alone: RFC 3986 strictly, Python and most path encoders,
# encodeURIComponent, encodeURI, and the form encoding of browsers.
_LEFT_ALONE: Final = ("", "/", "!'()*", "!'()*;/?:@&=+$,#", "*")
# Characters that JSON encoders write as \u00XX although they need not: none, those of HTML, HTML's with its quotes.
_HEX_ESCAPED: Final = ("", "<>&", "<>&'", "<>&'\"+`")
# What each choice is an argument of is in the signature of the escape. The first is the standard's own.
_PERCENT_CHOICES: Final = tuple(product(_LEFT_ALONE, ("%20", "+"), ("~", "%7E"), ("X", "x")))
_JSON_CHOICES: Final = tuple(product(_HEX_ESCAPED, ("/", "\\/"), (False, True), ("x", "X")))
_HTML_CHOICES: Final = tuple(
    product((True, False), ('"', "&quot;", "&#34;"), ("'", "&#39;", "&#x27;", "&#039;", "&apos;"))
)
_LETTERS: Final = frozenset(ascii_letters + digits)
_UNRESERVED: Final = _LETTERS | frozenset("-._")
_JSON_PLAIN: Final = _LETTERS | frozenset("-._~ =:")
_JSON_SHORT: Final = {
    '"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t",
}  # fmt: skip
_HTML_NAMED: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_HTML_WRITTEN: Final = frozenset("&<>\"'")
_BASE64_SHORTEST: Final = 8
# Which bytes wait at the end of a chunk, narrowest first. Keys are mostly made of the first kind, and the pieces of a
# stream of events or of JSON lines end in a byte that is of none but the last.
_KINDS: Final = (
    bytes(range(0x21, 0x7F)).translate(None, b"\"'`()[]{}<>,;"),
    bytes(range(0x20, 0x100)),
    bytes(range(0x100)),
)
# For each kind a table that makes every other byte this one.
_OTHER: Final = b"\0"
_TABLES: Final = tuple(bytes(byte in kind for byte in range(0x100)) for kind in _KINDS)
# By the end of a needle it is first asked whether a small chunk can complete an occurrence.
_END: Final = 16
# Repetitions of an occurrence are compared in blocks of about this many bytes.
_BLOCK: Final = 4096
# What these headers say when they only frame the message or date it; a short value may well be in there by chance.
_FRAMING: Final = {
    b"content-length": re.compile(rb"[0-9]{1,19}"),
    b"transfer-encoding": re.compile(rb"chunked", re.IGNORECASE),
    b"connection": re.compile(rb"close|keep-alive|upgrade", re.IGNORECASE),
    b"upgrade": re.compile(rb"websocket", re.IGNORECASE),
    b"date": re.compile(rb"[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT"),
}
# In these a letter is not the byte that it is in ASCII, or need not be.
_UNREADABLE = re.compile(
    r"charset\s*=\s*[\"']?\s*(?:x-)?(?:cs)?"
    r"(?:utf[-_ ]?(?:7|16|32)|ucs|iso[-_ ]?10646|unicode(?!-1-1-utf-8)|ebcdic"
    r"|(?:cp|ibm)[-_]?0*(?:37|[25]\d\d|10[24]\d|114\d)\b)",
    re.IGNORECASE,
)


def needles(value: str) -> tuple[bytes, ...]:
    """What to look for, longest first. White space around the value is left out, so no line end is ever held back.

    All of them together have at most about twenty times the bytes of a value longer than LARGE.
    """
    text = value.strip()
    raw = text.encode()
    if not raw:
        return ()
    derived = {form for form in _derived(text, raw) if len(form) >= SHORTEST_DERIVED}
    return tuple(sorted(derived | {raw}, key=lambda form: (-len(form), form)))


def mask_text(text: bytes, needles: Sequence[bytes]) -> bytes:
    """A whole text with every occurrence masked."""
    return _starred(text, _spans(text, needles))


def mask_header(name: bytes, value: bytes, needles: Sequence[bytes]) -> tuple[bytes, bytes]:
    """A header with every occurrence masked, but for what says where the message ends, and when it was made."""
    framing = _FRAMING.get(name.lower())
    if framing is None:
        return mask_text(name, needles), mask_text(value, needles)
    return name, value if framing.fullmatch(value) else mask_text(value, needles)


def unreadable(content_type: str | None) -> bool:
    """Whether a body of this type is written in units other than bytes of ASCII, so that no needle is found in it."""
    return content_type is not None and _UNREADABLE.search(content_type) is not None


class Masker:
    """Masks a text that comes in chunks. The parts given back are together as long as the parts taken."""

    __slots__ = ("_held", "_most", "_needles", "_shown", "_waits")

    def __init__(self, needles: Sequence[bytes]) -> None:
        self._needles = needles
        self._most = max(map(len, needles), default=1) - 1
        self._waits = _TABLES[_kind_of(needles)]
        # What waits, as it came and as it will be given back.
        self._held = self._shown = b""

    def __repr__(self) -> str:
        return "Masker()"

    def feed(self, chunk: bytes) -> bytes:
        """Take a chunk; give back what is decided.

        Held is the end that is all of the kind of bytes that the needles are made of, whatever it says, and no more
        than a needle without its last byte.
        """
        fresh = len(self._held)
        data = self._held + chunk
        # They are one object until something in them was masked.
        shown = data if self._shown is self._held else self._shown + chunk
        shown = _starred(shown, _spans(data, self._needles, fresh))
        cut = len(data) - self._undecided(chunk)
        self._held = data[cut:]
        self._shown = self._held if shown is data else shown[cut:]
        return shown[:cut]

    def end(self) -> bytes:
        """Give back what was held: no more chunks come, or what comes is another text."""
        shown = self._shown
        self._held = self._shown = b""
        return shown

    def _undecided(self, chunk: bytes) -> int:
        """How many bytes wait once this chunk is here: all that is held is of the kind that waits."""
        tail = chunk[-self._most :] if self._most else b""
        other = tail.translate(self._waits).rfind(_OTHER)
        return len(tail) - 1 - other if other >= 0 else min(self._most, len(self._held) + len(tail))


def _kind_of(needles: Sequence[bytes]) -> int:
    letters = b"".join(needles)
    return next(number for number, kind in enumerate(_KINDS) if not letters.translate(None, kind))


def _spans(data: bytes, needles: Sequence[bytes], fresh: int = 0) -> list[tuple[int, int]]:
    """Where the occurrences are that end behind `fresh`. Those of one needle that touch are mostly one span."""
    found: list[tuple[int, int]] = []
    for needle in needles:
        size = len(needle)
        start = max(0, fresh - size + 1)
        # Only so is a long needle not looked for in all that waits, for each of many small chunks.
        if fresh and size > len(data) - fresh and data.find(needle[-_END:], max(start, fresh - _END + 1)) < 0:
            continue
        at = data.find(needle, start)
        if at >= 0:
            found.extend(_spans_of(data, needle, at))
    return found


def _spans_of(data: bytes, needle: bytes, at: int) -> Iterator[tuple[int, int]]:
    """The same for one needle from its first occurrence on, in time that grows with the data.

    Two occurrences that touch are as far apart as the needle repeats itself, so one follows wherever as many of its
    last bytes follow. Behind such a run the next occurrence is more than half a needle away, or there would be no end
    of the run, so that none is looked for more often than that.
    """
    size = len(needle)
    while at >= 0:
        end = at + size
        following = data.find(needle, at + 1)
        if 0 <= following <= end:
            end = _run_end(data, needle[at - following :], following + size)
            following = data.find(needle, end - size + 1)
        yield at, end
        at = following


def _run_end(data: bytes, unit: bytes, end: int) -> int:
    """Where the repetitions of the unit that begin at `end` are over."""
    block = unit
    while data.startswith(block, end):
        end += len(block)
        if len(block) < _BLOCK:
            block += block
    while len(block) > len(unit):
        block = block[: len(block) // 2]
        if data.startswith(block, end):
            end += len(block)
    return end


def _starred(data: bytes, spans: Sequence[tuple[int, int]]) -> bytes:
    if not spans:
        return data
    masked = bytearray(data)
    for start, end in spans:
        masked[start:end] = STAR * (end - start)
    return bytes(masked)


def _derived(text: str, raw: bytes) -> Iterator[bytes]:
    yield from base64_forms(raw)
    yield from _decoded(text)
    if len(raw) > LARGE:
        yield from _percent(text, _PERCENT_CHOICES[:1])
        yield from _json(text, _JSON_CHOICES[:1])
        return
    yield from _percent(text, _PERCENT_CHOICES)
    yield from _json(text, _JSON_CHOICES)
    yield from _html(text)
    yield raw.hex().encode()
    yield raw.hex().upper().encode()


def base64_forms(raw: bytes) -> Iterator[bytes]:
    """The base64 and base64url characters that a text alone decides, for each way it lies in the groups of three."""
    for before in range(3):
        first, last = -(-before * 8 // 6), (before + len(raw)) * 8 // 6
        for encode in (b64encode, urlsafe_b64encode):
            yield encode(bytes(before) + raw)[first:last]


def _decoded(text: str) -> Iterator[bytes]:
    """What a value says that is itself base64, such as that of Basic: the text, and what follows its first colon."""
    encoded = text.removeprefix("Basic ")
    if len(encoded) < _BASE64_SHORTEST:
        return
    bare = encoded.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        inside = b64decode(bare + "=" * (-len(bare) % 4), validate=True).decode()
    except ValueError:
        return
    if inside.isprintable():
        yield from (part.encode() for part in (inside, inside.partition(":")[2]) if len(part) >= SHORTEST_DERIVED)


def _percent(text: str, choices: Iterable[tuple[object, ...]]) -> Iterator[bytes]:
    return _escaped(text, _UNRESERVED, _percent_escape, choices)


def _percent_escape(letter: str, left_alone: str, space: str, tilde: str, digits: str) -> str:
    if letter in left_alone:
        return letter
    if letter in " ~":
        return space if letter == " " else tilde.replace("E", format(14, digits))
    return "".join(f"%{byte:02{digits}}" for byte in letter.encode())


def _json(text: str, choices: Iterable[tuple[object, ...]]) -> Iterator[bytes]:
    return _escaped(text, _JSON_PLAIN, _json_escape, choices)


def _json_escape(letter: str, hex_escaped: str, slash: str, ascii_only: bool, digits: str) -> str:
    if letter in hex_escaped or (letter > "~" and ascii_only) or (letter < " " and letter not in _JSON_SHORT):
        units = letter.encode("utf-16-be")
        return "".join(f"\\u{int.from_bytes(units[at : at + 2]):04{digits}}" for at in range(0, len(units), 2))
    return slash if letter == "/" else _JSON_SHORT.get(letter, letter)


def _html(text: str) -> Iterator[bytes]:
    return _escaped(text, frozenset(text) - _HTML_WRITTEN, _html_escape, _HTML_CHOICES)


def _html_escape(letter: str, named: bool, quote: str, apostrophe: str) -> str:
    if letter in "\"'":
        return quote if letter == '"' else apostrophe
    return _HTML_NAMED[letter] if named else f"&#{ord(letter)};"


def _escaped(
    text: str, plain: frozenset[str], escape: Callable[..., str], choices: Iterable[tuple[object, ...]]
) -> Iterator[bytes]:
    """The text as each encoder writes it. Those that agree on its letters are asked once: it may be 64 KiB."""
    present = set(text)
    letters = present - plain
    if not letters:
        return
    tables = {tuple((letter, escape(letter, *choice)) for letter in letters) for choice in choices}
    for table in tables:
        spelling = {letter: letter for letter in present} | dict(table)
        yield "".join(map(spelling.__getitem__, text)).encode()
