"""`custody doctor`: one line for each thing that must hold, and the cure where it does not. Design 10."""

import asyncio
import socket
import stat
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import asyncpg
import httpx
import msgspec

from custody.cli import production, running, variables
from custody.cli.migrate import MIGRATIONS, missing, names
from custody.cli.settings import Settings
from custody.kit import environment


class Finding(msgspec.Struct, frozen=True):
    """What one check found; a cure is there exactly when something is wrong."""

    subject: str
    found: str
    cure: str | None = None


async def run(settings: Settings) -> int:
    """Print every finding; 1 when something is wrong."""
    findings = [check(settings) for check in _AT_ONCE] + [await check(settings) for check in _ASKING]
    for finding in findings:
        print(f"{'ok   ' if finding.cure is None else 'WRONG'}  {finding.subject}: {finding.found}")
        if finding.cure:
            print(f"       cure: {finding.cure}")
    return int(any(finding.cure for finding in findings))


def interpreter(_settings: Settings) -> Finding:
    """The Python that runs us."""
    version = ".".join(map(str, sys.version_info[:3]))
    good = (3, 12) <= sys.version_info < (3, 15)
    return Finding("python", f"{version} at {sys.executable}", None if good else "run scripts/set-up with 3.12 to 3.14")


def known_variables(settings: Settings) -> Finding:
    """Every SERVICE_* variable is one we know and can use."""
    try:
        idle = variables.check(settings.environment)
    except environment.BadSetting as problem:
        return Finding("environment", str(problem), f"correct {problem.name}, or unset it")
    if idle:
        return Finding("environment", f"no effect in this version: {', '.join(idle)}", "check the spelling, or unset")
    return Finding("environment", "every SERVICE_ variable is known and in range")


def for_production(settings: Settings) -> Finding:
    """Production has what it insists on."""
    missing = production.missing(settings) if settings.production else []
    if missing:
        return Finding("production", f"{len(missing)} things are missing", "; ".join(missing))
    return Finding("production" if settings.production else "development", "may start")


def state_folder(settings: Settings) -> Finding:
    """The state folder is there and closed to others."""
    home = settings.home
    if not home.is_dir():
        return Finding("state folder", f"{home} does not exist", "run `make run` once, or set SERVICE_HOME")
    mode = stat.S_IMODE(home.stat().st_mode)
    if mode & 0o066:
        return Finding("state folder", f"{home} has mode {mode:04o}: others can look in", f"chmod 0700 {home}")
    return Finding("state folder", f"{home} ({mode:04o})")


def master_key(settings: Settings) -> Finding:
    """The master key is there and closed to others."""
    file = settings.master_key_file
    if not file.exists():
        cure = "the first start makes it; if this database was used before, put the file back from your copy"
        return Finding("master key", f"no file at {file}", cure)
    mode = stat.S_IMODE(file.stat().st_mode)
    if mode & 0o077:
        return Finding("master key", f"{file} has mode {mode:04o}", f"chmod 0600 {file}")
    return Finding("master key", str(file))


def api_port(settings: Settings) -> Finding:
    """The api's port is free, or taken by the api."""
    subject, address = "api port", (settings.api_host, settings.api_port)
    try:
        answer = httpx.get(f"{settings.api_url}/health", timeout=2, trust_env=False)
        if "x-service-version" in answer.headers:
            ours = running.find(settings.home)
            whose = "" if ours else ", but `custody up` does not run in this state folder"
            return Finding(subject, f"{settings.api_url} answers{whose}")
        cure = "stop that program or set SERVICE_API_PORT"
        return Finding(subject, f"another program answers at {settings.api_url}", cure)
    except httpx.HTTPError:
        pass
    try:
        with socket.create_server(address, family=socket.AF_INET6 if ":" in address[0] else socket.AF_INET):
            return Finding(subject, f"{address[1]} is free; the api does not run")
    except OSError as problem:
        cure = "stop the program that holds it or set SERVICE_API_PORT"
        return Finding(subject, f"{address[0]}:{address[1]}: {problem.strerror}", cure)


async def database(settings: Settings) -> Finding:
    """The database answers and has every migration."""
    subject, file = "database", settings.home / "db" / "owner.url"
    url = settings.database_url or (_readable_text(file) if file.exists() else None)
    if url is None:
        return Finding(subject, f"no address in {file}", "run `make run` once, or set SERVICE_DATABASE_URL")
    try:
        absent = await missing(url, names(MIGRATIONS))
    except (OSError, TimeoutError, asyncpg.PostgresError) as problem:
        cure = "check SERVICE_DATABASE_URL" if settings.database_url else "start it with `make run`"
        return Finding(subject, f"does not answer: {problem}", cure)
    if absent:
        return Finding(subject, f"lacks {', '.join(absent)}", "run `custody migrate`")
    return Finding(subject, "answers, every migration applied")


async def signer_socket(settings: Settings) -> Finding:
    """The signer listens."""
    path = environment.sign_socket(settings.environment)
    # Where the folder's path is too long for a socket, a link leads to a short one.
    path = path.parent.resolve() / path.name
    try:
        _, writer = await asyncio.open_unix_connection(path)
    except OSError as problem:
        cure = f"start it with `make run`; its log is {settings.home / 'log' / 'signer.log'}"
        return Finding("signer", f"{path}: {problem.strerror}", cure)
    writer.close()
    return Finding("signer", f"listens at {path}")


def _readable_text(file: Path) -> str | None:
    try:
        return file.read_text().strip()
    except OSError:
        return None


_AT_ONCE: tuple[Callable[[Settings], Finding], ...] = (
    interpreter, known_variables, for_production, state_folder, master_key, api_port,
)  # fmt: skip
_ASKING: tuple[Callable[[Settings], Awaitable[Finding]], ...] = (database, signer_socket)
