"""What `custody doctor` finds of other deployments on this host: under the same uids they are one to the kernel."""

from collections.abc import Iterator
from pathlib import Path

from ops import places, running
from ops.findings import Finding
from ops.settings import Settings

_PROCESSES = Path("/proc")
_NAMED = 3


def neighbours(settings: Settings) -> Finding:
    """Which processes of the host run under this deployment's uids and are not its own. No failure: it can be meant."""
    subject, base = "uids", settings.uid_base
    own = f"{base} to {max(places.uids(base).values())}"
    supervisor = running.find(settings.home)
    separate = any(found in places.uids(base).values() for found in _owners(settings.home))
    if supervisor is None or not separate:
        return Finding(subject, f"{own}, unused: `custody up` does not run here, or without uids of its own")
    families = dict(_families())
    others = sorted(
        pid
        for pid, (uid, _) in families.items()
        if uid in places.uids(base).values() and not _descends(pid, supervisor.pid, families)
    )
    if not others:
        return Finding(subject, f"{own}, of this deployment alone")
    named = ", ".join(map(str, others[:_NAMED])) + (" and more" if len(others) > _NAMED else "")
    return Finding(
        subject,
        f"{own}, and processes of another deployment run under them ({named}): each can read the other's keys. "
        f"{places.BASE_VARIABLE} keeps them apart (docs/one-host.md)",
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
