"""Mask a credential in what upstreams answer: stars replace it, in every form it is likely to take.

Guarantees: each known form is replaced by as many stars as it has bytes, however the answer is cut into chunks; a form
that is not listed here passes. How many bytes wait depends on the kind of bytes a text ends in, never on the value:
else an agent whose upstream sends chosen bytes could read the value off the pauses. The work grows with the text alone.

Some forms are looked for as they are. Escapes have too many combinations for that. A text that has one of the value's
characters escaped is therefore also *read*, once for each family of escapes, with the escapes undone: so it does not
matter which characters an encoder escapes, and how it spells them.
"""

import re
from base64 import b64decode, b64encode, urlsafe_b64encode
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from html.entities import html5
from itertools import accumulate
from string import ascii_letters, digits
from typing import Final
from urllib.parse import quote

import msgspec

STAR: Final = b"*"
# Shorter derived forms would turn up by chance in what has nothing to do with the value.
SHORTEST_DERIVED: Final = 6
# Of a longer value, in bytes, and of one with more different characters that have escapes, only the commonest forms are
# looked for: to read a text for all of them would take too long.
LARGE: Final = 4096
MAX_SPECIAL: Final = 128
# No encoder escapes these in a text that it means to be read.
_PLAIN: Final = frozenset(ascii_letters + digits + "._")
_PLAIN_RUN = re.compile(rb"[A-Za-z0-9._]+")
_ANCHOR: Final = 12
# A character is never longer when escaped, for each byte that it has in UTF-8.
_LONGEST_ESCAPE: Final = 8
_JSON_SHORT: Final = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v", b"0": b"\0"}
_JSON_ITSELF: Final = frozenset("\"'`/\\")
# A line end in base64 comes behind this many characters or more: 64 in PEM, 76 in mail.
_LINE: Final = 60
_BASE64_SHORTEST: Final = 8
# Which bytes wait at the end of a chunk, narrowest first. Keys are mostly made of the first kind, and the pieces of a
# stream of events or of JSON lines end in a byte that is of none but the last.
_KINDS: Final = (
    bytes(range(0x21, 0x7F)).translate(None, b"\"'`()[]{}<>,;"),
    bytes(range(0x21, 0x7F)).translate(None, b"\"'`()[]{}<>,"),
    bytes(range(0x20, 0x100)),
    bytes(range(0x100)),
)
# For each kind a table that makes every other byte this one.
_OTHER: Final = b"\0"
_TABLES: Final = tuple(bytes(byte in kind for byte in range(0x100)) for kind in _KINDS)
# A small chunk is searched for this many last bytes of a needle first: without them it completes no occurrence.
_END: Final = 16
# So many bytes have that end in them when all of it is escaped, and the line before it.
_WINDOW: Final = _END * _LONGEST_ESCAPE + 2 * _LINE
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
# How HTML names a character, where the name is not longer than any number would be.
_NAMES: Final[dict[str, list[str]]] = {}
for _name, _letter in html5.items():
    if _name.endswith(";") and len(_letter) == 1 and len(_name) < _LONGEST_ESCAPE * len(_letter.encode()):
        _NAMES.setdefault(_letter, []).append(_name[:-1])
