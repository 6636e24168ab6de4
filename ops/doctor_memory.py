"""The check of `custody doctor` for swap: what signer and identity have in memory, a disk would keep."""

from pathlib import Path

from ops import running
from ops.findings import Finding
from ops.settings import Settings

PROCESSES = Path("/proc")
GROUPS = Path("/sys/fs/cgroup")
_SUBJECT = "swap"


def swap(settings: Settings) -> Finding:
    """Say whether keys may reach a disk by swap: wrong in production, for elsewhere nobody minds."""
    supervisor = running.find(settings.home)
    found = keeps_out(supervisor.pid if supervisor else None, PROCESSES, GROUPS)
    if found is None or settings.production:
        return Finding(_SUBJECT, *(("keys are kept out of it", None) if found is None else found))
    return Finding(_SUBJECT, f"{found[0]}; in production: {found[1]}")


def keeps_out(supervisor: int | None, processes: Path, groups: Path) -> tuple[str, str] | None:
    """None where no key reaches a swap; else a finding, and its cure. Children are in their supervisor's group."""
    try:
        on = [line.split()[0] for line in (processes / "swaps").read_text().splitlines()[1:] if line.strip()]
    except OSError:
        return "not looked at: this machine does not list its swap", "see whether it is off"
    if not on or (supervisor is not None and _is_forbidden(supervisor, processes, groups)):
        return None
    return (
        f"on ({', '.join(on)}), and nothing keeps the memory of signer and identity out of it",
        "MemorySwapMax=0 in the unit (docs/operate.md), or swapoff, or encrypt it with a key that is in memory alone",
    )


def _is_forbidden(pid: int, processes: Path, groups: Path) -> bool:
    """Say whether the process' group, or one above it, may have no page in swap; version 2 alone is read."""
    try:
        lines = (processes / str(pid) / "cgroup").read_text().splitlines()
    except OSError:
        return False
    place = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), "")
    group = groups / place
    while group != groups and group.is_relative_to(groups):
        if _read(group / "memory.swap.max") == "0":
            return True
        group = group.parent
    return False


def _read(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""
