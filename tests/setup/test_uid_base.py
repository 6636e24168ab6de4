"""Two deployments on one host: under two bases of uids neither is anything to the other, under one they are one."""

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec
import pytest

from custody.kit.environment import BadSetting
from custody.protocol.frames import VERSION, Hello
from custody.protocol.framing import frame
from ops import places
from tests.fixtures.brought_up import BroughtUp, brought_up, custody
from tests.outside.processes import PROJECT

OURS, OTHERS = places.uids(64720), places.uids(64730)
ROOT = pytest.mark.skipif(os.geteuid() != 0 or sys.platform != "linux", reason="only root can give uids")


def up(home: Path, base: int) -> AbstractContextManager[BroughtUp]:
    """A deployment that root brings up."""
    return brought_up(home, SERVICE_UID_BASE=str(base))


def as_uid(uid: int, act: Callable[[], str]) -> str:
    """What an act comes to in a process of this uid that belongs to no deployment; the name of what it met instead."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            said = act()
        except BaseException as problem:
            said = type(problem).__name__
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as heard:
        said = heard.read()
    os.waitpid(child, 0)
    return said


def reads(file: Path) -> Callable[[], str]:
    """Opening a key file."""
    return lambda: "read" if file.read_text() else "empty"


def greets(path: Path, process: str) -> Callable[[], str]:
    """Saying hello on a worker's socket."""

    def act() -> str:
        with socket.socket(socket.AF_UNIX) as wire:
            wire.settimeout(10)
            wire.connect(str(path))
            try:
                wire.sendall(frame(msgspec.msgpack.encode(Hello(VERSION, process))))
                return "taken" if wire.recv(1) else "closed"
            except (BrokenPipeError, ConnectionResetError):
                # It hung up before the greeting, which it does not read.
                return "closed"

    return act


@ROOT
@pytest.mark.long
def test_a_process_of_another_base_is_nothing_here(open_folder: Path) -> None:
    one, two = open_folder / "one", open_folder / "two"
    with up(one, 64720), up(two, 64730):
        key = one / "signer" / "master.key"
        sign, reveal, identity = (
            (one / run).resolve() / name
            for run, name in (("run", "sign.sock"), ("run", "reveal.sock"), ("run-identity", "identity.sock"))
        )
        places_of = {
            "key": ("signer", reads(key)),
            "address": ("api", reads(one / "db" / "api.url")),
            "database": ("postgres", reads(one / "postgres" / "data" / "PG_VERSION")),
            "sign": ("api", greets(sign, "api")),
            "reveal": ("proxy", greets(reveal, "proxy")),
            "identity": ("scheduler", greets(identity, "scheduler")),
        }
        # The control: what the same base lets a process of any deployment do.
        same = {what: as_uid(OURS[process], act) for what, (process, act) in places_of.items()}
        other = {what: as_uid(OTHERS[process], act) for what, (process, act) in places_of.items()}
        alone = custody(one, "doctor", SERVICE_UID_BASE="64720").stdout

        assert same == dict.fromkeys(("key", "address", "database"), "read") | dict.fromkeys(
            ("sign", "reveal", "identity"), "taken"
        )
        assert other == dict.fromkeys(("key", "address", "database"), "PermissionError") | dict.fromkeys(
            ("sign", "reveal", "identity"), "closed"
        )
        assert "ok     uids: 64720 to 64726, of this deployment alone" in alone
        assert {Path(f"{home}/signer").stat().st_uid for home in (one, two)} == {OURS["signer"], OTHERS["signer"]}

    # Its files are those of its first base.
    refused = custody(one, "migrate")
    assert refused.returncode == 2
    assert (
        f"SERVICE_UID_BASE: the processes of {one} have run under the uids from 64720 on: set it to" in refused.stderr
    )
    _given_to_another_base(one)
    with up(one, 64740):
        assert as_uid(places.uids(64740)["signer"], reads(one / "signer" / "master.key")) == "read"


def _given_to_another_base(home: Path) -> None:
    """As the page says."""
    page = (PROJECT / "docs/one-host.md").read_text()
    (script,) = (text.split("```")[0] for text in page.split("```sh\n") if text.startswith("for n in 0 1 2 3 4 5 6"))
    script = script.replace("64720", "64740").replace("64710", "64720")
    subprocess.run(["sh", "-ec", script], env={"PATH": os.defpath, "SERVICE_HOME": str(home)}, check=True)


@ROOT
@pytest.mark.long
def test_the_doctor_names_a_process_of_another_deployment(open_folder: Path) -> None:
    home = open_folder / "one"
    with up(home, 64720), tempfile.TemporaryFile() as nothing:
        stranger = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, stdout=nothing, user=OURS["proxy"], group=0)
        said = custody(home, "doctor", SERVICE_UID_BASE="64720").stdout
        stranger.communicate()

    assert f"another deployment run under them ({stranger.pid}): each can read the other's keys" in said


@pytest.mark.parametrize("base", ["64715", "65530", "0", "-10", "2147483640", "many"])
def test_a_base_that_cannot_be_is_refused_by_name(base: str) -> None:
    with pytest.raises(BadSetting, match="SERVICE_UID_BASE: must be"):
        places.uid_base({"SERVICE_UID_BASE": base})


def test_ranges_are_the_same_or_apart() -> None:
    assert places.uid_base({}) == 64710
    assert places.UIDS == {
        **{"postgres": 64710, "signer": 64711, "api": 64712, "scheduler": 64713},
        **{"proxy": 64714, "identity": 64715, "chain": 64716},
    }
    assert not set(places.uids(64710).values()) & set(places.uids(64720).values())
