"""Finds patterns with stars by a text that they must contain, so that a request does not try all of them.

An anchor is one such text and where it stands: the whole of a label or segment, its start, its end, or within it. Each
pattern is filed under the rarest of its anchors. Guarantees: what is found holds every pattern that matches; whether
one does is for the pattern to say. Made once, then asked for every request.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from custody.credentials.patterns import Pieces

Where = Literal["whole", "start", "end", "within"]


class _Shape(NamedTuple):
    """The part that an anchor is in, its place there, and its length, where that matters."""

    place: int
    where: Where
    length: int


_Anchor = tuple[_Shape, str]


class Anchors[Value]:
    """Values by the anchors of their patterns, each in the order in which they were given."""

    def __init__(self, patterns: Iterable[tuple[Sequence[Pieces], Value]]) -> None:
        filed = [(_anchors(parts), value) for parts, value in patterns]
        count = Counter(anchor for anchors, _ in filed for anchor in anchors)
        self._by_shape: dict[_Shape, dict[str, list[Value]]] = {}
        # Of stars alone: nothing tells them apart.
        self._bare: list[Value] = []
        for anchors, value in filed:
            if not anchors:
                self._bare.append(value)
                continue
            shape, text = min(anchors, key=lambda anchor: count[anchor])
            self._by_shape.setdefault(shape, {}).setdefault(text, []).append(value)
        # Parts behind this one are in no anchor.
        self.deepest = max((shape.place for shape in self._by_shape), default=-1)

    def of(self, parts: Sequence[str]) -> Iterator[list[Value]]:
        """The lists of values whose patterns may match these parts."""
        if self._bare:
            yield self._bare
        for shape, by_text in self._by_shape.items():
            if shape.place < len(parts):
                yield from _find(shape, by_text, parts[shape.place])


def _find[Value](shape: _Shape, by_text: dict[str, list[Value]], part: str) -> Iterator[list[Value]]:
    length = shape.length
    if shape.where == "within":
        starts = range(len(part) - length + 1)
        # A long part has more texts of this length than there are anchors.
        texts = {part[at : at + length] for at in starts} if len(starts) < len(by_text) else by_text.keys()
        yield from (by_text[text] for text in texts if text in by_text)
        return
    if shape.where != "whole":
        if len(part) < length:
            return
        part = part[:length] if shape.where == "start" else part[-length:]
    if found := by_text.get(part):
        yield found


def _anchors(parts: Sequence[Pieces]) -> list[_Anchor]:
    return [
        (_Shape(place, where, 0 if where == "whole" else len(text)), text)
        for place, pieces in enumerate(parts)
        for where, text in _texts(pieces)
        if text
    ]


def _texts(pieces: Pieces) -> Iterator[tuple[Where, str]]:
    if len(pieces) == 1:
        yield "whole", pieces[0]
        return
    yield "start", pieces[0]
    yield "end", pieces[-1]
    yield "within", max(pieces[1:-1], key=len, default="")
