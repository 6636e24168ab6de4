"""`custody doctor`: one line for each thing that must hold, and the cure where it does not."""

import asyncio
import re
import shutil
import socket
import stat
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import msgspec
from cryptography import x509

from custody.database.texts import read
from custody.kit import clock, environment, metrics_address, quota_settings
from custody.kit.schema_version import NewerDatabase
from ops import (
    checkout,
    compiled,
    doctor_database,
    doctor_holders,
    doctor_memory,
    doctor_quotas,
    doctor_sign_on,
    doctor_uids,
    doctor_work,
    production,
    rate_limit_store,
    running,
    variables,
)
from ops.doctor_audit import sealed_logs
from ops.doctor_prices import prices
from ops.findings import Finding
from ops.migrate import missing
from ops.settings import Settings

# Less than this, or than this share of a small disk, is soon nothing.
_ROOM_BYTES, _ROOM_SHARE = 2**31, 0.05


async def run(settings: Settings, *, ask_holders: bool = False) -> int:
    """Print every finding; 1 when something is wrong."""
    # Said as they come: what one check breaks off at takes no other's word away.
    if nothing_runs(settings):
        wrong = [_say(check(settings)) for check in _OF_THE_MACHINE]
        found = f"nothing runs in {settings.home}, so the rest was not looked at"
        _say(Finding("custody", found, f"start it with {settings.how_to_start}, then ask again"))
        return 1
    wrong = [_say(check(settings)) for check in _AT_ONCE]
    if ask_holders:
        wrong.append(_say(doctor_holders.answers(settings)))
    wrong += [_say(await check(settings)) for check in _ASKING]
    wrong += [_say(finding) for finding in await of_the_database(settings)]
    return int(any(wrong))


def _say(finding: Finding) -> bool:
    print(f"{'ok   ' if finding.cure is None else 'WRONG'}  {finding.subject}: {finding.found}", flush=True)
    if finding.cure:
        print(f"       cure: {finding.cure}", flush=True)
    return finding.cure is not None


def nothing_runs(settings: Settings) -> bool:
    """Say whether there is nothing to ask: no supervisor, no api at its port, and no database of the operator's own."""
    if settings.database_url is not None or running.find(settings.home) is not None:
        return False
    return api_port(settings).found.endswith("; no process listens there")


def interpreter(_settings: Settings) -> Finding:
    """The Python that runs us."""
    version = ".".join(map(str, sys.version_info[:3]))
    good = (3, 12) <= sys.version_info < (3, 14)
    cure = None if good else f"{checkout.SET_UP}, with Python 3.12 or 3.13"
    return Finding("python", f"{version} at {sys.executable}", cure)


def known_variables(settings: Settings) -> Finding:
    """Every SERVICE_* variable is one we know and can use, and of each pair both are set or neither."""
    try:
        idle = variables.check(settings.environment)
    except environment.BadSetting as problem:
        return Finding("environment", str(problem), f"correct {problem.name}, or unset it")
    if idle:
        return Finding("environment", f"no effect in this version: {', '.join(idle)}", "check the spelling, or unset")
    if halves := variables.halves(settings.environment):
        return Finding("environment", halves[0].partition(": ")[0], "set both, or neither")
    return Finding("environment", "every SERVICE_ variable is known and in range")


def for_production(settings: Settings) -> Finding:
    """Production has what it insists on."""
    missing = production.missing(settings) if settings.production else []
    if missing:
        return Finding("production", f"{len(missing)} requirements are missing", "; ".join(missing))
    return Finding("production" if settings.production else "development", "may start")


def state_folder(settings: Settings) -> Finding:
    """The state folder is there and closed to others."""
    home = settings.home
    if not home.is_dir():
        return Finding(
            "state folder", f"{home} does not exist", f"run {settings.how_to_start} once, or set SERVICE_HOME"
        )
    mode = stat.S_IMODE(home.stat().st_mode)
    if mode & 0o066:
        return Finding("state folder", f"{home} has mode {mode:04o}: other users can read it", f"chmod 0700 {home}")
    return Finding("state folder", f"{home} ({mode:04o})")


