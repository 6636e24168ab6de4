"""The logs of our processes, read back for the operator."""

from pathlib import Path


def tail(log: Path, lines: int = 8) -> str:
    """The last lines of a log file."""
    if not log.exists():
        return "(nothing)"
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 16_384))
        return "\n".join(f"  {line}" for line in file.read().decode(errors="replace").splitlines()[-lines:])