_BASE64: Final = b"[A-Za-z0-9+/_-]{%d}" % _LINE
# The ends of base64's lines, as they are and as JSON writes them, longest first.
_FOLDS: Final = (rb"\\r\\n", rb"\\n", rb"\r\n", rb"\n")
_FOLD_LENGTH: Final = 4
_FOLD = re.compile(b"(" + b"|".join(fold + b"(?<=" + _BASE64 + fold + b")" for fold in _FOLDS) + b")")
_FOLD_HINTS: Final = (
    (b"\n", re.compile(rb"\n(?:(?<=" + _BASE64 + rb"\n)|(?<=" + _BASE64 + rb"\r\n))")),
    (rb"\n", re.compile(rb"\\n(?:(?<=" + _BASE64 + rb"\\n)|(?<=" + _BASE64 + rb"\\r\\n))")),
)
# A byte at which a line of base64 may be about to end.
_MAY_FOLD = re.compile(rb"\r(?<=" + _BASE64 + rb"\r)|\n(?:(?<=" + _BASE64 + rb"\n)|(?<=" + _BASE64 + rb"\r\n))")
# In these a letter is not the byte that it is in ASCII, or need not be. Blanks are taken whole (`*+`) and once: two
# places side by side that both take some would cost time by the square of a header's blanks.
_UNREADABLE = re.compile(
    r"charset\s*+=\s*+(?:[\"']\s*+)?(?:x-)?(?:cs)?"
    r"(?:utf[-_ ]?(?:7|16|32)|ucs|iso[-_ ]?10646|unicode(?!-1-1-utf-8)|ebcdic"
    r"|(?:cp|ibm)[-_]?0*(?:37|[25]\d\d|10[24]\d|114\d)\b)",
    re.IGNORECASE,
)


class Reading(msgspec.Struct, frozen=True):
    """A way to read a text: what its escapes say, and what to look for when they are undone.

    A text without the `anchor`, or without any of the `hints` (a mark, and what it begins), need not be read.
    """

    anchor: bytes
    hints: tuple[tuple[bytes, re.Pattern[bytes]], ...]
    tokens: re.Pattern[bytes]
    meaning: Callable[[bytes], bytes]
    wanted: tuple[bytes, ...]

    def __repr__(self) -> str:
        return "Reading()"

    def is_hinted_at(self, data: bytes) -> bool:
        """Say whether the text may have an occurrence that only a reader sees."""
        return self.anchor in data and any(mark in data and hint.search(data) for mark, hint in self.hints)


class Needles(msgspec.Struct, frozen=True):
    """Needles to look for: forms as they are, longest first, and readings. `longest`: the most bytes of a form."""

    literals: tuple[bytes, ...] = ()
    readings: tuple[Reading, ...] = ()
    longest: int = 1

    def __repr__(self) -> str:
        return "Needles()"

    def __bool__(self) -> bool:
        return bool(self.literals)

    @classmethod
    def of(cls, *literals: bytes) -> "Needles":
        """These texts and no form of theirs."""
        return cls(tuple(sorted(literals, key=lambda form: (-len(form), form))), (), max(map(len, literals), default=1))

    @classmethod
    def together(cls, found: Sequence["Needles"]) -> "Needles":
        """All of several values."""
        if len(found) < 2:
            return found[0] if found else NOTHING
        both = cls.of(*{form for one in found for form in one.literals})
        longest = max((both.longest, *(one.longest for one in found)))
        return cls(both.literals, tuple(reading for one in found for reading in one.readings), longest)


NOTHING: Final = Needles()


