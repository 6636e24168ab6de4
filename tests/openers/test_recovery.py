"""A recovery key: written down, typed again, opened by; and every way in which that goes wrong."""

import os
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.kit.key_head import Holder, write_head
from openers import written_key
from openers.kinds import recovery
from openers.written_key import SIGNS, Misspelt
from tests.openers.asking import FILE, run, unlock, wrap

KEY = bytes(range(32))
PRIVATE = bytes(range(100, 132))
TEXT = written_key.write(PRIVATE)
PUBLIC = recovery.public_of(TEXT)


def key_file(folder: Path, text: str, mode: int = 0o600) -> str:
    path = folder / "recovery.key"
    path.write_text(text)
    path.chmod(mode)
    return str(path)


@pytest.fixture(scope="module")
def holder() -> Holder:
    return wrap("recovery", PUBLIC, KEY)


def test_a_recovery_key_opens_what_its_public_key_wrapped(holder: Holder, tmp_path: Path) -> None:
    assert (holder.name, len(holder.blob)) == (PUBLIC, 32 + len(KEY) + 16)
    done = unlock(holder, SERVICE_RECOVERY_KEY_FILE=key_file(tmp_path, f"{TEXT}\n"))
    assert (done.returncode, done.stdout, done.stderr) == (0, KEY, b"")


def test_a_made_key_is_another_one_each_time_and_fits_its_public_key() -> None:
    made = [recovery.make() for _ in range(4)]
    assert all(recovery.public_of(text) == public for text, public in made)
    assert len({text for text, _ in made}) == len(made)


def test_two_wraps_of_one_key_are_different(holder: Holder) -> None:
    assert wrap("recovery", PUBLIC, KEY).blob != holder.blob


def test_one_of_two_recovery_keys_opens(holder: Holder, tmp_path: Path) -> None:
    other = wrap("recovery", recovery.make()[1], KEY)
    done = unlock(other, holder, SERVICE_RECOVERY_KEY_FILE=key_file(tmp_path, TEXT))
    assert (done.returncode, done.stdout) == (0, KEY)


@given(st.binary(min_size=32, max_size=32))
def test_a_key_is_read_as_it_was_written(key: bytes) -> None:
    text = written_key.write(key)
    assert text.isascii()
    assert len(text) <= written_key.MOST_TYPED
    groups = text.split(" ")[1]
    apart = [f"{written_key.PREFIX}\n{groups.replace('-', between)}" for between in (" ", "\n  ")]
    for typed in (text, text.lower(), f" {text}\r\n", *apart):
        assert written_key.read(typed) == key
    for typed in (
        groups.replace("-", ""),
        groups.replace("0", "O").replace("1", "I"),
        groups.lower().replace("1", "l"),
    ):
        assert written_key.read(f"{written_key.PREFIX} {typed}") == key


def wrong_texts() -> list[tuple[str, int]]:
    """Each wrong sign at each place of one key, and exchanges of signs and of groups; with the group that is wrong."""
    groups = TEXT.removeprefix(f"{written_key.PREFIX} ").split("-")
    found = []

    def put(at: int, group: str) -> None:
        if group != groups[at]:
            found.append(("-".join([*groups[:at], group, *groups[at + 1 :]]), at + 1))

    for at, group in enumerate(groups):
        for place in range(len(group)):
            for sign in SIGNS:
                put(at, group[:place] + sign + group[place + 1 :])
            for other in range(place):
                signs = list(group)
                signs[place], signs[other] = signs[other], signs[place]
                put(at, "".join(signs))
        for instead in groups:
            put(at, instead)
        put(at, group[1:])
        put(at, group + group[0])
        put(at, "U" + group[1:])
        put(at, "é" + group[1:])
    return found


def test_every_wrong_group_is_named_and_none_is_repeated() -> None:
    tried = wrong_texts()
    assert len(tried) > 14 * 5 * 31
    for text, group in tried:
        with pytest.raises(Misspelt) as problem:
            written_key.read(f"{written_key.PREFIX} {text}")
        assert str(problem.value).startswith(f"Group {group} of")
        assert not any(sign in str(problem.value) for sign in text.split("-"))


def test_wrong_signs_in_two_groups_that_each_fit_are_noticed_by_the_last_one() -> None:
    other = written_key.write(bytes(random.Random(3).randbytes(32)))
    ours, theirs = (text.split(" ")[1].split("-") for text in (TEXT, other))
    for at in range(14):
        with pytest.raises(Misspelt, match="more than one sign"):
            written_key.read(f"{written_key.PREFIX} {'-'.join([*ours[:at], theirs[at], *ours[at + 1 :]])}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "begins with"),
        (PRIVATE.hex(), "begins with"),
        (TEXT.removeprefix(written_key.PREFIX), "begins with"),
        (TEXT.replace("-1 ", "-2 "), "begins with"),
        (TEXT[:-6], "and 13 were given"),
        (f"{TEXT}-00000", "and 15 were given"),
        (written_key.PREFIX, "and 0 were given"),
        (f"{TEXT}{' ' * 300}", "longer than"),
        ("\0" * 100, "begins with"),
        (TEXT.replace("-", "—"), "begins with"),
        (f"{written_key.PREFIX} " + TEXT.split(" ")[1].replace("-", "—"), "Group 2 of the recovery key"),
    ],
)
def test_a_text_that_is_none_is_refused_with_the_reason(text: str, said: str) -> None:
    with pytest.raises(Misspelt, match=said):
        written_key.read(text)


