"""The tree of RFC 6962, by its definition: any batches give its root, any proof leads there and no other does."""

import hashlib
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.audit import tree
from custody.audit.checkpoint import BadCheckpoint, Checkpoint, open_note, origin_of, read, sign_note

LEAVES = [tree.leaf_hash(bytes([number % 256, number // 256])) for number in range(600)]


def by_definition(leaves: list[bytes]) -> bytes:
    """MTH of RFC 6962 2.1."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return hashlib.sha256(b"\x01" + by_definition(leaves[:split]) + by_definition(leaves[split:])).digest()


def grow(batches: list[int]) -> tuple[list[bytes], dict[tree.Place, bytes]]:
    """A tree that was appended to in batches, with everything that was kept of it."""
    frontier: list[bytes] = []
    kept: dict[tree.Place, bytes] = {}
    for end, count in zip(accumulate(batches), batches, strict=True):
        frontier, completed = tree.append(end - count, frontier, LEAVES[end - count : end])
        kept |= dict(completed) | {(0, number): LEAVES[number] for number in range(end - count, end)}
    return frontier, kept


BATCHES = st.lists(st.integers(1, 90), min_size=1, max_size=6)


@given(BATCHES)
def test_appending_in_any_batches_gives_the_root_of_the_definition(batches: list[int]) -> None:
    frontier, kept = grow(batches)

    assert tree.root(frontier) == by_definition(LEAVES[: sum(batches)])
    found, low = [], 0
    # The complete subtrees that a tree of this size is made of, largest first.
    for level in sorted((bit for bit in range(10) if sum(batches) >> bit & 1), reverse=True):
        found.append(tree.hash_of(low, low + (1 << level), kept.__getitem__))
        low += 1 << level
    assert found == frontier


@given(BATCHES, st.data())
def test_shown_leaves_and_their_proof_lead_to_the_root_and_changed_ones_do_not(
    batches: list[int], data: st.DataObject
) -> None:
    frontier, kept = grow(batches)
    size = sum(batches)
    numbers = data.draw(st.sets(st.integers(0, size - 1), max_size=20))
    proof = [tree.hash_of(*one, kept.__getitem__) for one in tree.left_out(size, sorted(numbers))]
    shown = {number: LEAVES[number] for number in numbers}

    assert tree.root_of(size, shown, proof) == tree.root(frontier)
    if numbers:
        first = min(numbers)
        assert tree.root_of(size, shown | {first: LEAVES[599][::-1]}, proof) != tree.root(frontier)
    for bad in (proof[:-1], [*proof, LEAVES[0]]):
        if bad != proof:
            with pytest.raises(tree.BadProof):
                tree.root_of(size, shown, bad)


@given(BATCHES, st.data())
def test_a_tree_goes_on_from_each_of_its_beginnings_and_from_nothing_else(
    batches: list[int], data: st.DataObject
) -> None:
    frontier, kept = grow(batches)
    new = sum(batches)
    old = data.draw(st.integers(1, new))
    proof = [tree.hash_of(*one, kept.__getitem__) for one in tree.between(old, new)]
    old_root = by_definition(LEAVES[:old])

    assert tree.goes_on(old, old_root, new, tree.root(frontier), proof)
    assert not tree.goes_on(old, LEAVES[599], new, tree.root(frontier), proof)
    with pytest.raises(tree.BadProof):
        tree.goes_on(old, old_root, new, tree.root(frontier), [*proof, LEAVES[0]])


# ---- checkpoints

NOTE = sign_note(
    Checkpoint(origin_of("https://a.example:8443/x", "t"), 7, b"\x07" * 32), b"k" * 32, lambda _: b"s" * 64
)


def test_a_note_says_what_it_was_made_of() -> None:
    assert read(NOTE) == Checkpoint("a.example:8443/audit/t", 7, b"\x07" * 32)


@pytest.mark.parametrize(
    "note",
    [
        "",
        NOTE[:-1],
        NOTE + "\n",
        NOTE.replace("\n7\n", "\n07\n"),
        NOTE.replace("\n7\n", "\n-7\n"),
        NOTE.replace("\n7\n", "\n7\nmore\n"),
        NOTE.replace("=\n\n", "\n\n"),
        NOTE.replace("Bwc=", "Bwd="),
        NOTE.replace("\u2014", "-"),
        NOTE.replace("\n", "\r\n"),
        NOTE.split("\n\n", maxsplit=1)[0] + "\n\n",
        "x" * 5000,
    ],
    ids=[
        "empty",
        "cut",
        "longer",
        "zero in front",
        "below zero",
        "another line",
        "no padding",
        "loose bits",
        "a hyphen",
        "carriage returns",
        "unsigned",
        "too long",
    ],
)
def test_a_malformed_note_is_refused(note: str) -> None:
    with pytest.raises(BadCheckpoint):
        read(note)


@pytest.mark.parametrize("key", [b"k" * 32, b"", b"\x00" * 32], ids=["the named one", "none", "zeros"])
def test_a_wrong_signature_opens_with_no_key(key: bytes) -> None:
    with pytest.raises(BadCheckpoint):
        open_note(NOTE, [key])