def master_key(settings: Settings) -> Finding:
    """The master key is there and closed to others."""
    file = settings.master_key_file
    if not file.exists():
        cure = "the first start creates it; if this database was used before, restore the file from your copy"
        return Finding("master key", f"no file at {file}", cure)
    mode = stat.S_IMODE(file.stat().st_mode)
    if mode & 0o077:
        return Finding("master key", f"{file} has mode {mode:04o}", f"chmod 0600 {file}")
    return Finding("master key", str(file))


def copies(settings: Settings) -> Finding:
    """Check how old what must be kept apart is; that there is a copy, nobody here can see."""
    subject, file = "copies", settings.master_key_file
    if not file.exists():
        return Finding(subject, "there is no master key to copy yet")
    changed = clock.of_unix(int(file.stat().st_mtime))
    hint = "a copy apart from the database must be at least as new (docs/recovery.md)"
    return Finding(subject, f"the master key was last changed on {changed:%Y-%m-%d}; {hint}")


def disk(settings: Settings) -> Finding:
    """The disk of the state folder has room: a full one stops signing."""
    folder = next(folder for folder in (settings.home, *settings.home.parents) if folder.exists())
    usage = shutil.disk_usage(folder)
    return room(folder, usage.free, usage.total)


def compiled_code(settings: Settings) -> Finding:
    """No process dies of compiled code that a full disk cut short."""
    subject = "compiled code"
    logs = (settings.home / "log").glob("*.log")
    if cut := sorted(log.stem for log in logs if compiled.cut_short(log)):
        folders = ", ".join(str(settings.home / name / "compiled") for name in cut)
        cure = f"make room, then start again: it is removed by itself; or remove {folders}"
        return Finding(subject, f"cut short, as a full disk does it: {', '.join(cut)}", cure)
    return Finding(subject, "whole, as far as the logs say")


def room(folder: Path, free: int, total: int) -> Finding:
    """Say whether so many free bytes of so many are enough to go on."""
    found = f"{free / 2**30:.1f} GiB free of {total / 2**30:.1f} at {folder}"
    if free < min(_ROOM_BYTES, _ROOM_SHARE * total):
        return Finding("disk", found, "free some space: nothing is signed without room to record it")
    return Finding("disk", found)


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
        return Finding(subject, f"another program responds at {settings.api_url}", cure)
    except httpx.HTTPError:
        return _free(settings, subject, *address, "SERVICE_API_PORT")


def proxy_port(settings: Settings) -> Finding:
    """The proxy's port is free, or taken by the proxy: it wants a token, and says so in our envelope."""
    subject = "proxy port"
    try:
        answer = httpx.get(settings.proxy_url, timeout=2, trust_env=False)
        said = msgspec.json.decode(answer.content, type=_Envelope)
    except httpx.HTTPError:
        found = _free(settings, subject, settings.proxy_host, settings.proxy_port, "SERVICE_PROXY_PORT")
        return found if found.cure is None else _congestion(subject, settings) or found
    except msgspec.MsgspecError:
        said = _Envelope()
    if said.ok is False and said.data and "code" in said.data:
        return Finding(subject, f"{settings.proxy_url} answers")
    cure = "stop that program or set SERVICE_PROXY_PORT"
    return Finding(subject, f"another program responds at {settings.proxy_url}", cure)


def shared_counts(settings: Settings) -> Finding:
    """The store in which several processes count requests together answers, where there is one."""
    subject = "rate-limit store"
    if found := rate_limit_store.complaint(settings):
        return Finding(subject, found, "start that store, or correct or unset SERVICE_RATE_LIMIT_STORE")
    where = settings.environment.get("SERVICE_RATE_LIMIT_STORE", "").strip()
    return Finding(subject, "answers" if where not in {"", "memory"} else "each process counts on its own")


