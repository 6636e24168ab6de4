"""Children: what a child process may know, and that a dead one comes back."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from ops.children import BACKOFF, Backoff, Child, Program, environment_for
from tests.fixtures.eventually import soon

WAITS = "import signal; signal.pause()"
IGNORES_TERM = "import signal; signal.signal(15, signal.SIG_IGN); print('armed', flush=True); signal.pause()"
Make = Callable[..., Child]


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Make]:
    """Makes children that run a line of Python and are gone after the test."""
    made: list[Child] = []

    def child(code: str, stop_seconds: float = 10.0, backoff: Backoff = BACKOFF) -> Child:
        program = Program("dummy", (sys.executable, "-I", "-c", code), {}, tmp_path / "log", stop_seconds=stop_seconds)
        made.append(Child(program, lambda _text: None, backoff))
        return made[-1]

    yield child
    for each in made:
        await each.stop()


def pid_of(child: Child) -> int:
    assert child.process is not None
    return child.process.pid


async def test_a_killed_child_is_started_again_at_once(make: Make) -> None:
    # A process that waits at all comes too late.
    child = make(WAITS, backoff=Backoff(60.0, 60.0))
    child.start()
    first = pid_of(child)

    os.kill(first, signal.SIGKILL)

    await soon(lambda: pid_of(child) != first and child.alive)
    assert child.restarts == 1


async def test_a_child_that_keeps_dying_is_started_ever_more_slowly(make: Make) -> None:
    child = make("raise SystemExit(1)")
    began = asyncio.get_running_loop().time()
    child.start()

    await soon(lambda: child.restarts == 4)

    assert asyncio.get_running_loop().time() - began >= 0.2 + 0.4 + 0.8


async def test_a_child_that_only_the_operator_can_mend_is_not_started_again(tmp_path: Path) -> None:
    said: list[str] = []
    code = "import os, sys; print('noise'); sys.exit(print('The file x is wrong. Restore it.') or os.EX_CONFIG)"
    child = Child(Program("dummy", (sys.executable, "-I", "-c", code), {}, tmp_path / "log"), said.append)
    child.start()

    await soon(lambda: child.given_up)
    await child.stop()

    assert said == ["dummy: The file x is wrong. Restore it. Mend that, then restart Custody."]
    assert (child.restarts, child.alive) == (0, False)


async def test_a_child_that_was_well_is_tried_slowly_until_its_file_is_mended_and_says_so_once(tmp_path: Path) -> None:
    said: list[str] = []
    tries, good = tmp_path / "tries", tmp_path / "good"
    code = (
        "import os, pathlib, signal, sys; print('x', file=pathlib.Path(sys.argv[1]).open('a'))\n"
        "if pathlib.Path(sys.argv[2]).exists(): signal.pause()\n"
        "print('The file x is wrong. Restore it.'); sys.exit(os.EX_CONFIG)"
    )
    command = (sys.executable, "-I", "-c", code, str(tries), str(good))
    child = Child(Program("dummy", command, {}, tmp_path / "log"), said.append, Backoff(mending_seconds=0.05))
    child.settled = True
    child.start()

    await soon(lambda: tries.exists() and tries.read_text().count("x") > 2)
    good.touch()
    await soon(lambda: child.restarts > 2 and child.alive)
    at_last = child.process
    await soon(lambda: tries.read_text().count("x") == child.restarts + 1)

    assert child.process is at_last
    await child.stop()
    assert said == [
        "dummy: The file x is wrong. Restore it. Mend that: it is tried again every 0 s. "
        "After changing a setting, restart Custody."
    ]
    assert Backoff().mending_seconds == 30


async def test_a_child_that_cannot_be_started_is_tried_until_it_can(tmp_path: Path) -> None:
    said: list[str] = []
    logs = tmp_path / "logs"
    logs.mkdir()
    child = Child(
        Program("dummy", (sys.executable, "-I", "-c", WAITS), {}, logs / "log"), said.append, Backoff(0.2, 0.2)
    )
    child.start()
    first = pid_of(child)
    logs.rename(tmp_path / "away")

    os.kill(first, signal.SIGKILL)
    await soon(lambda: any("cannot be started" in text for text in said))
    (tmp_path / "away").rename(logs)

    await soon(lambda: pid_of(child) != first and child.alive)
    await child.stop()
    assert sum("cannot be started" in text for text in said) == 1


async def test_a_stopped_child_stays_stopped(make: Make) -> None:
    child = make(WAITS)
    child.start()

    await child.stop()

    assert not child.alive
    assert child.restarts == 0


async def test_a_child_that_will_not_end_is_killed_in_bounded_time(make: Make, tmp_path: Path) -> None:
    child = make(IGNORES_TERM, stop_seconds=0.2)
    child.start()
    await soon(lambda: "armed" in (tmp_path / "log").read_text())

    await asyncio.wait_for(child.stop(), 60)

    assert child.process is not None
    assert child.process.returncode == -signal.SIGKILL


@pytest.mark.skipif(sys.platform != "linux", reason="the parent-death signal is Linux's")
def test_children_end_with_a_supervisor_that_is_killed(tmp_path: Path) -> None:
    code = (
        "import sys, time; from ops.launch import Streams, launch\n"
        "child = launch([sys.executable, '-c', 'import signal; signal.pause()'], environment={},"
        " streams=Streams(open(sys.argv[1], 'wb'))); print(child.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code, tmp_path / "log"], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = os.pidfd_open(int(parent.stdout.readline()))

    parent.kill()
    parent.communicate()

    asyncio.run(_readable(child))
    os.close(child)


async def _readable(handle: int) -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(handle, ended.set)
    await asyncio.wait_for(ended.wait(), 60)
    asyncio.get_running_loop().remove_reader(handle)


ALL = {
    "PATH": "p",
    "SERVICE_ENV": "e",
    "SERVICE_DATABASE_URL": "owner",
    "SERVICE_DATABASE_URL_API": "a",
    "SERVICE_DATABASE_URL_SIGNER": "s",
    "SERVICE_MASTER_KEY_FILE": "m",
    "SERVICE_PLATFORM_KEY_FILE": "k",
    "SERVICE_RPC_URL_1": "r",
    "GOOGLE_CLIENT_SECRET": "g",
    "AWS_SECRET_ACCESS_KEY": "not ours",
    "AZURE_CLIENT_ID": "an opener's",
    "AZURE_CLIENT_SECRET": "an opener's",
    "SERVICE_KEY": "c",
    "SERVICE_TRANSIT_TOKEN_FILE": "t",
    "SERVICE_PKCS11_PIN_FILE": "n",
    "SERVICE_RECOVERY_KEY_FILE": "y",
}


@pytest.mark.parametrize(
    ("process", "secrets"),
    [
        ("signer", {"SERVICE_DATABASE_URL_SIGNER", "SERVICE_MASTER_KEY_FILE"}),
        ("identity", {"SERVICE_PLATFORM_KEY_FILE"}),
        ("api", {"SERVICE_DATABASE_URL_API", "SERVICE_RPC_URL_1", "GOOGLE_CLIENT_SECRET"}),
        ("scheduler", {"SERVICE_RPC_URL_1"}),
        ("proxy", set()),
    ],
)
def test_a_process_learns_only_what_is_meant_for_it(process: str, secrets: set[str]) -> None:
    assert set(environment_for(process, ALL)) == secrets | {"PATH", "SERVICE_ENV"}


PROXYS = {
    "SERVICE_PROXY_HOST": "h",
    "SERVICE_PROXY_PORT": "p",
    "SERVICE_PROXY_ALIASES": "a",
    "SERVICE_PROXY_CA_KEY_FILE": "k",
    "SERVICE_REVEAL_SOCKET": "r",
    "SERVICE_METRICS_HOST": "n",
    "SERVICE_METRICS_PORT_PROXY": "m",
    "SERVICE_DATABASE_URL_PROXY": "d",
    "SERVICE_RATE_LIMIT_MAX": "l",
    "SERVICE_PUBLIC_URL": "u",
}
OTHERS = {
    "SERVICE_CHAINS_FILE": "c",
    "SERVICE_TRUSTED_PROXIES": "t",
    "SERVICE_AGENT_TOKEN": "j",
    "SERVICE_SMTP_URL": "s",
    "SERVICE_SIGN_SOCKET": "s",
    "SERVICE_SOMETHING_NEW": "n",
    "HTTPS_PROXY": "p",
    "SSLKEYLOGFILE": "f",
}


def test_the_proxy_gets_what_it_needs_by_name_and_nothing_else() -> None:
    assert environment_for("proxy", ALL | PROXYS | OTHERS) == {"PATH": "p", "SERVICE_ENV": "e", **PROXYS}


def test_only_the_proxy_learns_where_its_key_lies() -> None:
    knowing = [
        p for p in ("signer", "api", "scheduler", "proxy") if "SERVICE_PROXY_CA_KEY_FILE" in environment_for(p, PROXYS)
    ]

    assert knowing == ["proxy"]
