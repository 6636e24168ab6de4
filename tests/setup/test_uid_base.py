"""Two deployments on one host: under two bases of uids neither is anything to the other, under one they are one."""

import os
import pwd
import re
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
from ops import places, variables
from tests.fixtures.brought_up import BroughtUp, brought_up, custody
from tests.outside.processes import PROJECT

OURS, OTHERS = places.uids(64720), places.uids(64730)
ROOT = pytest.mark.skipif(os.geteuid() != 0 or sys.platform != "linux", reason="only root can give uids")


def up(home: Path, base: int) -> AbstractContextManager[BroughtUp]:
    """A deployment that root brings up."""
    return brought_up(home, SERVICE_UID_BASE=str(base))


def as_uid(uid: int, act: Callable[[], str]) -> str:
    """Act in a process of this uid that belongs to no deployment; return the result, or the error's name."""
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
            wire.settimeout(60)
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
        assert re.search(
            r"^ok     uids: 64720 to 64727, of this deployment alone among \d+ processes", alone, re.MULTILINE
        )
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
    page = (PROJECT / "docs/operate.md").read_text()
    (script,) = (text.split("```")[0] for text in page.split("```sh\n") if text.startswith("for n in 0 1 2 3 4 5 6"))
    script = script.replace("60800", "64740").replace("64710", "64720")
    subprocess.run(["sh", "-ec", script], env={"PATH": os.defpath, "SERVICE_HOME": str(home)}, check=True)


@ROOT
def test_a_folder_of_sockets_elsewhere_goes_to_another_base_too(open_folder: Path) -> None:
    home = open_folder / ("long" * 20)
    made = places.open_home(home, 64720)
    elsewhere = places.socket_folder(made.file("run"), owner=OURS["signer"], mode=0o711)
    try:
        assert home not in elsewhere.parents
        with pytest.raises(OSError, match="belongs to another user"):
            places.socket_folder(made.file("run"), owner=places.uids(64740)["signer"], mode=0o711)

        _given_to_another_base(home)

        again = places.socket_folder(made.file("run"), owner=places.uids(64740)["signer"], mode=0o711)
        assert (again, again.stat().st_uid) == (elsewhere, places.uids(64740)["signer"])
    finally:
        elsewhere.rmdir()


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


@pytest.mark.parametrize(
    ("range_of", "refused"),
    [("65000:100", False), ("60807:65536", True), ("60808:65536", False), ("60000:801", True), ("60000:800", False)],
)
def test_a_base_in_a_range_of_containers_is_refused(tmp_path: Path, range_of: str, refused: bool) -> None:
    file = tmp_path / "subuid"
    file.write_text(f"# no range\nsomebody:100000\nbuilder:{range_of}\n")
    given, files = {"SERVICE_UID_BASE": "60800"}, (tmp_path / "absent", file)
    if not refused:
        assert places.unused_uid_base(given, files) == 60800
        return
    with pytest.raises(BadSetting, match=f"SERVICE_UID_BASE: uid 6080[07] is that of containers of builder .{file}"):
        places.unused_uid_base(given, files)


def test_the_default_base_in_a_range_of_containers_is_said_and_starts(tmp_path: Path) -> None:
    file = tmp_path / "subuid"
    file.write_text("builder:64000:1000\n")

    assert places.unused_uid_base({}, [file]) == 64710
    assert f"uid 64710 is also that of containers of builder ({file})" in str(
        places.also_given(64710, tmp_path / "absent", [file])
    )
    # The control: a range beside it.
    file.write_text("builder:100000:65536\n")
    assert places.also_given(64710, tmp_path / "absent", [file]) is None


def test_a_base_of_which_systemd_gives_uids_is_said_where_it_runs(tmp_path: Path) -> None:
    given = [places.also_given(base, tmp_path, ()) for base in (61170, 61180, 64710, 65510, 65520)]

    assert [sentence is not None for sentence in given] == [False, True, True, True, False]
    assert "SERVICE_UID_BASE: systemd may give a uid from 61180 on to a service with DynamicUser=" in str(given[1])
    assert places.also_given(places.UNGIVEN_BASE, tmp_path, ()) is None
    # The control: another init gives none.
    assert places.also_given(64710, tmp_path / "absent", ()) is None


def test_the_default_base_is_looked_at_too(monkeypatch: pytest.MonkeyPatch) -> None:
    # What root would be told, also where another user runs this.
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("pwd.getpwuid", lambda uid: pwd.struct_passwd(("taken", "", uid, uid, "", "", "")))
    with pytest.raises(BadSetting, match="SERVICE_UID_BASE: uid 64710 is that of taken"):
        variables.check({})


def test_ranges_are_the_same_or_apart() -> None:
    assert places.uid_base({}) == 64710
    assert places.UIDS == {
        **{"postgres": 64710, "signer": 64711, "api": 64712, "scheduler": 64713},
        **{"proxy": 64714, "identity": 64715, "chain": 64716, "opener": 64717},
    }
    assert not set(places.uids(64710).values()) & set(places.uids(64720).values())
