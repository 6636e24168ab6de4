"""The embedded Postgres: private, one owner, and whole again after anything. Promise P9."""

import os
import signal
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from ops import places
from ops.postgres import EmbeddedPostgres, PostgresFailed


def server_of(home: places.Home) -> EmbeddedPostgres:
    return EmbeddedPostgres(home.file("postgres"), home.file("log", "postgres.log"))


@pytest.fixture(scope="module")
def home(shared_folder: Path) -> places.Home:
    """One state folder for the file: a new database costs seconds, a second start of one does not."""
    return places.open_home(shared_folder / "home")


@pytest.fixture
async def server(home: places.Home) -> AsyncIterator[EmbeddedPostgres]:
    """A server that is stopped after the test."""
    server = server_of(home)
    yield server
    await server.stop()


async def ask(url: str, question: str) -> object:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(question)
    finally:
        await connection.close()


async def test_committed_rows_survive_a_second_start(server: EmbeddedPostgres) -> None:
    url = await server.start()
    await ask(url, "CREATE TABLE kept AS SELECT 7 AS n")
    await server.stop()

    url = await server.start()

    assert await ask(url, "SELECT n FROM kept") == 7


async def test_a_wrong_password_is_refused_and_there_is_no_tcp(server: EmbeddedPostgres) -> None:
    url = await server.start()

    assert await ask(url, "SELECT current_setting('listen_addresses')") == ""
    with pytest.raises(asyncpg.InvalidPasswordError):
        await ask(url.replace(url.split("@")[0], "postgresql://custody_owner:wrong"), "SELECT 1")


async def test_a_second_owner_is_refused(server: EmbeddedPostgres, home: places.Home) -> None:
    await server.start()

    with pytest.raises(PostgresFailed, match="another process"):
        await server_of(home).start()


async def test_a_pid_file_that_now_names_a_stranger_does_not_stop_the_start(
    server: EmbeddedPostgres, home: places.Home
) -> None:
    await server.start()
    await server.stop()
    stale = home.file("postgres", "data", "postmaster.pid")
    stale.write_text(f"{os.getpid()}\n{stale.parent}\n0\n5432\n\n\n  1 1\nready   \n")

    assert await ask(await server.start(), "SELECT 1") == 1


async def test_a_killed_server_comes_back_with_everything(server: EmbeddedPostgres) -> None:
    url = await server.start()
    await ask(url, "CREATE TABLE survived AS SELECT 7 AS n")
    assert server.process is not None
    os.kill(server.process.pid, signal.SIGKILL)
    server.process.wait()

    url = await server.restart()

    assert await ask(url, "SELECT n FROM survived") == 7


async def test_a_setup_cut_short_is_done_again(open_folder: Path) -> None:
    home = places.open_home(open_folder / "home")
    half = home.file("postgres", "data.new")
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18")
    server = server_of(home)
    try:
        assert await ask(await server.start(), "SELECT 1") == 1
    finally:
        await server.stop()


async def test_a_closed_folder_on_the_way_stays_closed(open_folder: Path) -> None:
    closed = open_folder / "closed"
    closed.mkdir(mode=0o700)
    home = places.open_home(closed / "home")
    server = server_of(home)
    try:
        assert await ask(await server.start(), "SELECT 1") == 1
    finally:
        await server.stop()

    assert stat.S_IMODE(closed.stat().st_mode) == 0o700
    assert stat.S_IMODE(open_folder.stat().st_mode) == 0o755


async def test_a_path_too_long_for_a_socket_gets_a_short_one(open_folder: Path) -> None:
    long = open_folder / ("x" * 100)
    server = EmbeddedPostgres(long, open_folder / "log")
    try:
        assert await ask(await server.start(), "SELECT 1") == 1
        short = (long / "socket").readlink()
    finally:
        await server.stop()

    assert not short.exists()
