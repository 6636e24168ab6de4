"""Detect, before it starts, a program of Node that would send its requests past the proxy.

Node reads HTTPS_PROXY since 22.21 and 24.5, when NODE_USE_ENV_PROXY says so; older ones keep silent and go directly.
"""

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

_NAMES = frozenset({"node", "nodejs"})
_FIRST_LINE_BYTES = 256
_SECONDS = 5.0
_VERSION = re.compile(r"v(\d{1,4})\.(\d{1,4})\.")


def warning(program: str, environment: Mapping[str, str]) -> str | None:
    """A warning about this program; None if it is not a Node program, or its Node is new enough."""
    path = environment.get("PATH")
    found = shutil.which(program, path=path)
    node = _interpreter(Path(found), path) if found is not None else None
    version = _version(node, path) if node is not None else None
    if version is None or uses_the_proxy(*version):
        return None
    return (
        f"{node} is Node {version[0]}.{version[1]}, which ignores proxy variables: requests by `fetch` or `https` "
        f"bypass the proxy and carry no credential. Use Node 22.21, 24.5 or newer, or give its client "
        "the proxy's own address as base URL ($SERVICE_PROXY_URL/proxy/<host>) and $SERVICE_AGENT_TOKEN as key"
    )


def uses_the_proxy(major: int, minor: int) -> bool:
    """Say whether `fetch`, `http` and `https` of a version go through the proxy that the environment names."""
    return (major, minor) >= (24, 5) or (major == 22 and minor >= 21)


def _interpreter(program: Path, path: str | None) -> str | None:
    """The Node that runs a program: itself, or the one that the first line of a script names."""
    if program.name in _NAMES:
        return str(program)
    try:
        with program.open("rb") as file:
            first = file.read(_FIRST_LINE_BYTES).split(b"\n", 1)[0].decode("utf-8", "replace")
    except OSError:
        return None
    if not first.startswith("#!"):
        return None
    named = next((word for word in first[2:].split() if Path(word).name in _NAMES), None)
    return shutil.which(named, path=path) if named is not None else None


def _version(node: str, path: str | None) -> tuple[int, int] | None:
    try:
        # With nothing of what the program will have: no token, and no options that load code.
        ended = subprocess.run(  # noqa: S603 - whom we were told to run anyhow
            [node, "--version"],
            env={"PATH": path} if path else {},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.match(ended.stdout.decode("ascii", "replace"))
    return (int(found[1]), int(found[2])) if found is not None else None