@pytest.mark.parametrize(
    "name",
    [
        PUBLIC.upper(),
        PUBLIC[:-1],
        f"{PUBLIC}0",
        TEXT.replace(" ", "-"),
        "",
        *(value.to_bytes(32, "little").hex() for value in (0, 1, 2**255 - 19, 2**255 - 18, 2**255 - 20)),
    ],
)
def test_a_name_that_is_no_public_key_is_not_wrapped_for(name: str) -> None:
    done = run("recovery", "wrap", name, given=f"{FILE}\n".encode() + KEY)
    assert (done.returncode, done.stdout) == (os.EX_CONFIG, b"")
    assert b"public key" in done.stderr
    assert name == "" or name.encode() not in done.stderr


def test_a_changed_blob_or_another_file_is_not_opened(holder: Holder, tmp_path: Path) -> None:
    path = key_file(tmp_path, TEXT)
    changed = bytes([holder.blob[40] ^ 1])
    blobs = [b"", holder.blob[:-1], holder.blob + b"\0", holder.blob[:40] + changed + holder.blob[41:], bytes(80)]
    for blob in [one for one in blobs if one]:
        done = unlock(Holder("recovery", PUBLIC, blob), SERVICE_RECOVERY_KEY_FILE=path)
        assert (done.returncode, done.stdout) == (os.EX_DATAERR, b"")
        assert b"was changed or belongs to another file" in done.stderr
    done = unlock(holder, file="0000000000000000", SERVICE_RECOVERY_KEY_FILE=path)
    assert (done.returncode, done.stdout) == (os.EX_DATAERR, b"")


def test_another_recovery_key_is_said_to_be_another_one(holder: Holder, tmp_path: Path) -> None:
    done = unlock(holder, SERVICE_RECOVERY_KEY_FILE=key_file(tmp_path, recovery.make()[0]))
    assert done.returncode == os.EX_DATAERR
    assert b"another recovery key" in done.stderr


def test_a_key_file_that_others_may_read_is_refused(holder: Holder, tmp_path: Path) -> None:
    for mode in (0o640, 0o604, 0o660, 0o644):
        done = unlock(holder, SERVICE_RECOVERY_KEY_FILE=key_file(tmp_path, TEXT, mode))
        assert (done.returncode, done.stdout) == (os.EX_NOPERM, b"")
        assert b"may be read by others" in done.stderr


def test_a_path_of_no_key_file_is_refused_with_its_name(holder: Holder, tmp_path: Path) -> None:
    key_file(tmp_path, TEXT)
    (tmp_path / "link").symlink_to(tmp_path / "recovery.key")
    os.mkfifo(tmp_path / "pipe", 0o600)
    (tmp_path / "long").write_text(TEXT + " " * 300)
    (tmp_path / "long").chmod(0o600)
    said = {"link": b"symbolic link", "pipe": b"no regular file", "long": b"too long", "none": b"No such file"}
    for name, sentence in {**said, ".": b"no regular file"}.items():
        done = unlock(holder, SERVICE_RECOVERY_KEY_FILE=str(tmp_path / name))
        assert (done.returncode, done.stdout) == (os.EX_CONFIG, b"")
        assert sentence in done.stderr
        assert b"SERVICE_RECOVERY_KEY_FILE" in done.stderr


def test_an_opener_without_a_key_and_without_a_terminal_says_what_it_needs(holder: Holder) -> None:
    done = unlock(holder)
    assert (done.returncode, done.stdout) == (os.EX_CONFIG, b"")
    assert b"SERVICE_RECOVERY_KEY_FILE" in done.stderr
    assert b"terminal" in done.stderr


def test_a_wrong_group_in_the_file_is_named_and_not_repeated(holder: Holder, tmp_path: Path) -> None:
    groups = TEXT.split("-")
    wrong = "-".join([*groups[:5], groups[5][::-1], *groups[6:]])
    assert wrong != TEXT
    done = unlock(holder, SERVICE_RECOVERY_KEY_FILE=key_file(tmp_path, wrong))
    assert done.returncode == os.EX_CONFIG
    assert b"Group 4 of" in done.stderr
    assert not any(group.encode() in done.stderr for group in wrong.split("-") if len(group) == 5)


def test_a_recovery_key_typed_at_a_terminal_opens_and_is_not_shown(holder: Holder) -> None:
    head = write_head(FILE, (holder,)).text
    shown, key = at_a_terminal(head, TEXT)
    assert key == KEY
    assert "Recovery key" in shown
    assert not any(group in shown for group in TEXT.split("-")[2:])


def at_a_terminal(head: bytes, typed: str) -> tuple[str, bytes]:
    """Type this once it asked: the text that the terminal showed, and the bytes that the opener wrote."""
    read, write = os.pipe()
    given, give = os.pipe()
    program, terminal = os.forkpty()
    if program == 0:
        os.dup2(given, 0)
        os.dup2(write, 1)
        os.execv(os.sys.executable, [os.sys.executable, "-P", "-m", "openers", "recovery", "open"])
    os.close(write)
    os.close(given)
    os.write(give, head)
    os.close(give)
    shown = b""
    while not shown.endswith(b"not shown: "):
        shown += os.read(terminal, 1024)
    os.write(terminal, f"{typed}\n".encode())
    with open(read, "rb") as out:
        key = out.read()
    while more := _rest(terminal):
        shown += more
    assert os.waitpid(program, 0)[1] == 0
    os.close(terminal)
    return shown.decode(), key


def _rest(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1024)
    except OSError:
        return b""
