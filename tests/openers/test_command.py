"""The opener of `command`: programs of an operator's, good and hostile."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from custody.kit.key_head import Holder
from tests.fixtures.each import each
from tests.outside.openers import AWAY, BAD_SETTINGS, FILE, KEY, NOT_OURS, REFUSED, Opener
from tests.outside.processes import PROJECT

HOLDER = Holder("command", "a-name", b"wrapped")
# Wraps by turning bits around, which is no secret; it also keeps what it was asked.
GOOD = f"""#!{sys.executable}
import base64, sys
given = sys.stdin.buffer.read()
open(__file__ + ".asked", "wb").write(repr(sys.argv[1:]).encode() + b"\\n" + given)
turn = lambda key: bytes(255 - byte for byte in key)
if sys.argv[1] == "wrap":
    file, key = given.split(b"\\n", 1)
    print("my-" + sys.argv[2], base64.b64encode(file + turn(key)).decode())
else:
    head = given.decode().splitlines()
    file = next(line.split()[1] for line in head if line.startswith("file "))
    (blob,) = [base64.b64decode(line.split()[3]) for line in head if line.startswith("holder ")]
    if blob[:16] != file.encode():
        sys.exit("of another file")
    sys.stdout.buffer.write(turn(blob[16:]))
"""


def opener(folder: Path, program: str, mode: int = 0o755) -> Opener:
    file = folder / "program"
    # Closed before it runs, and never written where it is: a program that is being written cannot be executed.
    file.write_text(program)
    file.chmod(mode)
    return Opener("command", {"SERVICE_MASTER_KEY_OPENER": str(file)})


def shell(folder: Path, script: str) -> Opener:
    return opener(folder, f"#!/bin/sh\n{script}\n")


def test_a_program_of_the_operator_wraps_and_opens(tmp_path: Path) -> None:
    ours = opener(tmp_path, GOOD)

    holder = ours.wrap("a-name")

    assert holder == Holder("command", "my-a-name", FILE.encode() + bytes(255 - byte for byte in KEY))
    assert ours.open(holder).output == KEY
    asked, _, head = (tmp_path / "program.asked").read_text().partition("\n")
    assert asked == "['open']"
    assert head.startswith("custody-sealed-keys 1\n")


def test_a_program_sees_its_own_holder_alone(tmp_path: Path) -> None:
    ours = opener(tmp_path, GOOD)
    holder = ours.wrap("a-name")

    assert ours.open(Holder("recovery", "someone", b"secret"), holder).output == KEY
    assert "recovery" not in (tmp_path / "program.asked").read_text()


@each(
    "script, status, words",
    [
        ("head -c 31 /dev/zero", NOT_OURS, "31 bytes"),
        ("head -c 33 /dev/zero", NOT_OURS, "more than 32"),
        ("exec cat /dev/zero", NOT_OURS, "more than 32"),
        ("exit 0", NOT_OURS, "0 bytes"),
        ("head -c 32 /dev/zero; exit 1", BAD_SETTINGS, "ended with 1"),
        ("echo ask later >&2; exit 75", AWAY, "ask later"),
        ("echo no >&2; exit 77", REFUSED, "no"),
        ("echo not mine >&2; exit 65", NOT_OURS, "not mine"),
        ("exit 65", NOT_OURS, "ended with 65"),
        ("echo no address >&2; exit 78", BAD_SETTINGS, "no address"),
        ("echo a reason >&2; exit 3", BAD_SETTINGS, "ended with 3, and may with 0, 65, 75, 77 or 78. a reason"),
        ("kill -9 $$", AWAY, "was killed by signal 9"),
        ("yes >&2 & sleep 1000 & head -c 31 /dev/zero; exit 0", NOT_OURS, "31 bytes"),
        ("exec 0<&-; head -c 33 /dev/zero", NOT_OURS, "more than 32"),
        ("printf '\\033]0;title\\007' >&2; exit 77", REFUSED, "?]0;title?"),
    ],
)
def test_a_program_that_does_not_open_is_told_apart(
    tmp_path_factory: pytest.TempPathFactory, script: str, status: int, words: str
) -> None:
    said = shell(tmp_path_factory.mktemp("program"), script).open(HOLDER)

    assert (said.status, said.output, words in said.sentence) == (status, b"", True), said


def test_a_program_that_says_32_bytes_is_believed(tmp_path: Path) -> None:
    """The seal of the file decides whether they are its key; and what else the program left is dead."""
    said = shell(tmp_path, "sleep 1000 & head -c 32 /dev/zero; exit 0").open(HOLDER)

    assert (said.status, said.output) == (0, bytes(32))


def test_a_long_complaint_is_cut(tmp_path: Path) -> None:
    said = shell(tmp_path, "head -c 100000 /dev/zero | tr '\\0' x >&2; exit 77").open(HOLDER)

    assert (said.status, len(said.sentence)) == (REFUSED, 2049)


@pytest.mark.long
@each("script", ["exec sleep 1000", "head -c 32 /dev/zero; exec >&-; exec sleep 1000", "exec yes >&2"])
def test_a_program_that_does_not_end_is_waited_for_as_one_that_is_away(
    tmp_path_factory: pytest.TempPathFactory, script: str
) -> None:
    said = shell(tmp_path_factory.mktemp("program"), script).open(HOLDER)

    assert (said.status, said.output, "did not end" in said.sentence) == (AWAY, b"", True), said


@each(
    "script",
    [
        "",
        "echo one-word",
        "echo a-name b.se64",
        "echo a-name YQ",
        "echo a-name YQ== more",
        "echo 'a name' YQ==",
        "echo a-name YQ==; echo a-name YQ==",
        "echo a-name $(head -c 8193 /dev/zero | base64 -w0)",
        "exec yes",
    ],
)
def test_an_answer_to_wrap_is_one_line_of_a_name_and_base64(
    tmp_path_factory: pytest.TempPathFactory, script: str
) -> None:
    said = shell(tmp_path_factory.mktemp("program"), script).try_to_wrap("a-name")

    assert (said.status, said.output) == (NOT_OURS, b""), said


def test_the_longest_answer_to_wrap_is_taken(tmp_path: Path) -> None:
    name = "n" * 512

    holder = shell(tmp_path, f"echo {name} $(head -c 8192 /dev/zero | base64 -w0)").wrap("a-name")

    assert holder == Holder("command", name, bytes(8192))


@each(
    "value, words",
    [
        ("", "absolute path"),
        ("program", "absolute path"),
        ("/nowhere/program", "not there"),
        ("/", "no file"),
        ("/dev/null", "no file"),
    ],
)
def test_a_setting_that_leads_to_no_program_is_named(value: str, words: str) -> None:
    said = Opener("command", {"SERVICE_MASTER_KEY_OPENER": value}).open(HOLDER)

    assert (said.status, words in said.sentence) == (BAD_SETTINGS, True), said
    assert "SERVICE_MASTER_KEY_OPENER" in said.sentence


@each(
    "program, mode, words",
    [
        ("#!/bin/sh\n", 0o644, "cannot be executed"),
        ("no first line\n", 0o755, "cannot be executed"),
        ("#!/nowhere/sh\n", 0o755, "cannot be executed"),
        (GOOD, 0o775, "others can change"),
        (GOOD, 0o757, "others can change"),
    ],
)
def test_a_program_that_cannot_be_trusted_or_run_is_named(
    tmp_path_factory: pytest.TempPathFactory, program: str, mode: int, words: str
) -> None:
    said = opener(tmp_path_factory.mktemp("program"), program, mode).open(HOLDER)

    assert (said.status, words in said.sentence) == (BAD_SETTINGS, True), said


def test_a_program_of_another_user_is_not_run(tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root can give a file away")
    ours = opener(tmp_path, GOOD)
    os.chown(tmp_path / "program", 65534, 65534)

    said = ours.open(HOLDER)

    assert (said.status, "others can change" in said.sentence) == (BAD_SETTINGS, True)
    assert not (tmp_path / "program.asked").exists()


def test_an_opener_and_what_it_starts_make_no_core_files(tmp_path: Path) -> None:
    """It would be the key of the file on a disk."""
    asked = tmp_path / "asked"
    ours = opener(tmp_path, f"#!/bin/sh\nulimit -c > {asked}; head -c 32 /dev/zero\n")
    before = resource.getrlimit(resource.RLIMIT_CORE)
    if not before[1]:
        pytest.skip("this process may make no core files itself")
    resource.setrlimit(resource.RLIMIT_CORE, (before[1], before[1]))
    try:
        plainly = subprocess.run([tmp_path / "program"], stdout=subprocess.DEVNULL, check=True)
        assert (plainly.returncode, asked.read_text() != "0\n") == (0, True)
        assert ours.open(HOLDER).status == 0
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, before)
    assert asked.read_text() == "0\n"


DUMPABLE = """
import ctypes, importlib, sys
begin = importlib.import_module(sys.argv[1]).main
before = ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)
try:
    begin(*eval(sys.argv[2]))
except SystemExit:
    pass
print(before, ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))
"""


@each(
    "program, words",
    [
        ("openers.__main__", "[[]]"),
        ("openers.locking", "[['--file', '/none', 'check']]"),
        ("openers.waiting", "[[], {}]"),
    ],
)
def test_a_program_that_has_the_key_shows_its_memory_to_nobody(program: str, words: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-P", "-c", DUMPABLE, program, words],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout == "1 0\n"
