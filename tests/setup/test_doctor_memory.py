"""`custody doctor` says where keys may reach a disk by swap, and what keeps them out."""

from pathlib import Path

import pytest

from ops import doctor, doctor_memory
from ops.settings import load

ON = "Filename\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/sda2 partition\t1048572\t0\t-2\n"
OFF = ON.splitlines()[0] + "\n"
UNIT = "/system.slice/custody.service"


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A machine's lists: swap is on, process 7 runs in a unit."""
    (tmp_path / "proc/7").mkdir(parents=True)
    (tmp_path / "proc/swaps").write_text(ON)
    (tmp_path / "proc/7/cgroup").write_text(f"0::{UNIT}\n")
    limit(tmp_path, UNIT, "max")
    return tmp_path


def limit(machine: Path, group: str, most: str) -> None:
    folder = machine / f"cgroup{group}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.swap.max").write_text(f"{most}\n")


def keeps_out(machine: Path, pid: int | None = 7) -> tuple[str, str] | None:
    return doctor_memory.keeps_out(pid, machine / "proc", machine / "cgroup")


def test_swap_without_a_limit_is_named_with_its_cure(machine: Path) -> None:
    found, cure = keeps_out(machine)
    assert "on (/dev/sda2)" in found
    assert "MemorySwapMax=0" in cure


@pytest.mark.parametrize("group", [UNIT, "/system.slice"])
def test_a_group_that_may_not_swap_keeps_keys_out(machine: Path, group: str) -> None:
    limit(machine, group, "0")
    assert keeps_out(machine) is None
    # Of nothing that runs, nobody knows the group.
    assert keeps_out(machine, None) is not None
    assert keeps_out(machine, 8) is not None


@pytest.mark.parametrize("cgroup", ["", "4:memory:/system.slice\n", "0::/\n", "0::/../../proc\n", "0::/elsewhere\n"])
def test_a_group_that_cannot_be_read_is_not_believed(machine: Path, cgroup: str) -> None:
    limit(machine, UNIT, "0")
    (machine / "proc/7/cgroup").write_text(cgroup)
    assert keeps_out(machine) is not None


def test_no_swap_is_well_whatever_the_group(machine: Path) -> None:
    (machine / "proc/swaps").write_text(OFF)
    assert keeps_out(machine, None) is None


def test_swap_is_wrong_in_production_and_said_elsewhere(
    machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor_memory, "PROCESSES", machine / "proc")
    for environment, wrong in (("production", True), ("development", False)):
        found = doctor_memory.swap(load({"SERVICE_HOME": str(tmp_path / "home"), "SERVICE_ENV": environment}))
        assert (found.subject, found.cure is not None) == ("swap", wrong)
        assert "/dev/sda2" in found.found
    (machine / "proc/swaps").write_text(OFF)
    assert doctor_memory.swap(load({"SERVICE_HOME": str(tmp_path / "home")})).found == "keys are kept out of it"
    assert doctor_memory.swap in doctor._AT_ONCE
