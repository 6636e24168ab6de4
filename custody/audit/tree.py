"""The Merkle tree of RFC 6962 over the leaves of one log: appending to it, and proving what is in it. Pure.

A tree is known by its size and its frontier, the roots of the complete subtrees that it is made of, largest first;
appending needs nothing else. A proof is a list of hashes, each of a range of leaves, in the order in which the
recursion of docs/audit.md meets them.
"""

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

# Complete subtrees of every fourth level are kept, so a proof is made from at most sixteen rows for each of its hashes.
KEPT_LEVELS = 4

type Range = tuple[int, int]
# Level and position of a complete subtree: it has the leaves from position * 2^level on.
type Place = tuple[int, int]


class BadProof(Exception):
    """The proof has too few or too many hashes for what it is to prove."""


def leaf_hash(content: bytes) -> bytes:
    """The hash of a leaf; the byte in front keeps it apart from that of a node."""
    return hashlib.sha256(b"\x00" + content).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of a node over its two halves."""
    return hashlib.sha256(b"\x01" + left + right).digest()


def append(
    size: int, frontier: Sequence[bytes], leaves: Iterable[bytes]
) -> tuple[list[bytes], list[tuple[Place, bytes]]]:
    """The frontier with more leaves, and the subtrees that they completed on the levels that are kept."""
    grown, completed = list(frontier), []
    for number, leaf in enumerate(leaves, size):
        found = leaf
        # As many subtrees are completed as the number of leaves before this one ends in ones.
        for level in range(1, (~number & (number + 1)).bit_length()):
            found = node_hash(grown.pop(), found)
            if level % KEPT_LEVELS == 0:
                completed.append(((level, number >> level), found))
        grown.append(found)
    return grown, completed


def root(frontier: Sequence[bytes]) -> bytes:
    """The root of the whole tree."""
    if not frontier:
        return hashlib.sha256(b"").digest()
    found = frontier[-1]
    for left in reversed(frontier[:-1]):
        found = node_hash(left, found)
    return found


def left_out(size: int, shown: Sequence[int]) -> list[Range]:
    """The ranges of leaves whose hashes, with those of the shown leaves (in order), give the root."""
    return list(_left_out(0, size, shown))


def _left_out(low: int, high: int, shown: Sequence[int]) -> Iterator[Range]:
    at = bisect_left(shown, low)
    if at == len(shown) or shown[at] >= high:
        yield (low, high)
    elif high - low > 1:
        middle = low + _split(high - low)
        yield from _left_out(low, middle, shown)
        yield from _left_out(middle, high, shown)


def root_of(size: int, shown: Mapping[int, bytes], proof: Sequence[bytes]) -> bytes:
    """The root that the shown leaves have together with the hashes of the proof. Raises BadProof."""
    numbers, rest = sorted(shown), iter(proof)

    def walk(low: int, high: int) -> bytes:
        at = bisect_left(numbers, low)
        if at == len(numbers) or numbers[at] >= high:
            return _next(rest)
        if high - low == 1:
            return shown[low]
        middle = low + _split(high - low)
        left = walk(low, middle)
        return node_hash(left, walk(middle, high))

    if not size or (numbers and (numbers[0] < 0 or numbers[-1] >= size)):
        raise BadProof
    found = walk(0, size)
    _end(rest)
    return found


def between(old: int, new: int) -> list[Range]:
    """The ranges of leaves whose hashes show that the tree of the new size goes on from that of the old. RFC 6962."""
    return [] if old in (0, new) else list(_between(old, 0, new, whole=True))


def _between(old: int, low: int, high: int, *, whole: bool) -> Iterator[Range]:
    if old == high:
        if not whole:
            yield (low, high)
        return
    middle = low + _split(high - low)
    if old <= middle:
        yield from _between(old, low, middle, whole=whole)
        yield (middle, high)
    else:
        yield from _between(old, middle, high, whole=False)
        yield (low, middle)


def goes_on(old: int, old_root: bytes, new: int, new_root: bytes, proof: Sequence[bytes]) -> bool:
    """Say whether the proof shows that the new tree begins with all leaves of the old one. Raises BadProof."""
    rest = iter(proof)

    def walk(low: int, high: int, *, whole: bool) -> tuple[bytes, bytes]:
        if old == high:
            found = old_root if whole else _next(rest)
            return found, found
        middle = low + _split(high - low)
        if old <= middle:
            before, after = walk(low, middle, whole=whole)
            return before, node_hash(after, _next(rest))
        before, after = walk(middle, high, whole=False)
        left = _next(rest)
        return node_hash(left, before), node_hash(left, after)

    if not 0 < old <= new:
        raise BadProof
    found = walk(0, new, whole=True)
    _end(rest)
    return found == (old_root, new_root)


def places(ranges: Iterable[Range]) -> set[Place]:
    """The leaves and kept subtrees from which the hashes of these ranges are computed."""
    return {kept for low, high in ranges for place in _complete(low, high) for kept in _kept_under(place)}


def hash_of(low: int, high: int, known: Callable[[Place], bytes]) -> bytes:
    """The hash of one range that a proof names, from leaves and kept subtrees."""
    return root([_compute(place, known) for place in _complete(low, high)])


def _complete(low: int, high: int) -> Iterator[Place]:
    while low < high:
        level = (high - low).bit_length() - 1
        yield level, low >> level
        low += 1 << level


def _kept_under(place: Place) -> Iterator[Place]:
    level, position = place
    down = level % KEPT_LEVELS
    return ((level - down, number) for number in range(position << down, (position + 1) << down))


def _compute(place: Place, known: Callable[[Place], bytes]) -> bytes:
    hashes = [known(kept) for kept in _kept_under(place)]
    while len(hashes) > 1:
        hashes = [node_hash(left, right) for left, right in zip(hashes[::2], hashes[1::2], strict=True)]
    return hashes[0]


def _split(count: int) -> int:
    """The largest power of two below a count of two or more."""
    return 1 << ((count - 1).bit_length() - 1)


def _next(rest: Iterator[bytes]) -> bytes:
    found = next(rest, None)
    if found is None:
        raise BadProof
    return found


def _end(rest: Iterator[bytes]) -> None:
    if next(rest, None) is not None:
        raise BadProof
