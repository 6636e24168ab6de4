"""Programs that openers run: bounded in what they say and how long they take, and gone afterwards."""

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

from openers import bounded
from tests.fixtures.each import each
from tests.fixtures.eventually import eventually
from tests.outside.openers import KEY

ENOUGH, SHORT = 60.0, 0.3


def run(script: str, given: bytes = b"", most: int = 32, seconds: float = ENOUGH) -> bounded.Ended:
    return bounded.run(["sh", "-c", script], given, most=most, until=monotonic() + seconds, environment=os.environ)


def test_a_program_is_heard_to_its_end() -> None:
    ended = run("cat; echo a complaint >&2; exit 3", KEY)

    assert (ended.status, ended.output, ended.said) == (3, KEY, b"a complaint\n")


def test_a_program_may_say_as_much_as_it_may_and_no_more() -> None:
    assert len(run("head -c 32 /dev/zero").output) == 32
    with pytest.raises(bounded.SaidTooMuch):
        run("head -c 33 /dev/zero")


@each(
    "script",
    ["exec cat /dev/zero", "cat /dev/zero & wait", "trap '' TERM PIPE; exec yes", "setsid yes & wait"],
)
def test_an_endless_program_costs_no_memory(script: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    with pytest.raises(bounded.SaidTooMuch):
        run(script)

    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000


@each(
    "script",
    [
        "exec sleep 1000",
        "exec >&- ; exec sleep 1000",
        "exec >&- 2>&- <&-; exec sleep 1000",
        "head -c 32 /dev/zero; exec sleep 1000",
        "exec cat /dev/zero >&2",
        "trap '' TERM INT HUP; while :; do sleep 1000; done",
        "kill -STOP $$",
    ],
)
def test_a_program_that_does_not_end_is_ended(script: str) -> None:
    with pytest.raises(bounded.TookTooLong):
        run(script, bytes(100_000), seconds=SHORT)


def test_a_child_that_keeps_the_pipes_holds_nobody_up(tmp_path: Path) -> None:
    """Neither is waited for; the one of the group is killed, and one that left it can at least say nothing more."""
    ended = run(f"printf key; sleep 1000 & echo $! >{tmp_path}/child; exit 0")

    assert (ended.status, ended.output) == (0, b"key")
    eventually(lambda: is_alive(int((tmp_path / "child").read_text())), False)
    away = run(f"printf key; setsid sleep 1000 & echo $! >{tmp_path}/away; exit 0")
    assert away.output == b"key"
    os.kill(int((tmp_path / "away").read_text()), 9)


def test_a_program_dies_with_the_opener(tmp_path: Path) -> None:
    """To kill the group of the opener does not reach it, for it has one of its own."""
    program = (
        "import os; from time import monotonic; from openers import bounded; "
        f"bounded.run(['sh', '-c', 'echo $$ >{tmp_path}/made; mv {tmp_path}/made {tmp_path}/child; exec sleep 1000'], "
        "most=0, until=monotonic() + 1000, environment=os.environ)"
    )
    opener = subprocess.Popen([sys.executable, "-c", program])
    eventually((tmp_path / "child").exists)
    child = int((tmp_path / "child").read_text())
    assert is_alive(child)

    opener.kill()
    opener.wait(60)

    eventually(lambda: is_alive(child), False)


def test_a_complaint_is_cut_and_printable() -> None:
    ended = run("printf 'a\\033[31mred\\n\\tword \\377'>&2; head -c 10000 /dev/zero | tr '\\0' x >&2; exit 1")

    assert ended.complaint.startswith("a?[31mred word ?xxx")
    assert len(ended.said) == 2048


def test_output_is_not_shown() -> None:
    assert "canary" not in repr(run("printf canary"))


def test_a_program_that_is_told_much_need_not_listen() -> None:
    assert run("exit 0", bytes(1_000_000)).status == 0
    assert run("head -c 3; exit 0", b"abc" + bytes(1_000_000)).output == b"abc"


def test_only_named_descriptors_are_inherited(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        inherited = run(f"[ -e /proc/self/fd/{file.fileno()} ] && echo inherited")

    assert inherited.output == b""


@pytest.fixture(params=["missing", "a folder", "not executable", "of no format"])
def cannot_run(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    place = tmp_path / "program"
    if request.param == "a folder":
        place.mkdir()
    elif request.param != "missing":
        place.write_text("no program\n")
        place.chmod(0o755 if request.param == "of no format" else 0o644)
    return str(place)


def test_a_path_to_no_program_is_named(cannot_run: str) -> None:
    with pytest.raises(bounded.NotStarted, match=cannot_run):
        bounded.run([cannot_run], most=0, until=monotonic() + ENOUGH, environment={})


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
