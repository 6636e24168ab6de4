"""The record of a running deployment, for commands in other terminals: one small file in the state folder."""

from pathlib import Path

import msgspec

from ops import places

_NAME = "running.json"


class Running(msgspec.Struct, frozen=True):
    """The addresses of the deployment; `chain_url` is None unless it brought a chain of its own."""

    pid: int
    api_url: str
    proxy_url: str
    chain_url: str | None


def note(home: Path, running: Running) -> None:
    """Write it down once everything is up."""
    places.write_private(home / _NAME, msgspec.json.encode(running).decode() + "\n")


def find(home: Path) -> Running | None:
    """Find what runs in this state folder, or None; the lock decides, because a killed supervisor leaves its file."""
    file, lock = home / _NAME, places.Lock(home / "lock")
    if not file.exists() or lock.take():
        lock.release()
        return None
    return msgspec.json.decode(file.read_bytes(), type=Running)