def needles(value: str) -> Needles:
    """Build what to look for. White space around the value is left out, so no line end is ever held back.

    All of them together have at most about twenty times the bytes of the value, and of a large one none.
    """
    text = value.strip()
    raw = text.encode()
    if not raw:
        return NOTHING
    encoded = {form for form in base64_forms(raw) if len(form) >= SHORTEST_DERIVED}
    special = sorted(frozenset(text) - _PLAIN)
    large = len(raw) > LARGE or len(special) > MAX_SPECIAL
    derived = {form for form in _derivations(text, raw, large=large) if len(form) >= SHORTEST_DERIVED}
    found = Needles.of(*(encoded | derived | {raw}))
    if large:
        return found
    escapes = tuple(_escapes(raw, special))
    folded = (Reading(b"", _FOLD_HINTS, _FOLD, _nothing, tuple(sorted(encoded))),) if encoded else ()
    longest = found.longest
    if escapes:
        each = (1 if letter in _PLAIN else _LONGEST_ESCAPE * len(letter.encode()) for letter in text)
        longest = max(longest, sum(each))
    if encoded:
        # With the lines' ends, and the line before, by which an end is known to be one.
        longest = max(longest, max(map(len, encoded)) * (_LINE + _FOLD_LENGTH) // _LINE + _LINE + _FOLD_LENGTH)
    return Needles(found.literals, escapes + folded, longest)


def mask_text(text: bytes, needles: Needles) -> bytes:
    """A whole text with every occurrence masked."""
    return _star_out(text, _spans(text, needles))


def mask_header(name: bytes, value: bytes, needles: Needles) -> tuple[bytes, bytes]:
    """A header with every occurrence masked, but for what says where the message ends, and when it was made."""
    framing = _FRAMING.get(name.lower())
    if framing is None:
        return mask_text(name, needles), mask_text(value, needles)
    return name, value if framing.fullmatch(value) else mask_text(value, needles)


def unreadable(content_type: str | None) -> bool:
    """Say whether a body of this type is written in units other than bytes of ASCII, so no needle is found in it."""
    return content_type is not None and _UNREADABLE.search(content_type) is not None


class Masker:
    """Masks a text that comes in chunks. The parts given back are together as long as the parts taken."""

    __slots__ = ("_held", "_most", "_needles", "_shown", "_waits")

    def __init__(self, needles: Needles) -> None:
        self._needles = needles
        self._most = needles.longest - 1
        self._waits = _TABLES[_kind_of(needles)]
        # What waits, as it came and as it will be given back.
        self._held = self._shown = b""

    def __repr__(self) -> str:
        return "Masker()"

    def feed(self, chunk: bytes) -> bytes:
        """Take a chunk; give back what is decided.

        Held is the end that is all of the kind of bytes that the needles are made of, whatever it says, and no more
        than a needle without its last byte. What is held may begin inside an escape: then more may be masked than in
        the whole text. Dangerous only for a value that begins with a backslash: behind a run of them that was cut, its
        JSON form may be read wrongly.
        """
        fresh = len(self._held)
        data = self._held + chunk
        # They are one object until something in them was masked.
        shown = data if self._shown is self._held else self._shown + chunk
        shown = _star_out(shown, _spans(data, self._needles, fresh))
        cut = len(data) - self._pending(data, len(chunk))
        self._held = data[cut:]
        self._shown = self._held if shown is data else shown[cut:]
        return shown[:cut]

    def end(self) -> bytes:
        """Give back what was held: no more chunks come, or what comes is another text."""
        shown = self._shown
        self._held = self._shown = b""
        return shown

    def _pending(self, data: bytes, fresh: int) -> int:
        """Count the bytes that wait once so many fresh ones are here: all that is held is of the kind that waits.

        The end of a line that may be one of base64 waits with it, whatever the lines say.
        """
        looked_at = min(self._most, fresh)
        tail = data[len(data) - looked_at :].translate(self._waits)
        other = tail.rfind(_OTHER)
        while other >= 0 and self._needles.readings and _MAY_FOLD.match(data, len(data) - looked_at + other):
            other = tail.rfind(_OTHER, 0, other)
        return looked_at - 1 - other if other >= 0 else min(self._most, len(data))


def _kind_of(needles: Needles) -> int:
    letters = b"".join(needles.literals) + (b";" if len(needles.readings) > 1 else b"")
    return next(number for number, kind in enumerate(_KINDS) if not letters.translate(None, kind))


def _spans(data: bytes, needles: Needles, fresh: int = 0) -> list[tuple[int, int]]:
    """Find the occurrences that end behind `fresh`. Those of one needle that touch are mostly one span."""
    found: list[tuple[int, int]] = []
    for needle in needles.literals:
        size = len(needle)
        start = max(0, fresh - size + 1)
        # Only so is a long needle not looked for in all that waits, for each of many small chunks.
        if fresh and size > len(data) - fresh and data.find(needle[-_END:], max(start, fresh - _END + 1)) < 0:
            continue
        at = data.find(needle, start)
        if at >= 0:
            found.extend(_spans_of(data, needle, at))
    for reading in needles.readings:
        # The same for readings; where a chunk is large, all is read anyway.
        small = len(data) - fresh < fresh > _WINDOW
        if reading.is_hinted_at(data) and not (small and not _may_end(data[fresh - _WINDOW :], reading)):
            found.extend(_spans_read(data, reading))
    return found


def _may_end(window: bytes, reading: Reading) -> bool:
    """Say whether an occurrence may end in a window's last bytes: its beginning is there only to be read rightly."""
    # A run of backslashes is read in pairs from its first one, which may lie before the window.
    sure = window.lstrip(b"\\")
    if len(window) - len(sure) >= _LINE:
        return True
    text = b"".join(_read(sure, reading)[1])
    return any(needle[-_END:] in text for needle in reading.wanted)


def _read(data: bytes, reading: Reading) -> tuple[list[bytes], list[bytes]]:
    """The text in parts, every second of them an escape, and what these parts say."""
    parts = reading.tokens.split(data)
    said = parts.copy()
    said[1::2] = map(reading.meaning, parts[1::2])
    return parts, said


def _spans_read(data: bytes, reading: Reading) -> Iterator[tuple[int, int]]:
    """Find, in the text as it came, the occurrences that are found in the text as it is read."""
    parts, said = _read(data, reading)
    text = b"".join(said)
    found = [
        span for needle in reading.wanted if (at := text.find(needle)) >= 0 for span in _spans_of(text, needle, at)
    ]
    if not found:
        return
    read, came = [0, *accumulate(map(len, said))], [0, *accumulate(map(len, parts))]
    for start, end in found:
        first, last = bisect_right(read, start) - 1, bisect_right(read, end - 1) - 1
        begin = came[first] + (0 if first % 2 else start - read[first])
        over = came[last + 1] if last % 2 else came[last] + end - read[last]
        if over - begin >= SHORTEST_DERIVED:
            yield begin, over


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
    """Find where the repetitions of the unit that begin at `end` are over."""
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


def _star_out(data: bytes, spans: Sequence[tuple[int, int]]) -> bytes:
    if not spans:
        return data
    masked = bytearray(data)
    for start, end in spans:
        masked[start:end] = STAR * (end - start)
    return bytes(masked)


def _derivations(text: str, raw: bytes, *, large: bool) -> Iterator[bytes]:
    yield from _decode(text)
    if large:
        yield quote(text, safe="").encode()
        yield msgspec.json.encode(text)[1:-1]
        return
    yield raw.hex().encode()
    yield raw.hex().upper().encode()


def base64_forms(raw: bytes) -> Iterator[bytes]:
    """The base64 and base64url characters that a text alone decides, for each way it lies in the groups of three."""
    for before in range(3):
        first, last = -(-before * 8 // 6), (before + len(raw)) * 8 // 6
        for encode in (b64encode, urlsafe_b64encode):
            yield encode(bytes(before) + raw)[first:last]


def _decode(text: str) -> Iterator[bytes]:
    """Decode a value that is itself base64, such as that of Basic: the text, and what follows its first colon."""
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


def _escapes(raw: bytes, special: Sequence[str]) -> Iterator[Reading]:
    """A reading for each family of escapes that has one for a character of the value."""
    if not special:
        return
    # What lies between two such characters comes as it is. A short one could be guessed by how long the reading takes.
    anchor = max(_PLAIN_RUN.findall(raw), key=len, default=b"")
    anchor = anchor if len(anchor) >= _ANCHOR else b""
    # In a form + is a space, so where the value has a space both are read as one.
    space = b" " if " " in special else b"+"
    for charset in ("utf-8", "latin-1") if any("\x80" <= letter <= "\xff" for letter in special) else ("utf-8",):
        tokens, meaning = _percent_tokens(special, charset), _percent_meaning(space, charset)
        yield _reading(anchor, (b"%", b"+"), tokens, meaning, raw.replace(b"+", space))
    yield _reading(anchor, (b"\\",), _json_tokens(special), _json_meaning, raw)
    yield _reading(anchor, (b"&",), _html_tokens(special), _html_meaning, raw)


def _reading(
    anchor: bytes, marks: Iterable[bytes], tokens: bytes, meaning: Callable[[bytes], bytes], wanted: bytes
) -> Reading:
    # The library keeps what it compiled: that is which characters the value has, in order of the alphabet.
    compiled = re.compile(b"(" + tokens + b")")
    # There are only so many spellings of the value's characters.
    return Reading(anchor, tuple((mark, compiled) for mark in marks), compiled, lru_cache(1024)(meaning), (wanted,))


def _either(texts: Iterator[str]) -> bytes:
    """Any of these hexadecimal numbers, in any case; of none nothing matches."""
    return b"(?i:" + ("|".join(sorted(set(texts))) or "(?!)").encode() + b")"


def _percent_tokens(special: Sequence[str], charset: str) -> bytes:
    octets = _either(f"{octet:02x}" for letter in special for octet in letter.encode(charset, "ignore"))
    wide = _either(f"u{unit}" for letter in special for unit in _units(letter) if len(_units(letter)) == 1)
    return b"%(?:" + octets + b"|" + wide + b")" + (rb"|\+" if " " in special else b"")


def _percent_meaning(space: bytes, charset: str) -> Callable[[bytes], bytes]:
    def meaning(token: bytes) -> bytes:
        if token == b"+":
            return space
        wide = token[1:2] in b"uU"
        number = int(token[2 if wide else 1 :], 16)
        # An octet of UTF-8 is a part of a character, one of Latin-1 is a character.
        said = chr(number).encode() if wide or charset == "latin-1" else bytes((number,))
        return space if said == b"+" else said

    return meaning


def _units(letter: str) -> list[str]:
    units = letter.encode("utf-16-be")
    return [units[at : at + 2].hex() for at in range(0, len(units), 2)]


def _json_tokens(special: Sequence[str]) -> bytes:
    words = [rb"\\u".join(_either(iter((unit,))) for unit in _units(letter)) for letter in special]
    octets = _either(f"{ord(letter):02x}" for letter in special if ord(letter) < 0x100)
    short = [name for name, said in _JSON_SHORT.items() if said.decode() in special]
    itself = [re.escape(letter.encode()) for letter in special if letter in _JSON_ITSELF]
    return rb"\\(?:u(?:%s)|x%s%s)" % (b"|".join(words), octets, _or(short + itself))


def _json_meaning(token: bytes) -> bytes:
    kind = token[1:2]
    if kind == b"u":
        return bytes.fromhex(token.replace(rb"\u", b"").decode()).decode("utf-16-be").encode()
    if kind == b"x":
        return chr(int(token[2:], 16)).encode()
    return _JSON_SHORT.get(kind, kind)


def _html_tokens(special: Sequence[str]) -> bytes:
    decimal = "|".join(str(ord(letter)) for letter in special).encode()
    hexadecimal = _either(f"{ord(letter):x}" for letter in special)
    names = [name.encode() for letter in special for name in _NAMES.get(letter, ())]
    return b"&(?:#0{0,2}(?:%s)|#[xX]0{0,2}%s%s);" % (decimal, hexadecimal, _or(names))


def _or(more: Iterable[bytes]) -> bytes:
    return b"".join(b"|" + one for one in more)


def _html_meaning(token: bytes) -> bytes:
    if token[1] != 0x23:
        return html5[token[1:].decode()].encode()
    number = token[2:-1]
    return chr(int(number[1:], 16) if number[:1] in b"xX" else int(number)).encode()


def _nothing(_token: bytes) -> bytes:
    return b""
