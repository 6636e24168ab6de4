"""Keys in the memory of signer and identity: they reach no core file and no swap, and a restart drops old ones.

Root may read a process' memory, and here it does, as one who took the machine would.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ops import places
from tests.fixtures.deployments import database_apart, deploy, owner_of
from tests.fixtures.images import compose
from tests.fixtures.keepsakes import custody
from tests.fixtures.server import Service
from tests.outside.processes import PROJECT

pytestmark = pytest.mark.long

PIECE = 1 << 22
NEEDED = {"POSTGRES_PASSWORD": "p" * 20, "SERVICE_PUBLIC_URL": "https://custody.example.com"}


@pytest.fixture(scope="module")
def apart(postgres_home: places.Home, worker_id: str) -> Iterator[Service]:
    """A deployment of real processes, whose key this file rotates."""
    with deploy(database_apart(postgres_home, f"{worker_id}_memory"), really=True) as service:
        yield service


@pytest.mark.parametrize("name", ["signer", "identity"])
def test_a_process_with_keys_writes_no_core_file_and_gains_no_rights(apart: Service, name: str) -> None:
    proc = Path(f"/proc/{apart.processes[name].pid}")
    limits, status = (proc / "limits").read_text(), (proc / "status").read_text()
    assert re.search(r"^Max core file size +0 +0 ", limits, re.MULTILINE)
    assert "NoNewPrivs:\t1\n" in status


@pytest.mark.skipif(os.geteuid() != 0, reason="reading another process' memory needs root")
async def test_a_retired_version_is_gone_from_memory_once_the_signer_was_restarted(apart: Service) -> None:
    [(old, _)] = versions_of(apart)
    before = versions_of(apart)[0][1]
    assert count(apart, before) > 0
    await settle_after(apart, "keys", "rotate", "--new")
    [now] = [key for version, key in versions_of(apart) if version != old]

    ended = custody(apart, "keys", "rotate", "--retire", "--at-once")

    assert ended.returncode == 0, ended.stderr
    assert f"Retired: {old}." in ended.stdout
    assert "Restart the service" in ended.stdout
    assert [version for version, _ in versions_of(apart)] == [int(old) + 1]
    # The control, and the reason for the sentence: what is retired is still there until then.
    assert count(apart, before) > 0
    apart.kill("signer")
    apart.start("signer")
    assert (count(apart, now) > 0, count(apart, before)) == (True, 0)


@pytest.mark.parametrize("service", ["signer", "identity"])
def test_a_container_with_keys_has_no_swap(service: str) -> None:
    found = compose(NEEDED)["services"]
    assert found[service]["memswap_limit"] == found[service]["mem_limit"]
    assert "memswap_limit" not in found["api"]


def test_the_unit_of_the_page_has_no_swap() -> None:
    unit = re.search(r"```ini\n(.*?)```", (PROJECT / "docs/operate.md").read_text(), re.DOTALL)
    assert "\nMemorySwapMax=0\n" in unit[1]
    assert "\nLimitCORE=0\n" in unit[1]


def versions_of(service: Service) -> list[tuple[int, bytes]]:
    """The versions in the master key file."""
    lines = [line for line in (service.home / "master.key").read_text().splitlines() if not line.startswith("#")]
    return [(int(version), bytes.fromhex(key)) for version, key in (line.split(" ")[:2] for line in lines)]


def count(service: Service, key: bytes) -> int:
    """Count how often a key lies in the signer's memory, raw or in hex."""
    pid = service.processes["signer"].pid
    wanted = re.compile(b"|".join(re.escape(form) for form in (key, key.hex().encode(), key.hex().upper().encode())))
    found = 0
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            begin, end = (int(part, 16) for part in line.split(" ")[0].split("-"))
            if line.split(" ")[1].startswith("rw") and "[vvar" not in line:
                found += sum(len(wanted.findall(piece)) for piece in pieces(memory, begin, end))
    return found


def pieces(memory, begin: int, end: int) -> Iterator[bytes]:
    """The memory between two addresses, in parts that overlap by a key in hex."""
    while begin < end:
        memory.seek(begin)
        try:
            yield memory.read(min(PIECE, end - begin))
        except OSError:
            return  # Not there for anybody.
        begin += PIECE - 64 if end - begin > PIECE else PIECE


async def settle_after(service: Service, *words: str) -> None:
    """Rotate, and as if the version had been begun an hour ago."""
    ended = custody(service, *words)
    assert ended.returncode == 0, ended.stderr
    async with owner_of(service.database) as owner:
        await owner.execute("UPDATE key_versions SET begun_at = begun_at - interval '1 hour'")
