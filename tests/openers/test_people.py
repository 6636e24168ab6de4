"""People who open with their shares: k of n, at a socket, in time; and everything that somebody may bring instead."""

import contextlib
import dataclasses
import itertools
import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shamir_mnemonic.wordlist import WORDLIST

from custody.kit.key_head import Holder
from openers.kinds import people
from openers.outcomes import BadSettings, NotOurs
from tests.fixtures.eventually import eventually
from tests.openers.asking import FILE, run, unlock
from tests.openers.gathering import bring, connect, holder_of, key_of, lines_of, wait_for

KEY = bytes(range(32))
DRAWN = random.Random(182)
SPLIT = people.split("3/5", FILE, KEY)
SHARES = SPLIT.shares
LATER = people.split("3/5", FILE, KEY).shares
OF_ANOTHER_FILE = people.split("3/5", "0000000000000001", KEY).shares
# What another user runs, who cannot read our sources.
BRING = """
import socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
try:
    connection.sendall(sys.stdin.buffer.read())
except OSError:
    pass  # It said no and went already.
print(connection.makefile().readline())
"""
OF_TWO = people.split("2/3", FILE, KEY).shares


@pytest.fixture
def path() -> Iterator[Path]:
    """A place for a socket: the folder of a test may have a path too long for one."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder) / "unlock.sock"


def gathering() -> people.Gathering:
    return people.Gathering(people.read_blob(SPLIT.name, SPLIT.blob), FILE)


def change(share: str, at: int, word: str) -> str:
    words = share.split()
    return " ".join([*words[:at], word, *words[at + 1 :]])


def repeats(answer: str, share: str) -> bool:
    """Say whether two neighbouring words of a share stand in an answer; one alone may stand in the sentence itself."""
    words = share.lower().split()
    return any(f"{first} {second}" in answer.lower() for first, second in itertools.pairwise(words))


def exchange(share: str) -> str:
    """The share with the first two neighbours exchanged that differ."""
    words = share.split()
    at = next(at for at in range(4, 32) if words[at] != words[at + 1])
    return " ".join([*words[:at], words[at + 1], words[at], *words[at + 2 :]])


@pytest.mark.parametrize("brought", list(itertools.permutations(range(5), 3)))
def test_any_three_of_five_open(brought: tuple[int, ...]) -> None:
    ours = gathering()
    assert [ours.add(SHARES[at], 0.0) for at in brought] == [None, None, KEY]


def test_fewer_than_needed_and_any_others_never_make_the_key() -> None:
    ours = gathering()
    assert [ours.add(share, 0.0) for share in SHARES[:2]] == [None, None]
    assert (ours.counts(1.0).came, ours.counts(1.0).needed) == (2, 3)


def test_three_people_open_at_the_socket_and_the_opener_ends(path: Path) -> None:
    with wait_for(holder_of(SPLIT), path) as opener:
        assert (path.stat().st_mode & 0o777, path.stat().st_uid) == (0o600, os.geteuid())
        assert bring(path, SHARES[4]) == ["waiting 0 3 600", "came 1 3 600"]
        first, second = bring(path, SHARES[0].upper())
        assert (first.split()[:3], second.split()[:3]) == (["waiting", "1", "3"], ["came", "2", "3"])
        assert bring(path, " ".join(word[:4] for word in SHARES[2].split()))[1] == "opened"
        assert key_of(opener) == (0, KEY, b"")
    assert not path.exists()


WRONG = {
    "a share twice": (SHARES[0], "Share 1 came already: another person's is needed."),
    "an earlier split": (LATER[1], "That is a share of something else, or of an earlier split"),
    "another file": (OF_ANOTHER_FILE[1], "That is a share of something else, or of an earlier split"),
    "another number needed": (OF_TWO[0], "That is a share of something else, or of an earlier split"),
    "a wrong word": (change(SHARES[1], 6, "zzzz"), "Word 7 is none of the list: look at its letters."),
    "a word in other letters": (change(SHARES[1], 0, "\u0430cid"), "Word 1 is none of the list"),
    "another word of the list": (
        change(SHARES[1], 9, next(word for word in WORDLIST if word not in SHARES[1])),
        "The words do not fit together",
    ),
    "two words exchanged": (exchange(SHARES[1]), "The words do not fit together"),
    "a word short": (" ".join(SHARES[1].split()[:-1]), "A share has 33 words, and 32 were given."),
    "a word more": (f"{SHARES[1]} academic", "A share has 33 words, and 34 were given."),
    "nothing": ("", "A share has 33 words, and 0 were given."),
    "a short share": (" ".join(SHARES[1].split()[:20]), "A share has 33 words, and 20 were given."),
    "the key in hex": (KEY.hex(), "Word 1 is none of the list"),
    "numbered words": (" ".join(f"{at} {word}" for at, word in enumerate(SHARES[1].split())), "Word 1 is none"),
    "control characters": ("\x1b[2J\0\x07", "Word 1 is none of the list"),
    "a long line": ("academic " * 200, "That is too long for a share"),
    "an endless line": ("a" * 300_000, "That is too long for a share"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_line_is_refused_by_name_and_repeated_by_nobody(what: str, path: Path) -> None:
    text, said = WRONG[what]
    with wait_for(holder_of(SPLIT), path) as opener:
        assert bring(path, SHARES[0])[1].startswith("came 1 3")
        answer = say_all(path, text)
        assert answer.startswith(f"no {said}")
        assert not repeats(answer, text)
        # Nothing of it counted, and nothing that came before was lost.
        assert bring(path, SHARES[1])[1].startswith("came 2 3")
        assert bring(path, SHARES[2])[1] == "opened"
        assert key_of(opener) == (0, KEY, b"")


def say_all(path: Path, text: str) -> str:
    """The answer to a line that may be longer than anybody reads."""
    connection = connect(path)
    with contextlib.suppress(OSError):
        connection.sendall(f"{text}\n".encode())
    with connection:
        greeting, answer = b"", b""
        while not greeting.endswith(b"\n"):
            greeting += connection.recv(1)
        while not answer.endswith(b"\n"):
            answer += connection.recv(1)
    return answer.decode()


def test_a_share_of_another_file_with_the_same_number_is_told() -> None:
    forged = people.shared_of(3, "0000000000000001", SHARES)
    ours = people.Gathering(people.read_blob(SPLIT.name, forged.pack()), FILE)
    with pytest.raises(people.NoShare, match="another sealed key file"):
        ours.add(SHARES[0], 0.0)


FIELDS = {"iteration_exponent": 15, "extendable": False, "group_index": 1, "group_threshold": 2, "group_count": 2}


@pytest.mark.parametrize("field", FIELDS)
def test_a_share_that_says_something_else_of_itself_is_not_taken(field: str) -> None:
    """Its value is ours and its checksum right; with that exponent a key would be computed for hours."""
    share = people.Share.from_mnemonic(SHARES[0])
    more = {"group_count": 2} if field == "group_threshold" else {}
    forged = dataclasses.replace(share, **{field: FIELDS[field], **more}).mnemonic()
    with pytest.raises(people.NoShare, match="something else"):
        gathering().add(forged, 0.0)
    assert gathering().add(share.mnemonic(), 0.0) is None


@given(st.one_of(st.text(), st.lists(st.sampled_from(WORDLIST), min_size=30, max_size=36).map(" ".join)))
def test_a_line_of_any_words_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(people.NoShare) as problem:
        people.Gatherings([gathering(), gathering()]).add(text, 0.0)
    assert not repeats(str(problem.value), text)


@given(st.binary(min_size=32, max_size=32), st.integers(0, 31), st.integers(0, 9), st.integers(0, 15))
def test_a_share_with_a_right_checksum_that_nobody_made_here_is_refused(
    value: bytes, identifier: int, needed: int, index: int
) -> None:
    ours = people.Share.from_mnemonic(SHARES[0])
    forged = dataclasses.replace(
        ours, value=value, identifier=ours.identifier ^ identifier, member_threshold=needed + 1, index=index
    )
    with pytest.raises(people.NoShare):
        gathering().add(forged.mnemonic(), 0.0)


def test_shares_that_make_no_key_together_are_all_dropped() -> None:
    """The checks of the blob say yes, as they would of a head that somebody wrote."""
    mixed = people.split("3/5", FILE, bytes(32)).shares
    words = [people.Share.from_mnemonic(share) for share in mixed]
    ours = people.Share.from_mnemonic(SHARES[0])
    forged = [
        people.Share(ours.identifier, True, 0, 0, 1, 1, share.index, 3, share.value).mnemonic() for share in words
    ]
    shared = people.shared_of(3, FILE, [SHARES[0], *forged[1:]])
    one = people.Gathering(shared, FILE)
    assert [one.add(share, 0.0) for share in (SHARES[0], forged[1])] == [None, None]
    with pytest.raises(people.NoShare, match="all were dropped"):
        one.add(forged[2], 0.0)
    assert one.counts(0.0).came == 0


def test_shares_are_dropped_ten_minutes_after_the_first_one() -> None:
    ours = gathering()
    assert ours.add(SHARES[0], 100.0) is None
    assert ours.add(SHARES[1], 699.0) is None
    assert (ours.counts(699.5).came, ours.counts(699.5).seconds) == (2, 0)
    assert (ours.counts(700.0).came, ours.counts(700.0).seconds) == (0, 600)
    assert ours.add(SHARES[2], 700.0) is None
    assert ours.counts(700.0).came == 1


def test_an_opener_at_its_socket_drops_them_too(path: Path) -> None:
    with wait_for(holder_of(SPLIT), path, constants=["GATHERING_SECONDS=1"]) as opener:
        assert bring(path, SHARES[0])[1].startswith("came 1 3")
        eventually(lambda: lines_of(look(path))[0], "waiting 0 3 1")
        assert opener.poll() is None


def look(path: Path):
    """A connection of somebody who only looks."""
    connection = connect(path)
    connection.shutdown(1)
    return connection


def test_one_who_only_looks_is_told_how_many_came(path: Path) -> None:
    with wait_for(holder_of(SPLIT), path):
        assert lines_of(look(path)) == ["waiting 0 3 600", "no Nothing was sent."]


def test_one_who_is_slow_is_told_so_and_holds_up_nobody(path: Path) -> None:
    with wait_for(holder_of(SPLIT), path, constants=["LINE_SECONDS=0.5"]) as opener:
        slow = connect(path)
        slow.sendall(SHARES[0].encode()[:40])
        assert lines_of(slow)[1].startswith("no It took too long")
        answers = [bring(path, share)[-1].split()[0] for share in SHARES[:3]]
        assert answers in (["came", "came", "opened"],)
        assert key_of(opener)[:2] == (0, KEY)


def test_more_connections_than_are_served_are_refused_and_the_rest_goes_on(path: Path) -> None:
    with wait_for(holder_of(SPLIT), path) as opener:
        held = [connect(path) for _ in range(people.CONNECTIONS_AT_ONCE)]
        assert [one.recv(7) for one in held] == [b"waiting"] * len(held)
        assert lines_of(connect(path)) == ["no Too many talk to this opener at once: try again."]
        for one in held:
            one.close()
        assert [
            eventually(lambda share=share: bring(path, share)[-1].split()[0], ("came", "opened").__contains__)
            for share in SHARES[:3]
        ] == ["came", "came", "opened"]
        assert key_of(opener)[1] == KEY


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_another_user_is_refused_even_where_the_socket_is_open_to_all(path: Path) -> None:
    path.parent.chmod(0o711)
    command = [shutil.which("setpriv") or "setpriv", "--reuid=64799", "--clear-groups"]
    command += [os.path.realpath("/usr/bin/python3"), "-c", BRING, str(path)]
    with wait_for(holder_of(SPLIT), path):
        share = f"{SHARES[0]}\n".encode()
        closed = subprocess.run(command, input=share, capture_output=True, check=False)
        assert b"PermissionError" in closed.stderr
        path.chmod(0o666)
        opened = subprocess.run(command, input=share, capture_output=True, check=False)
        assert opened.stdout.decode().strip() == "no Only root, or the user that the opener runs as, may bring shares."
        assert lines_of(look(path))[0] == "waiting 0 3 600"


def test_a_socket_that_a_killed_opener_left_is_no_obstacle(path: Path) -> None:
    with wait_for(holder_of(SPLIT), path) as opener:
        opener.kill()
        opener.wait()
    assert path.exists()
    with wait_for(holder_of(SPLIT), path) as opener:
        eventually(lambda: opener.poll() is None and answers(path))


def answers(path: Path) -> bool:
    try:
        return lines_of(look(path))[:1] == ["waiting 0 3 600"]
    except ConnectionRefusedError:
        return False


def test_the_people_of_any_line_open(path: Path) -> None:
    board = other_split()
    with wait_for(holder_of(SPLIT), path, others=[holder_of(board)]) as opener:
        # The greeting is of those who lack least, and each hears of their own.
        assert bring(path, SHARES[0]) == ["waiting 0 2 600", "came 1 3 600"]
        assert bring(path, board.shares[1])[1].split()[:3] == ["came", "1", "2"]
        assert bring(path, SHARES[0])[1].startswith("no Share 1 came already")
        assert bring(path, OF_ANOTHER_FILE[1])[1].startswith("no That is a share of something else")
        assert bring(path, board.shares[0])[1] == "opened"
        assert key_of(opener) == (0, KEY, b"")


def test_a_line_that_was_changed_keeps_nobody_from_another_one(path: Path) -> None:
    with wait_for(Holder("people", "3-of-5", b"x"), path, others=[holder_of(SPLIT)]) as opener:
        assert [bring(path, share)[1].split()[0] for share in SHARES[:3]] == ["came", "came", "opened"]
        assert key_of(opener)[:2] == (0, KEY)


def other_split() -> people.Split:
    """A split with another number, as all but one of 32,768 have."""
    return next(
        split for split in (people.split("2/2", FILE, KEY) for _ in range(9)) if split.blob[3:5] != SPLIT.blob[3:5]
    )


def test_an_opener_without_a_place_to_wait_says_which_setting_names_it(tmp_path: Path) -> None:
    done = unlock(holder_of(SPLIT))
    assert (done.returncode, done.stdout) == (os.EX_CONFIG, b"")
    assert b"SERVICE_UNLOCK_SOCKET is not set" in done.stderr
    (tmp_path / "file").touch()
    for place in (tmp_path / "none" / "unlock.sock", tmp_path / "file", tmp_path / ("x" * 120)):
        done = unlock(holder_of(SPLIT), SERVICE_UNLOCK_SOCKET=str(place))
        assert (done.returncode, done.stdout) == (os.EX_CONFIG, b"")
        assert b"cannot be listened at" in done.stderr
    assert (tmp_path / "file").exists()


def test_shares_are_never_made_by_a_program_that_shows_them_to_nobody() -> None:
    done = run("people", "wrap", "3/5", given=f"{FILE}\n".encode() + KEY)
    assert (done.returncode, done.stdout) == (os.EX_CONFIG, b"")
    assert b"custody keys lock" in done.stderr


@pytest.mark.parametrize(
    "given", ["", "3", "1/1", "1/5", "0/0", "6/5", "2/17", "3/5/7", "-3/5", "\uff13/5", "3 /5", "99/99"]
)
def test_a_number_of_people_that_makes_no_sense_is_refused(given: str) -> None:
    with pytest.raises(BadSettings, match="K/N"):
        people.split(given, FILE, KEY)


NUMBER = SPLIT.name.partition("@")[2]


@pytest.mark.parametrize(
    "holder",
    [
        Holder("people", SPLIT.name, SPLIT.blob[:-1]),
        Holder("people", SPLIT.name, SPLIT.blob + b"\0"),
        Holder("people", f"2-of-5@{NUMBER}", SPLIT.blob),
        Holder("people", f"3-of-4@{NUMBER}", SPLIT.blob),
        Holder("people", "3-of-5", SPLIT.blob),
        Holder("people", SPLIT.name, SPLIT.blob[:3] + bytes([SPLIT.blob[3] ^ 1]) + SPLIT.blob[4:]),
        Holder("people", SPLIT.name, b"\2" + SPLIT.blob[1:]),
        Holder("people", SPLIT.name, SPLIT.blob[:4]),
        Holder("people", f"1-of-5@{NUMBER}", SPLIT.blob[:1] + b"\1" + SPLIT.blob[2:]),
        Holder("people", f"200-of-5@{NUMBER}", SPLIT.blob[:1] + b"\xc8" + SPLIT.blob[2:]),
    ],
)
def test_a_line_that_was_changed_is_said_to_be_so(holder: Holder) -> None:
    with pytest.raises(NotOurs, match="was changed"):
        people.read_blob(holder.name, holder.blob)
    done = unlock(holder)
    assert (done.returncode, done.stdout) == (os.EX_DATAERR, b"")


def test_a_blob_says_nothing_of_the_key_and_a_split_shows_no_share() -> None:
    assert len(SPLIT.blob) == 5 + 5 * 8
    assert KEY not in SPLIT.blob
    values = [people.Share.from_mnemonic(share).value for share in SHARES]
    assert not any(value[at : at + 8] in SPLIT.blob for value in values for at in range(25))
    assert repr(SPLIT) == f"Split(3-of-5@{NUMBER})"
    assert not any(word in repr(gathering()) for word in SHARES[0].split())


def test_the_library_alone_would_say_words_that_nobody_should_read() -> None:
    """The control: its own error names the first words of a share."""
    with pytest.raises(people.MnemonicError) as problem:
        people.Share.from_mnemonic(change(SHARES[0], 9, next(word for word in WORDLIST if word not in SHARES[0])))
    assert SHARES[0].split()[0] in str(problem.value)