def _congestion(subject: str, settings: Settings) -> Finding | None:
    """Read the figures of a proxy that does not answer; a thread of its own gives them. None: there is none."""
    listening = {name: (host, port) for name, host, port in settings.metrics_ports}
    url = metrics_address.local_url(*listening["SERVICE_METRICS_PORT_PROXY"])
    try:
        said = httpx.get(f"{url}/metrics", timeout=2, trust_env=False).text
    except httpx.HTTPError:
        return None
    found = re.search(r"^custody_proxy_connections (\d+)", said, re.MULTILINE)
    if found is None:
        return None
    cure = (
        "find the heavy callers: the audit rows `proxy.request` of this minute name agents and addresses; freeze "
        "them, restrict access to the port, or start more workers (SERVICE_PROXY_WORKERS)"
    )
    return Finding(
        subject, f"the proxy runs and is crowded: {found[1]} connections are open, and ours got no answer", cure
    )


def proxy_authority(settings: Settings) -> Finding:
    """The certificate and the key with which the proxy speaks TLS to agents."""
    subject, certificate, key = "proxy CA", settings.proxy_ca_file, settings.proxy_ca_key_file
    there = [file for file in (certificate, key) if file.exists()]
    if not there:
        return Finding(subject, f"no file at {certificate} yet; the first start creates it")
    if len(there) == 1:
        cure = f"restore the missing file, or remove {there[0]} to create a new CA"
        return Finding(subject, f"{there[0]} exists without its other half", cure)
    if key.stat().st_mode & 0o077:
        return Finding(subject, f"{key} has mode {stat.S_IMODE(key.stat().st_mode):04o}", f"chmod 0600 {key}")
    if not certificate.stat().st_mode & 0o044:
        return Finding(subject, f"other users cannot read {certificate}", f"chmod 0644 {certificate}")
    try:
        expires = x509.load_pem_x509_certificate(certificate.read_bytes()).not_valid_after_utc
    except (OSError, ValueError):
        return Finding(subject, f"{certificate} is not a certificate in PEM form", "restore the right file")
    if expires <= clock.now():
        cure = f"remove {certificate} and {key}, start, and install the new certificate in every client"
        return Finding(subject, f"{certificate} expired on {expires:%Y-%m-%d}", cure)
    return Finding(subject, f"{certificate}, until {expires:%Y-%m-%d}")


async def of_the_database(settings: Settings) -> list[Finding]:
    """Check what only a database that answers and is up to date can tell."""
    try:
        url = _owner_url(settings)
        if url is None or await missing(url, read()):
            return []
        connection = await asyncpg.connect(url, timeout=10)
    except (OSError, TimeoutError, asyncpg.PostgresError, ValueError, NewerDatabase):
        # The check of the database says so.
        return []
    try:
        asked = [await check(connection) for check in (*doctor_database.ASKING, *doctor_work.ASKING)]
        asked += [await doctor_sign_on.keys(connection), await doctor_sign_on.client_secrets(connection, settings)]
        asked.append(await doctor_database.connections(connection, settings))
        asked.append(await doctor_quotas.near(connection, quota_settings.load(settings.environment)))
    except environment.BadSetting:
        # The check of the variables says so.
        pass
    finally:
        await connection.close(timeout=5)
    return [*asked, await doctor_database.poolers(settings)]


def _owner_url(settings: Settings) -> str | None:
    file = settings.home / "db" / "owner.url"
    if settings.database_url is not None:
        return environment.database_address("SERVICE_DATABASE_URL", settings.database_url)
    return _readable_text(file) if file.exists() else None


