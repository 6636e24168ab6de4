"""Files that people write, as YAML 1.2 or JSON, which is a part of it. Nothing in them is guessed.

Every value is read as the text that stands there, with its line; what it is (text, number, yes or no) is decided by the
field it is for, so that `NO`, `007` and `1e3` never become something else. Anchors, aliases, merge keys, tags and
directives are refused: a file says what it says, and no small one becomes a large one.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from words.texts.plain import plain

MAX_FILE_BYTES: Final = 2**20
# Reading takes a tenth of a millisecond for each value: more than these would be felt.
MAX_FILE_VALUES: Final = 50_000
MAX_FILE_DEPTH: Final = 32
STANDARD_INPUT: Final = "-"
_SHOWN: Final = 60


class BadFile(click.UsageError):
    """A file that cannot be used; the sentence names its line. What a terminal would obey is written out in it."""

    def __init__(self, sentence: str) -> None:
        super().__init__(plain(sentence))

    @property
    def sentence(self) -> str:
        """The sentence."""
        return self.message


@dataclass(frozen=True)
class Scalar:
    """A value: its text, whether it stood in quotes (or is a block of text), and its line."""

    text: str
    quoted: bool
    line: int


@dataclass(frozen=True)
class Items:
    """A list."""

    of: tuple["Node", ...]
    line: int


@dataclass(frozen=True)
class Fields:
    """Fields with their values, in the order of the file, and the lines of their names."""

    of: Mapping[str, "Node"]
    lines: Mapping[str, int]
    line: int


Node = Scalar | Items | Fields


def read_file(path: str) -> Node:
    """Read a file, or standard input for `-`; raises BadFile."""
    name = "standard input" if path == STANDARD_INPUT else path
    try:
        if path == STANDARD_INPUT:
            content = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
        else:
            with Path(path).open("rb") as file:
                content = file.read(MAX_FILE_BYTES + 1)
    except OSError as problem:
        raise BadFile(f"{name} cannot be read: {problem.strerror or type(problem).__name__}.") from None
    return read_text(content, name)


def read_text(content: bytes, name: str) -> Node:
    """Read what a file of this name holds; raises BadFile."""
    if len(content) > MAX_FILE_BYTES:
        raise BadFile(f"{name} is larger than {MAX_FILE_BYTES // 2**20} MiB, which is the most that is read.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadFile(f"{name} is no UTF-8 text.") from None
    return _Reader(text, name).whole()


class _Reader:
    """One text on its way to nodes, event by event: nothing is built that was not looked at."""

    def __init__(self, text: str, name: str) -> None:
        self._name = name
        self._events = self._read(text)
        self._values = 0

    def whole(self) -> Node:
        """The one document."""
        found: Node | None = None
        for event in self._events:
            match type(event).__name__:
                case "DocumentStartEvent":
                    if event.version or event.tags:
                        raise self._bad(event, "has a directive (`%`): leave it out")
                    if found is not None:
                        raise self._bad(event, "begins a second document: write one file for each")
                    found = self._node(next(self._events), 0)
                case _:
                    continue
        if found is None:
            raise BadFile(f"{self._name} is empty.")
        return found

    def _read(self, text: str) -> Iterator[Any]:
        # A tenth of a second, for which only what reads a file has to wait.
        from ruamel.yaml import YAML  # noqa: PLC0415
        from ruamel.yaml.error import YAMLError  # noqa: PLC0415

        try:
            yield from YAML(typ="safe", pure=True).parse(text)
        except YAMLError as problem:
            mark = getattr(problem, "problem_mark", None)
            said = getattr(problem, "problem", None) or "it has characters that no text has"
            where = f"{self._name}, line {mark.line + 1}" if mark is not None else self._name
            raise BadFile(f"{where}: this is neither YAML nor JSON: {said}.") from None
        except (ValueError, OverflowError, RecursionError, AttributeError, IndexError):
            raise BadFile(f"{self._name} is neither YAML nor JSON.") from None

    def _node(self, event: Any, depth: int) -> Node:
        self._values += 1
        if self._values > MAX_FILE_VALUES:
            raise self._bad(event, f"is more than the {MAX_FILE_VALUES:,} values that are read")
        if depth > MAX_FILE_DEPTH:
            raise self._bad(event, f"is deeper than {MAX_FILE_DEPTH} levels")
        if getattr(event, "anchor", None) is not None:
            raise self._bad(
                event, "has an anchor or alias (`&`, `*`): write it out; a text that begins so needs quotes"
            )
        if getattr(event, "tag", None) is not None:
            raise self._bad(event, "has a tag (`!`): leave it out; a text that begins so needs quotes")
        match type(event).__name__:
            case "ScalarEvent":
                return self._scalar(event)
            case "SequenceStartEvent":
                return Items(tuple(self._items(depth)), _line(event))
            case _:
                return self._fields(event, depth)

    def _items(self, depth: int) -> Iterator[Node]:
        while type(event := next(self._events)).__name__ != "SequenceEndEvent":
            yield self._node(event, depth + 1)

    def _fields(self, start: Any, depth: int) -> Fields:
        found: dict[str, Node] = {}
        lines: dict[str, int] = {}
        while type(event := next(self._events)).__name__ != "MappingEndEvent":
            name = self._node(event, depth + 1)
            if not isinstance(name, Scalar):
                raise self._bad(event, "has a name of a field that is no text")
            if name.text == "<<" and not name.quoted:
                raise self._bad(event, "merges other fields (`<<`): write them out")
            if name.text in found:
                raise self._bad(event, f"has the field `{name.text[:_SHOWN]}` for the second time")
            found[name.text], lines[name.text] = self._node(next(self._events), depth + 1), name.line
        return Fields(found, lines, _line(start))

    def _scalar(self, event: Any) -> Scalar:
        # JSON writes what is beyond the first plane as two halves.
        try:
            text = event.value.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            raise self._bad(event, "has half of a character") from None
        return Scalar(text, not event.implicit[0], _line(event))

    def _bad(self, event: Any, problem: str) -> BadFile:
        return BadFile(f"{self._name}, line {_line(event)}: this {problem}.")


def _line(event: Any) -> int:
    found: int = event.start_mark.line
    return found + 1
