"""Settings of the console: its server and its identity, from arguments, profiles and the environment.

A named profile is complete in itself; without one the environment speaks, and where it says nothing the profile
`default`. What a profile or the environment gives a key for is one address, and it is sent nowhere else. No key is ever
taken from the arguments, which every user of the machine can read.
"""

import argparse
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import platformdirs

from console import private_file
from console.wire.connections import is_loopback
from console.wire.signing import SigningKey

LOCAL: Final = "http://127.0.0.1:3200"
DEFAULT: Final = "default"
THEMES: Final = ("dark", "light")
_FIELDS: Final = ("key_file", "signing_key_file", "tenant", "theme", "url")


class BadSetting(Exception):
    """A setting cannot be used; the message names it and the cure."""


@dataclass(frozen=True)
class Settings:
    """One start of the console. `key` is the tenant key, if that is how it signs in; `key_from` says whence."""

    profile: str
    url: str
    folder: Path
    key: str | None = field(default=None, repr=False)
    key_from: str = ""
    tenant: str | None = None
    signing_key: SigningKey | None = field(default=None, repr=False)
    theme: str = "dark"
    read_only: bool = False
    web: bool = False
    port: int = 0


@dataclass(frozen=True)
class _Origin:
    """One source of settings, and its name in messages."""

    name: str
    said: Mapping[str, str]

    def fail(self, problem: str) -> BadSetting:
        return BadSetting(f"{self.name}: {problem}")


def parser() -> argparse.ArgumentParser:
    """The command line of `custody console`."""
    top = argparse.ArgumentParser(
        prog="custody console", description="The approvals queue, and everything needed to decide."
    )
    top.add_argument("--profile", metavar="NAME", help="a profile of console.toml in your configuration folder")
    top.add_argument("--url", metavar="URL", help="the service URL, instead of the profile's or SERVICE_URL")
    top.add_argument("--tenant", metavar="ID", help="the tenant to sign in to, instead of the profile's")
    top.add_argument("--read-only", action="store_true", help="read only; change nothing but your own session")
    top.add_argument("--theme", choices=THEMES, help="how it looks")
    top.add_argument("--web", action="store_true", help="show it in a browser on this machine")
    top.add_argument("--port", type=int, default=0, metavar="N", help="the port for --web (a free one)")
    return top


def load(arguments: Sequence[str], environment: Mapping[str, str], folder: Path | None = None) -> Settings:
    """Read the settings, or raise BadSetting."""
    given = parser().parse_args(arguments)
    folder = folder or config_folder()
    profile = _profile(folder, given.profile)
    spoken = _from_environment(environment) if given.profile is None else {}
    origin = _Origin("the environment", spoken) if spoken else profile
    home = _address(origin, origin.said.get("url") or LOCAL)
    url = _address(_Origin("--url", {}), given.url) if given.url else home
    # The environment may name the very address of the default profile: then what that says of it holds as well.
    beside = profile.said if not spoken or profile.said.get("url", "").rstrip("/") == home else {}
    key, key_from = _key(origin) if not spoken or {"key", "key_file"} & spoken.keys() else _key(profile, beside)
    signing_key = _signing_key(profile, beside)
    if (signing_key and url != home) or (key and url != home and (origin is profile or "url" in spoken)):
        raise BadSetting(f"--url: {origin.name} has its key for {home}, not for {url}; omit --url or that key")
    return Settings(
        profile=given.profile or DEFAULT,
        url=url,
        folder=folder,
        key=key,
        key_from=key_from,
        tenant=given.tenant or (beside.get("tenant") if url == home else None),
        signing_key=signing_key,
        theme=given.theme or profile.said.get("theme", THEMES[0]),
        read_only=given.read_only,
        web=given.web,
        port=given.port,
    )


def config_folder() -> Path:
    """Return the person's folder for settings and tokens; platformdirs looks at XDG_CONFIG_HOME where there is one."""
    return platformdirs.user_config_path("custody")


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    names = {"url": "SERVICE_URL", "key_file": "SERVICE_KEY_FILE", "key": "SERVICE_KEY"}
    return {field: said for field, name in names.items() if (said := environment.get(name, "").strip())}