async def database(settings: Settings) -> Finding:
    """The database answers and has every migration."""
    subject, file = "database", settings.home / "db" / "owner.url"
    try:
        url = _owner_url(settings)
    except environment.BadSetting as problem:
        return Finding(subject, str(problem), f"correct {problem.name}")
    if url is None:
        return Finding(subject, f"no URL in {file}", f"run {settings.how_to_start} once, or set SERVICE_DATABASE_URL")
    try:
        absent = await missing(url, read())
    except ValueError:
        # What the library says of an address may quote the password in it.
        cure = f"correct SERVICE_DATABASE_URL, or {file}: it {environment.NO_DATABASE_ADDRESS}"
        return Finding(subject, "its URL cannot be used", cure)
    except NewerDatabase as problem:
        found, _, cure = str(problem).partition(": ")
        return Finding(subject, found, cure)
    except (OSError, TimeoutError, asyncpg.PostgresError) as problem:
        cure = "check SERVICE_DATABASE_URL" if settings.database_url else f"start it with {settings.how_to_start}"
        return Finding(subject, f"does not answer: {problem}", cure)
    if absent:
        return Finding(subject, f"lacks {', '.join(absent)}", "run `custody migrate`")
    return Finding(subject, "responds, every migration applied")


async def sign_socket(settings: Settings) -> Finding:
    """The signer listens for api and scheduler."""
    return await _listens("signer", environment.sign_socket(settings.environment), settings)


async def identity_socket(settings: Settings) -> Finding:
    """Identity listens for api and scheduler."""
    return await _listens("identity", environment.identity_socket(settings.environment), settings)


async def reveal_socket(settings: Settings) -> Finding:
    """The signer listens for the proxy."""
    return await _listens("signer, for the proxy", environment.reveal_socket(settings.environment), settings)


async def _listens(subject: str, path: Path, settings: Settings) -> Finding:
    try:
        _, writer = await asyncio.open_unix_connection(path)
    except OSError as problem:
        log = settings.home / "log" / f"{subject.partition(',')[0]}.log"
        cure = f"start it with {settings.how_to_start}; its log is {log}"
        return Finding(subject, f"{path}: {problem.strerror or problem}", cure)
    writer.close()
    return Finding(subject, f"listens at {path}")


class _Envelope(msgspec.Struct):
    """The shape of every response of the api, from outside."""

    ok: bool | None = None
    data: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return "_Envelope()"


def _free(settings: Settings, subject: str, host: str, port: int, variable: str) -> Finding:
    try:
        with socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET):
            if (ours := running.find(settings.home)) is None:
                return Finding(subject, f"{port} is free; no process listens there")
            found = f"no response on {port}, although `custody up` runs in this state folder (process {ours.pid})"
            log = settings.home / "log" / f"{subject.removesuffix(' port')}.log"
            return Finding(subject, found, f"see the output of `custody up`, and {log}; it keeps retrying")
    except OSError as problem:
        cure = f"stop the program that uses it, or set {variable}"
        return Finding(subject, f"{host}:{port}: {problem.strerror}", cure)


def _readable_text(file: Path) -> str | None:
    try:
        return file.read_text().strip()
    except OSError:
        return None


_OF_THE_MACHINE: tuple[Callable[[Settings], Finding], ...] = (
    interpreter,
    known_variables,
    for_production,
    disk,
    compiled_code,
    proxy_port,
)
_AT_ONCE: tuple[Callable[[Settings], Finding], ...] = (
    interpreter,
    known_variables,
    for_production,
    state_folder,
    master_key,
    copies,
    doctor_holders.holders,
    doctor_uids.neighbours,
    doctor_memory.swap,
    disk,
    compiled_code,
    api_port,
    proxy_port,
    proxy_authority,
    shared_counts,
    doctor_sign_on.own_clients,
)
_ASKING: tuple[Callable[[Settings], Awaitable[Finding]], ...] = (
    database,
    sign_socket,
    identity_socket,
    reveal_socket,
    sealed_logs,
    prices,
)
