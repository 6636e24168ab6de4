"""The check of `custody doctor` for other deployments on this host: under the same uids they are one to the kernel."""

from collections.abc import Iterator
from pathlib import Path

from ops import places, running
from ops.findings import Finding
from ops.settings import Settings

_PROCESSES = Path("/proc")
_NAMED = 3


def neighbours(settings: Settings) -> Finding:
    """List processes of the host under this deployment's uids that are not its own. No failure: it can be meant."""
    subject, base = "uids", settings.uid_base
    own = f"{base} to {max(places.uids(base).values())}"
    supervisor = running.find(settings.home)
    if supervisor is None:
        why = "`custody up` does not run in this state folder, and who else starts the processes chooses their uids"
        return Finding(subject, f"not looked at: {why}")
    if not any(found in places.uids(base).values() for found in _owners(settings.home)):
        return Finding(subject, f"not looked at: `custody up` runs here without uids of its own ({own} unused)")
    families = dict(_families())
    if not any(
        uid in places.uids(base).values() and _descends(pid, supervisor.pid, families)
        for pid, (uid, _) in families.items()
    ):
        return Finding(subject, f"{own}, and not looked at: {_PROCESSES} shows no process of other users here")
    others = sorted(
        pid
        for pid, (uid, _) in families.items()
        if uid in places.uids(base).values() and not _descends(pid, supervisor.pid, families)
    )
    also = f". {given}" if (given := places.also_given(base)) else ""
    if not others:
        return Finding(subject, f"{own}, of this deployment alone among {len(families)} processes{also}")
    named = ", ".join(map(str, others[:_NAMED])) + (" and more" if len(others) > _NAMED else "")
    return Finding(
        subject,
        f"{own}, and processes of another deployment run under them ({named}): each can read the other's keys. "
        f"{places.BASE_VARIABLE} keeps them apart (docs/operate.md){also}",
    )


def _owners(home: Path) -> Iterator[int]:
    for name in ("signer", "api", "proxy"):
        folder = home / name
        if folder.is_dir():
            yield folder.stat().st_uid


def _families() -> Iterator[tuple[int, tuple[int, int]]]:
    """The uid and the parent of each process. The owner of a folder there is root's for one that nobody may trace."""
    for folder in _PROCESSES.iterdir():
        if folder.name.isdecimal():
            try:
                said = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines() if ":" in line)
            except OSError:
                continue
            yield int(folder.name), (int(said["Uid"].split()[0]), int(said["PPid"]))


def _descends(pid: int, ancestor: int, families: dict[int, tuple[int, int]]) -> bool:
    while pid in families and pid != ancestor:
        pid = families[pid][1]
    return pid == ancestor
