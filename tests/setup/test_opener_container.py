"""The opener of compose.opener.yaml puts the key where the signer of compose.yaml finds it, each as its own user.

No container is made: the opener runs as the file and the image say, with a folder in place of each mount.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from custody.kit.key_head import Holder, write_head
from openers.kinds import people
from ops import places
from ops.runtime import Python, python_for
from tests.fixtures.eventually import eventually
from tests.fixtures.images import compose, stages
from tests.openers.gathering import bring
from tests.outside.processes import PROJECT, die_with

IN_MEMORY = Path("/dev/shm")
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(os.geteuid() != 0, reason="users of their own need root"),
    pytest.mark.skipif(not IN_MEMORY.is_dir(), reason="there is no folder in memory here"),
]

FILE, KEY = "5089efbf191005cb", bytes(range(32))
GIVEN = {
    "POSTGRES_PASSWORD": "not-this-one",
    "SERVICE_PUBLIC_URL": "https://custody.example.com",
    "SERVICE_MASTER_KEY_SOURCE": "people",
}
SERVICES = compose(GIVEN, PROJECT / "compose.opener.yaml")["services"]
STAGE = stages()["opener"]
# What the signer does with its variable, in the signer's own words.
READ = """
import os, sys
from signer.unlock import Unlock
key = Unlock(os.environ["SERVICE_MASTER_KEY_UNLOCK"]).key_of(sys.argv[1])
print(key.seal.__self__ is key, repr(key))
"""


class Machine:
    """The mounts of both, and an interpreter that every user can run."""

    def __init__(self, folder: Path, memory: Path) -> None:
        self.mounts = {
            "/etc/opener": folder / "opener",
            "/run/unlock": memory / "unlock",
            "/run/opener": memory / "run",
        }
        for place in self.mounts.values():
            place.mkdir(mode=0o755)
        for place in ("/run/unlock", "/run/opener"):
            os.chown(self.mounts[place], *uids("opener"))
            self.mounts[place].chmod(0o700)
        self.folder = folder
        self.python: Python = python_for(places.open_home(folder / "python"))

    def environment_of(self, service: str) -> dict[str, str]:
        said = {**STAGE.environment, **SERVICES[service]["environment"]} if service == "opener" else {}
        said |= {name: SERVICES[service]["environment"][name] for name in ("SERVICE_MASTER_KEY_UNLOCK",)}
        for mount, place in self.mounts.items():
            said = {name: str(value).replace(mount, str(place)) for name, value in said.items()}
        return said | {"PATH": os.environ["PATH"], **self.python.environment}

    def start(self, service: str, *words: str) -> subprocess.Popen[bytes]:
        uid, gid = uids(service)
        with (self.folder / f"{service}.log").open("ab") as log:
            return subprocess.Popen(
                [str(self.python.program), *words],
                cwd="/",
                env=self.environment_of(service),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                user=uid,
                group=gid,
                extra_groups=[],
                preexec_fn=die_with(os.getpid()),  # noqa: PLW1509
            )

    def log_of(self, service: str) -> str:
        return (self.folder / f"{service}.log").read_text()


def uids(service: str) -> tuple[int, int]:
    uid, gid = SERVICES[service]["user"].split(":")
    return int(uid), int(gid)


@pytest.fixture
def machine() -> Iterator[Machine]:
    """Folders that other users can enter, which the folders of tests are not."""
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as memory:
        folder = Path(tempfile.mkdtemp(prefix="co-", dir="/tmp"))
        for one in (folder, Path(memory)):
            one.chmod(0o755)
        try:
            yield Machine(folder, Path(memory))
        finally:
            shutil.rmtree(folder)


def test_the_signer_reads_what_its_opener_put_into_memory(machine: Machine) -> None:
    split = people.split("2/3", FILE, KEY)
    head = machine.mounts["/etc/opener"] / "head"
    head.write_bytes(write_head(FILE, (Holder("people", split.name, split.blob),)).text)
    head.chmod(0o644)
    _, *words = STAGE.entrypoint
    too_early = machine.start("signer", "-P", "-c", READ, FILE)
    opener = machine.start("opener", *words)
    try:
        assert too_early.wait(60) != 0
        socket = machine.mounts["/run/opener"] / "unlock.sock"
        # Root brings shares, as `docker compose exec --user 0` would, and so may the opener's own user.
        eventually(lambda: socket.exists() and answer_of(socket, split.shares[0]), "came")
        assert bring(socket, split.shares[1])[-1] == "opened"
        _, *check = STAGE.healthcheck
        eventually(lambda: machine.start("opener", *check).wait(60), 0, about=lambda: machine.log_of("opener"))
        assert machine.start("signer", "-P", "-c", READ, FILE).wait(60) == 0, machine.log_of("signer")
    finally:
        opener.terminate()
        opener.wait(60)
    assert "is not at" in machine.log_of("signer")
    assert machine.log_of("signer").endswith("True FileKey()\n")
    assert f"opened the master key file {FILE}" in machine.log_of("opener")
    # Nobody else gets in, and the opener never saw more of the file than its head.
    assert machine.mounts["/run/unlock"].stat().st_mode & 0o077 == 0


def answer_of(socket: Path, share: str) -> str:
    try:
        return bring(socket, share)[-1].split()[0]
    except ConnectionRefusedError:
        return ""
