"""Settings: where the service is, whose token is shown, and how models reach this server."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

# A token has some 600 characters.
MAX_TOKEN_BYTES = 8192
_PORTS = range(1, 65536)


class BadSetting(Exception):
    """A setting that cannot be used; the text names it and what it should be."""


@dataclass(frozen=True)
class Settings:
    """Settings of one run."""

    # Scheme, host and port of the api and of the proxy, without a slash at the end.
    url: str
    proxy_url: str
    # By stdio one agent's token, from a file or the environment; by HTTP each request brings its own.
    token_file: Path | None = None
    token: str | None = field(default=None, repr=False)
    # The port of the HTTP form; None for stdio.
    port: int | None = None
    host: str = "127.0.0.1"
    # Names under which a browser or a client may reach it, besides loopback: `host` or `host:port`.
    allowed_hosts: tuple[str, ...] = ()

    def read_token(self) -> str:
        """Read the agent's token each time: who renews it writes the file."""
        if self.token_file is None:
            if self.token is None:
                raise BadSetting("no token: set SERVICE_AGENT_TOKEN_FILE to a file with the agent's token")
            return self.token
        try:
            with self.token_file.open("rb") as file:
                content = file.read(MAX_TOKEN_BYTES + 1)
        except OSError as problem:
            raise BadSetting(
                f"SERVICE_AGENT_TOKEN_FILE: {self.token_file} cannot be read: {problem.strerror}"
            ) from None
        token = content.strip().decode("ascii", "replace")
        if not is_token(token):
            raise BadSetting(f"SERVICE_AGENT_TOKEN_FILE: {self.token_file} does not hold an agent's token")
        return token


def load(arguments: Sequence[str], environ: Mapping[str, str]) -> Settings:
    """Read them. Raises BadSetting; an argument that is wrong ends the program with its usage."""
    chosen = _parser().parse_args(arguments)
    url = _address(
        "SERVICE_URL", environ.get("SERVICE_URL") or f"http://127.0.0.1:{environ.get('SERVICE_API_PORT', 3200)}"
    )
    proxy = environ.get("SERVICE_PROXY_URL") or f"http://127.0.0.1:{environ.get('SERVICE_PROXY_PORT', 8080)}"
    if chosen.http:
        return Settings(
            url=url,
            proxy_url=_address("SERVICE_PROXY_URL", proxy),
            port=_port(environ.get("SERVICE_MCP_PORT")),
            host=environ.get("SERVICE_MCP_HOST") or "127.0.0.1",
            allowed_hosts=tuple(filter(None, environ.get("SERVICE_MCP_ALLOWED_HOSTS", "").split(","))),
        )
    file, token = environ.get("SERVICE_AGENT_TOKEN_FILE"), environ.get("SERVICE_AGENT_TOKEN")
    if token is not None and not is_token(token):
        raise BadSetting("SERVICE_AGENT_TOKEN is not an agent's token")
    return Settings(
        url=url,
        proxy_url=_address("SERVICE_PROXY_URL", proxy),
        token_file=Path(file) if file else None,
        token=None if file else token,
    )


def is_token(text: str) -> bool:
    """True if the text may be a token: a JWT is printable ASCII without spaces."""
    return 0 < len(text) <= MAX_TOKEN_BYTES and text.isascii() and text.isprintable() and " " not in text


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="custody mcp",
        description="Give a model the tools of an agent: pay, sign, call APIs, and wait for a person.",
        epilog="example: SERVICE_AGENT_TOKEN_FILE=agent.token custody mcp",
    )
    parser.add_argument("--http", action="store_true", help="listen on SERVICE_MCP_PORT instead of standard input")
    return parser


def _address(name: str, text: str) -> str:
    found = urlsplit(text)
    try:
        plain = found.scheme in ("http", "https") and found.hostname and found.port != 0
    except ValueError:
        plain = False
    if not plain or found.query or found.fragment or found.username or found.password:
        raise BadSetting(f"{name} must be an address such as http://127.0.0.1:3200")
    return text.rstrip("/")


def _port(text: str | None) -> int:
    if text is None or not (text.isascii() and text.isdecimal() and int(text[:6]) in _PORTS):
        raise BadSetting("set SERVICE_MCP_PORT to the port to listen on, such as 8090")
    return int(text)
