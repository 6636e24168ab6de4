"""Reading SERVICE_* variables: typed, once, with an error that names the variable.

Only each process' `settings.py` calls these, with the environment handed in; nothing else reads the environment.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

Environment = Mapping[str, str]
DEFAULT_HOME = ".custody"
NO_DATABASE_ADDRESS = (
    "is not a database URL such as postgresql://user:password@host:5432/name; in a password, "
    "/ # ? @ are written %2F %23 %3F %40"
)
_HOST_AND_PORT = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^:\[\]]*)(?::[0-9]{1,5})?")
_DIGITS = re.compile(r"[0-9,]*")
# sun_path holds 108 bytes with its NUL; a worker binds under a name with `.new` behind it.
LONGEST_SOCKET = 103
_SSL_MODES = {"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}


class BadSetting(ValueError):
    """A variable of the environment cannot be used."""

    def __init__(self, name: str, complaint: str) -> None:
        super().__init__(f"{name}: {complaint}")
        self.name = name


def text(environment: Environment, name: str, default: str | None = None) -> str:
    """The value, or the default; an empty value counts as unset, and no default means it is required."""
    value = environment.get(name, "").strip()
    if value:
        return value
    if default is None:
        raise BadSetting(name, "must be set")
    return default


def choice(environment: Environment, name: str, allowed: tuple[str, ...]) -> str:
    """One of the allowed words; the first is the default."""
    value = text(environment, name, allowed[0])
    if value not in allowed:
        raise BadSetting(name, f"must be one of {', '.join(allowed)}, not {value!r}")
    return value


def integer(environment: Environment, name: str, default: int, *, low: int = 0, high: int = 2**31 - 1) -> int:
    """A whole number between low and high, both included."""
    value = text(environment, name, str(default))
    # isdecimal alone would let digits of other scripts pass.
    if not (value.isascii() and value.isdecimal()) or not low <= int(value) <= high:
        raise BadSetting(name, f"must be a whole number from {low} to {high}, not {value!r}")
    return int(value)


def port(environment: Environment, name: str, default: int) -> int:
    """A TCP port."""
    return integer(environment, name, default, low=1, high=65_535)


def flag(environment: Environment, name: str, *, default: bool) -> bool:
    """`true` or `false` (also 1, 0, yes, no, on, off)."""
    value = text(environment, name, "true" if default else "false").lower()
    if value in {"true", "1", "yes", "on"}:
        return True
    if value in {"false", "0", "no", "off"}:
        return False
    raise BadSetting(name, f"must be true or false, not {value!r}")


def path(environment: Environment, name: str, default: Path | str) -> Path:
    """An absolute path; a relative one is taken from the working folder."""
    return Path(text(environment, name, str(default))).expanduser().absolute()


def home(environment: Environment) -> Path:
    """The state folder."""
    return path(environment, "SERVICE_HOME", DEFAULT_HOME)


def socket_path(environment: Environment, name: str, default: Path | str) -> Path:
    """Return the path of a socket; behind a link to a short folder (`ops/places.py`), the path it leads to."""
    given = path(environment, name, default)
    return given.parent.resolve() / given.name


def short(name: str, socket: Path) -> Path:
    """Return the path of a socket that a process binds; BadSetting where it is too long for one."""
    if len(os.fsencode(socket)) > LONGEST_SOCKET:
        raise BadSetting(name, f"{socket} is longer than the {LONGEST_SOCKET} bytes of a socket; choose a shorter path")
    return socket


def sign_socket(environment: Environment) -> Path:
    """Find where the signer listens for api and scheduler."""
    return socket_path(environment, "SERVICE_SIGN_SOCKET", home(environment) / "run" / "sign.sock")


def identity_socket(environment: Environment) -> Path:
    """Find where identity listens for api and scheduler."""
    return socket_path(environment, "SERVICE_IDENTITY_SOCKET", home(environment) / "run-identity" / "identity.sock")


def identity_key_file(environment: Environment) -> Path:
    """Find where the signer leaves identity's key."""
    return path(environment, "SERVICE_IDENTITY_KEY_FILE", home(environment) / "identity-key" / "identity.key")


def peer_uids(environment: Environment) -> dict[str, int]:
    """`api:64712,scheduler:64713`; a process that is not named must run under the worker's own uid."""
    found = {}
    for part in filter(None, environment.get("SERVICE_PEER_UIDS", "").strip().split(",")):
        name, _, uid = part.partition(":")
        if not uid.isdecimal():
            raise BadSetting("SERVICE_PEER_UIDS", "must look like api:64712,scheduler:64713")
        found[name] = int(uid)
    return found


def reveal_socket(environment: Environment) -> Path:
    """Find where the signer listens for the proxy."""
    return socket_path(environment, "SERVICE_REVEAL_SOCKET", sign_socket(environment).with_name("reveal.sock"))


def url(environment: Environment, name: str, default: str, *, schemes: tuple[str, ...] = ("http", "https")) -> str:
    """The address of a service without a slash at its end; no user, query or fragment."""
    value = text(environment, name, default).rstrip("/")
    try:
        parts = urlsplit(value)
        good = parts.scheme in schemes and parts.hostname and parts.port != 0
    except ValueError:
        good, parts = False, urlsplit("")
    if not good or parts.username is not None or parts.query or parts.fragment:
        # The value is not repeated: somebody may have written a password into it.
        raise BadSetting(name, f"must look like {schemes[-1]}://custody.example.com:1234")
    return value


def public_url(environment: Environment) -> str:
    """The application's address as people and tokens name it, without a slash at its end."""
    # It stands in every token, so nobody's password may be in it.
    return url(environment, "SERVICE_PUBLIC_URL", f"http://localhost:{port(environment, 'SERVICE_API_PORT', 3200)}")


def database_address(name: str, value: str) -> str:
    """The address of a database as it was given; one that cannot be used is not repeated, for it has a password in it.

    A `/`, `#`, `?` or `@` of a password that is not written as %2F and so on makes another address of what follows.
    """
    try:
        parts = urlsplit(value)
        query = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
    except ValueError:
        raise BadSetting(name, NO_DATABASE_ADDRESS) from None
    people, _, places = parts.netloc.rpartition("@")
    good = (
        parts.scheme in {"postgresql", "postgres"}
        and not any("@" in part for part in (people, parts.path, parts.query))
        and not parts.fragment
        and all(map(_HOST_AND_PORT.fullmatch, places.split(",")))
        and _DIGITS.fullmatch(query.get("port", ""))
        and query.get("sslmode", "prefer") in _SSL_MODES
    )
    if not good:
        raise BadSetting(name, NO_DATABASE_ADDRESS)
    return value


def url_from_home(environment: Environment, process: str) -> str:
    """The database address of one process: its variable, or the file that `custody migrate` wrote."""
    name = f"SERVICE_DATABASE_URL_{process.upper()}"
    if value := environment.get(name, "").strip():
        return database_address(name, value)
    file = home(environment) / "db" / f"{process}.url"
    try:
        return file.read_text().strip()
    except FileNotFoundError:
        raise BadSetting(name, f"is not set and {file} does not exist; run `custody migrate` first") from None
    except OSError as problem:
        raise BadSetting(name, f"is not set and {file} cannot be read: {problem.strerror}") from None
