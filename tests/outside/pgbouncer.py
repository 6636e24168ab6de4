"""A real PgBouncer before the Postgres of some database addresses."""

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit, urlunsplit

from tests.fixtures.eventually import eventually
from tests.outside.processes import die_with
from tests.outside.programs import POOLER, install

# The first that prepares a client's statements on whichever connection its transaction gets.
KEEPS_STATEMENTS = (1, 21)
# It refuses to run as root.
_UID = 65534
_SETTINGS = """
[databases]
* = host={postgres}

[pgbouncer]
listen_addr =
listen_port = 5432
unix_socket_dir = {folder}
unix_socket_mode = 0777
auth_type = scram-sha-256
auth_file = {folder}/users
logfile = {folder}/log
pidfile = {folder}/pid
pool_mode = {mode}
default_pool_size = 20
max_client_conn = 500
"""


def version() -> tuple[int, int]:
    """Of the PgBouncer that is installed here."""
    said = subprocess.run([install(POOLER), "--version"], capture_output=True, text=True, check=True).stdout
    major, minor = re.findall(r"\d+", said)[:2]
    return int(major), int(minor)


@contextmanager
def running_pgbouncer(urls: Mapping[str, str], *, mode: str, statements: int = 0) -> Iterator[dict[str, str]]:
    """Addresses that lead through one; `statements` is how many it keeps for a client, where it can."""
    with tempfile.TemporaryDirectory(prefix="pb-") as name:
        folder = Path(name)
        parts = [urlsplit(url) for url in urls.values()]
        settings = _SETTINGS.format(postgres=parse_qs(parts[0].query)["host"][0], folder=folder, mode=mode)
        if version() >= KEEPS_STATEMENTS:
            settings += f"max_prepared_statements = {statements}\n"
        (folder / "settings.ini").write_text(settings)
        users = {unquote(part.username or ""): unquote(part.password or "") for part in parts}
        (folder / "users").write_text("".join(f'"{user}" "{password}"\n' for user, password in users.items()))
        folder.chmod(0o755)
        uid = _UID if os.geteuid() == 0 else None
        if uid is not None:
            os.chown(folder, uid, uid)
        process = subprocess.Popen(
            [install(POOLER), "-q", folder / "settings.ini"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=uid,
            group=uid,
            extra_groups=None if uid is None else [],
            preexec_fn=die_with(os.getpid()),  # noqa: PLW1509
        )
        try:
            eventually(lambda: _listens(process, folder))
            yield {process: urlunsplit(urlsplit(url)._replace(query=f"host={folder}")) for process, url in urls.items()}
        finally:
            process.kill()
            process.wait()


def _listens(process: "subprocess.Popen[bytes]", folder: Path) -> bool:
    if process.poll() is not None:
        raise RuntimeError(f"PgBouncer ended: {(folder / 'log').read_text()[-1000:]}")
    return (folder / ".s.PGSQL.5432").exists()
