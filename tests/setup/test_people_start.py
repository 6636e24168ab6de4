"""`custody up` with a master key file that people open: the shares on paper, from the terminal to a running service."""

import itertools
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from custody.kit.key_head import split
from tests.fixtures.brought_up import BroughtUp, starting
from tests.fixtures.eventually import eventually
from tests.outside.processes import PROJECT
from tests.outside.typing_person import type_at_a_terminal

pytestmark = pytest.mark.long

WRITTEN = "Enter, when it is written down and read over: "
SCREEN = re.compile(r"\x1b\[\?1049h(.*?)\x1b\[\?1049l", re.DOTALL)
PEOPLE = {"SERVICE_MASTER_KEY_SOURCE": "people"}


def copy_of(shown: str, label: str) -> str:
    """The words that somebody wrote down from the screen with this label."""
    [screen] = [screen for screen in SCREEN.findall(shown) if f"{label}," in screen]
    return " ".join(re.findall(r"\d+ ([a-z]+)", screen.split("once.")[1]))


def lock(home: Path, people: str, count: int) -> list[str]:
    """Seal the file for people at a terminal; the shares as they wrote them down."""
    labels = [f"share {number}" for number in range(1, count + 1)]
    back = {f"not shown: {label}: ": (lambda shown, label=label: copy_of(shown, label)) for label in labels}
    command = [sys.executable, "-P", "-m", "ops", "keys", "lock", "--to", f"people:{people}"]
    status, shown = type_at_a_terminal(command, surroundings(home), {WRITTEN: "", **back})
    assert status == 0, SCREEN.sub("", shown)
    return [copy_of(shown, label) for label in labels]


def surroundings(home: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT), "SERVICE_HOME": str(home)}


def bring(home: Path, share: str) -> subprocess.CompletedProcess[str]:
    """A person's session, whose terminal is a pipe."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "ops", "unlock"],
        env=surroundings(home),
        input=f"{share}\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def is_ready(running: BroughtUp) -> bool:
    try:
        return httpx.get(f"{running.url}/ready", timeout=60, trust_env=False).is_success
    except httpx.HTTPError:
        return False


def test_people_open_a_service_that_then_needs_them_no_more(tmp_path: Path) -> None:
    home = tmp_path / "home"
    shares = lock(home, "2/3", 3)
    assert [holder.kind for holder in split((home / "master.key").read_bytes())[0].holders] == ["people"]
    with starting(home, **PEOPLE) as running:
        first = eventually(lambda: bring(home, shares[0]), lambda done: "nobody waits" not in done.stderr)
        assert (first.returncode, first.stdout) == (0, "1 of 2 came; one more within 10 minutes.\n"), first.stderr
        again = bring(home, shares[0])
        assert (again.returncode, "Share 1 came already" in again.stderr) == (1, True)
        assert not is_ready(running)
        assert running.output().count("waits for people: each brings a share with `custody unlock`.") >= 1
        # What came is in the opener alone, and gone with it; another one waits.
        killed = running.pid_of("open")
        os.kill(killed, signal.SIGKILL)
        second = eventually(lambda: bring(home, shares[0]), lambda done: done.returncode == 0, about=running.output)
        assert second.stdout == "1 of 2 came; one more within 10 minutes.\n"
        assert running.pid_of("open") not in (0, killed)
        typed = [sys.executable, "-P", "-m", "ops", "unlock"]
        status, shown = type_at_a_terminal(typed, surroundings(home), {"not shown: ": shares[2]})
        assert (status, "the master key's file is open" in shown) == (0, True), shown
        eventually(lambda: "Ready in" in running.output(), about=running.output)
        eventually(lambda: is_ready(running), about=running.output)

        killed = running.pid_of("signer")
        os.kill(killed, signal.SIGKILL)
        eventually(lambda: running.pid_of("signer") not in (0, killed), about=running.output)
        eventually(lambda: is_ready(running), about=running.output)
        late = bring(home, shares[1])
        assert (late.returncode, "nobody waits for shares" in late.stderr) == (1, True)
        nobody_said(shares, running.output(), *[log.read_text() for log in (home / "log").glob("*.log")])


def nobody_said(shares: list[str], *outputs: str) -> None:
    """No log has two neighbouring words of a share."""
    for words in (share.split() for share in shares):
        assert not [pair for pair in itertools.pairwise(words) if any(" ".join(pair) in out for out in outputs)]
