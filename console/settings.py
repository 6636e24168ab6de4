"""Where the console goes and as whom: arguments, profiles, environment. Decisions 11.

A named profile is complete in itself; without one the environment speaks. No key is ever taken from the arguments,
which every user of the machine can read.
"""

import argparse
import ipaddress
import os
import stat
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import platformdirs

LOCAL: Final = "http://127.0.0.1:3200"
DEFAULT: Final = "default"
_FIELDS: Final = frozenset({"url", "key_file", "tenant", "theme"})


class BadSetting(Exception):
    """A setting cannot be used; the message names it and the cure."""


@dataclass(frozen=True)
class Settings:
    """One start of the console. `key` is the tenant key, if that is how it signs in."""

    profile: str
    url: str
    folder: Path
    key: str | None = field(default=None, repr=False)
    tenant: str | None = None
    theme: str = "dark"
    read_only: bool = False
    web: bool = False
    port: int = 0


def parser() -> argparse.ArgumentParser:
    """The command line of `custody console`."""
    top = argparse.ArgumentParser(
        prog="custody console", description="Decide what agents may spend: the approvals queue, and all around it."
    )
    top.add_argument("--profile", metavar="NAME", help="a profile of console.toml in your configuration folder")
    top.add_argument("--url", metavar="URL", help="the service to talk to, instead of the profile's or SERVICE_URL")
    top.add_argument("--read-only", action="store_true", help="look, and change nothing")
    top.add_argument("--theme", choices=("dark", "light"), help="how it looks")
    top.add_argument("--web", action="store_true", help="show it in a browser on this machine")
    top.add_argument("--port", type=int, default=0, metavar="N", help="the port for --web (a free one)")
    return top


def load(arguments: Sequence[str], environment: Mapping[str, str], folder: Path | None = None) -> Settings:
    """Read the settings, or raise BadSetting."""
    given = parser().parse_args(arguments)
    # The configuration folder is asked of platformdirs, which looks at XDG_CONFIG_HOME where there is one.
    folder = folder or platformdirs.user_config_path("custody")
    profile = _profile(folder, given.profile)
    if given.profile is None:
        key_file, key = environment.get("SERVICE_KEY_FILE") or profile.get("key_file"), environment.get("SERVICE_KEY")
        url = environment.get("SERVICE_URL") or profile.get("url") or LOCAL
    else:
        key_file, key, url = profile.get("key_file"), None, profile.get("url") or LOCAL
    return Settings(
        profile=given.profile or DEFAULT, url=_address(given.url or url), folder=folder,
        key=key or (_key_of(Path(key_file).expanduser()) if key_file else None), tenant=profile.get("tenant"),
        theme=given.theme or profile.get("theme", "dark"), read_only=given.read_only, web=given.web, port=given.port,
    )  # fmt: skip


def is_loopback(url: str) -> bool:
    """Whether an address stays on this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _profile(folder: Path, name: str | None) -> dict[str, Any]:
    file = folder / "console.toml"
    try:
        profiles = tomllib.loads(file.read_text()).get("profiles", {})
    except FileNotFoundError:
        profiles = {}
    except (OSError, ValueError) as problem:
        raise BadSetting(f"{file} cannot be read: {problem}") from None
    found = profiles.get(name or DEFAULT) if isinstance(profiles, dict) else None
    if found is None:
        if name is None:
            return {}
        raise BadSetting(f'there is no profile {name!r}; write [profiles.{name}] with url = "https://..." into {file}')
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise BadSetting(f"profile {name or DEFAULT!r} in {file}: every value must be text in quotes")
    if unknown := sorted(found.keys() - _FIELDS):
        raise BadSetting(f"profile {name or DEFAULT!r} in {file}: {unknown[0]!r} is not one of {sorted(_FIELDS)}")
    if found.get("theme", "dark") not in ("dark", "light"):
        raise BadSetting(f"profile {name or DEFAULT!r} in {file}: theme is dark or light")
    return found


def _address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query or parts.fragment:
        raise BadSetting(f"{url!r} is not an address of the service, such as https://custody.example")
    if parts.scheme == "http" and not is_loopback(url):
        raise BadSetting(f"{url} would send your credential readable by anybody on the way; use https")
    return url.rstrip("/")


def _key_of(file: Path) -> str:
    try:
        with file.open() as opened:
            state = os.fstat(opened.fileno())
            if stat.S_IMODE(state.st_mode) & 0o077 or state.st_uid not in (os.geteuid(), 0):
                raise BadSetting(f"others can read {file}; run: chmod 600 {file}")
            key = opened.read(4096).strip()
    except OSError as problem:
        raise BadSetting(f"the key file {file} cannot be read: {problem.strerror}") from None
    if not key or not key.isascii() or not key.isprintable():
        raise BadSetting(f"{file} holds no key")
    return key