def _profile(folder: Path, name: str | None) -> _Origin:
    file = folder / "console.toml"
    try:
        content = tomllib.loads(private_file.read(file, secret=False))
    except FileNotFoundError:
        content = {}
    except private_file.Exposed as problem:
        # Anyone who can change the URL of a profile receives its key.
        raise BadSetting(str(problem)) from None
    except (OSError, ValueError) as problem:
        raise BadSetting(f"{file} cannot be read: {problem}") from None
    profiles = content.get("profiles", {})
    if stray := sorted(content.keys() - {"profiles"}):
        raise BadSetting(f"{file}: {stray[0]!r} is outside of a profile; put it under [profiles.{name or DEFAULT}]")
    if not isinstance(profiles, dict):
        raise BadSetting(f"{file}: profiles must be tables, such as [profiles.{name or DEFAULT}]")
    if name is not None and name not in profiles:
        known = f"it has {', '.join(sorted(profiles))}" if profiles else "it has none"
        raise BadSetting(f'{file}: no profile {name!r}; write [profiles.{name}] with url = "https://…" ({known})')
    return _check(_Origin(f"{file}, profile {name or DEFAULT}", profiles.get(name or DEFAULT, {})))


def _check(profile: _Origin) -> _Origin:
    said: Any = profile.said
    if not isinstance(said, dict):
        raise profile.fail(f'it must be a table, such as [profiles.{DEFAULT}] with url = "https://…"')
    for name, value in sorted(said.items()):
        if name == "key":
            raise profile.fail("a key must not be in this file; put it into a file (0600) and name that as key_file")
        if name not in _FIELDS:
            raise profile.fail(f"unknown field {name!r}; known are {', '.join(_FIELDS)}")
        if not isinstance(value, str) or not value.strip():
            raise profile.fail(f"{name} must be text in quotes")
    if said.get("theme", THEMES[0]) not in THEMES:
        raise profile.fail(f"theme must be {' or '.join(THEMES)}")
    return profile


def _address(origin: _Origin, url: str) -> str:
    parts = urlsplit(url)
    try:
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        fits = False
    if not fits or parts.username or parts.query or parts.fragment or not url.isprintable():
        raise origin.fail(f"url {url!r} is not a service URL; write one such as https://custody.example")
    if parts.scheme == "http" and not is_loopback(url):
        raise origin.fail(f"url {url} would send your credential unencrypted; use https")
    return url.rstrip("/")


def _key(origin: _Origin, said: Mapping[str, str] | None = None) -> tuple[str | None, str]:
    """The tenant key, and where it is from."""
    said = origin.said if said is None else said
    if file := said.get("key_file"):
        return _secret(origin, "key_file", file), file
    if key := said.get("key"):
        if not key.isascii() or not key.isprintable():
            raise origin.fail("SERVICE_KEY is not a key; a key is one line of ASCII")
        return key, "SERVICE_KEY"
    return None, ""


def _signing_key(origin: _Origin, said: Mapping[str, str]) -> SigningKey | None:
    file = said.get("signing_key_file")
    if not file:
        return None
    key_id, _, secret = _secret(origin, "signing_key_file", file).partition(":")
    if not key_id or not secret:
        raise origin.fail(f"signing_key_file {file} must hold one line, the key's id and its secret: keyId:secret")
    if not said.get("tenant"):
        raise origin.fail("signing_key_file requires tenant: the tenant's id is part of the signed text")
    return SigningKey(key_id, secret)


def _secret(origin: _Origin, name: str, path: str) -> str:
    """The one line of a private file."""
    file = Path(path).expanduser()
    try:
        text = private_file.read(file).strip()
    except private_file.Exposed as problem:
        raise origin.fail(f"{name}: {problem}") from None
    except OSError as problem:
        raise origin.fail(f"{name} {file} cannot be read: {problem.strerror}") from None
    except ValueError:
        text = ""
    if not text or not text.isascii() or not text.isprintable():
        raise origin.fail(f"{name} {file} contains no key; it must be one line of ASCII")
    return text
