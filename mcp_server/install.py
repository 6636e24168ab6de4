"""`custody mcp install`: the entry by which a client starts this server, printed or written into its configuration."""

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from mcp_server.settings import BadSetting

# A configuration of a client has a few KiB.
MAX_FILE_BYTES: Final = 1 << 20
NAME: Final = "custody"


@dataclass(frozen=True)
class Client:
    """A client: where its configuration lies, from the home folder or the present one, and under which word."""

    file: str
    servers: str = "mcpServers"
    here: bool = False
    on_mac: str | None = None

    def path(self, home: Path) -> Path:
        """The file, which need not be there yet."""
        found = self.on_mac if self.on_mac and sys.platform == "darwin" else self.file
        return Path.cwd() / found if self.here else home / found


CLIENTS: Final = {
    "claude-desktop": Client(
        ".config/Claude/claude_desktop_config.json",
        on_mac="Library/Application Support/Claude/claude_desktop_config.json",
    ),
    "claude-code": Client(".mcp.json", here=True),
    "cursor": Client(".cursor/mcp.json"),
    "vscode": Client(".vscode/mcp.json", servers="servers", here=True),
    "windsurf": Client(".codeium/windsurf/mcp_config.json"),
}
_PASSED: Final = ("SERVICE_URL", "SERVICE_PROXY_URL")


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Print the entry, or write it with `--write`. Raises BadSetting."""
    parser = argparse.ArgumentParser(
        prog="custody mcp install",
        description="Print the entry for a client's configuration, or write it there.",
        epilog="example: SERVICE_AGENT_TOKEN_FILE=$HOME/agent.token custody mcp install cursor --write",
    )
    parser.add_argument("client", choices=CLIENTS, help="the client")
    parser.add_argument("--write", action="store_true", help="write it into the client's file; other entries stay")
    chosen = parser.parse_args(arguments)
    client = CLIENTS[chosen.client]
    path = client.path(Path.home())
    if not chosen.write:
        print(_as_text({client.servers: {NAME: entry(environ)}}))
        print(f"# for {path}", file=sys.stderr)
        return 0
    if client.here and not path.resolve().is_relative_to(Path.cwd().resolve()):
        # Whoever made the project made the link: it is no word of the user's on a file elsewhere.
        raise BadSetting(f"{path} is a link that leads out of this folder; replace it by a file")
    write(path, client.servers, entry(environ))
    print(f"custody is in {path}; restart {chosen.client}.")
    return 0


def entry(environ: Mapping[str, str]) -> dict[str, Any]:
    """Make what a client is told: which program, and where the token's file is; never a token."""
    file = environ.get("SERVICE_AGENT_TOKEN_FILE")
    if not file:
        raise BadSetting("set SERVICE_AGENT_TOKEN_FILE to the file with the agent's token (mode 0600)")
    given = {name: environ[name] for name in _PASSED if environ.get(name)}
    return {
        "command": sys.executable,
        "args": ["-P", "-m", "mcp_server"],
        "env": {"SERVICE_AGENT_TOKEN_FILE": str(Path(file).absolute()), **given},
    }


def write(path: Path, servers: str, added: dict[str, Any]) -> None:
    """Put the entry beside the others, all of it or nothing. Raises BadSetting."""
    content = _read(path)
    there = content.setdefault(servers, {})
    if not isinstance(there, dict):
        raise BadSetting(f"{path}: {servers} is no object; mend it first")
    there[NAME] = added
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # A link stays a link: the file that it leads to is replaced.
        real = path.resolve()
        with tempfile.NamedTemporaryFile("w", dir=real.parent, prefix=f".{real.name}.", delete=False) as file:
            file.write(_as_text(content) + "\n")
        if real.exists():
            Path(file.name).chmod(real.stat().st_mode & 0o777)
        os.replace(file.name, real)
    except OSError as problem:
        raise BadSetting(f"{path} cannot be written: {problem.strerror}") from None


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
        content = None if len(raw) > MAX_FILE_BYTES else msgspec.json.decode(raw or b"{}")
    except OSError as problem:
        raise BadSetting(f"{path} cannot be read: {problem.strerror}") from None
    except (msgspec.DecodeError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise BadSetting(f"{path} is no JSON object; mend it first, or print the entry without --write and put it in")
    return content


def _as_text(content: dict[str, Any]) -> str:
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode()
