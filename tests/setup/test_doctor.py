"""`custody doctor` says what is wrong, and how to mend it."""

import os
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import asyncpg
import pytest

from custody.kit import authority
from custody.kit.environment import BadSetting
from ops import doctor, doctor_uids, owners, places, running
from ops.runtime import PROJECT
from ops.settings import load
from tests.fixtures.postgres import Database
from tests.fixtures.server import free_ports


async def test_before_the_first_start_every_complaint_has_a_cure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = await doctor.run(load({"SERVICE_HOME": str(tmp_path / "none")}))

    lines = capsys.readouterr().out.splitlines()
    wrong = [number for number, line in enumerate(lines) if line.startswith("WRONG")]
    assert status == 1
    assert wrong
    assert all(lines[number + 1].strip().startswith("cure: ") for number in wrong)


@pytest.mark.parametrize("url", ["junk", "postgresql://u:s3cret/p4ss@localhost/db", "postgresql://u:s3@p4ss:x@h/db"])
async def test_a_database_address_that_is_none_is_one_finding_among_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], url: str
) -> None:
    status = await doctor.run(load({"SERVICE_HOME": str(tmp_path / "none"), "SERVICE_DATABASE_URL": url}))

    said = capsys.readouterr().out
    assert status == 1
    assert "WRONG  database: SERVICE_DATABASE_URL: is not a database URL" in said
    assert "ok     disk: " in said
    assert "sealed logs: " in said
    assert not any(part in said for part in ("s3", "p4ss", "junk"))


async def test_database_copy_commands_refuse_such_an_address(tmp_path: Path) -> None:
    settings = load({"SERVICE_HOME": str(tmp_path), "SERVICE_DATABASE_URL": "postgresql://u:s3cret/p4ss@localhost/db"})

    with pytest.raises(BadSetting, match="is not a database URL") as refused:
        async with owners.owner_url(settings, places.Home(tmp_path, separate=False)):
            pass
    assert "s3cret" not in str(refused.value)


def test_a_master_key_that_others_can_read_is_wrong(tmp_path: Path) -> None:
    key = tmp_path / "master.key"
    key.write_text("x")
    key.chmod(0o644)

    found = doctor.master_key(load({"SERVICE_HOME": str(tmp_path)}))

    assert found.cure == f"chmod 0600 {key}"


def test_an_unknown_variable_is_pointed_out(tmp_path: Path) -> None:
    found = doctor.known_variables(load({"SERVICE_HOME": str(tmp_path), "SERVICE_API_PROT": "3200"}))

    assert "SERVICE_API_PROT" in found.found
    assert found.cure is not None


def proxy_authority(home: Path) -> doctor.Finding:
    return doctor.proxy_authority(load({"SERVICE_HOME": str(home)}))


def test_a_whole_proxy_authority_is_well(tmp_path: Path) -> None:
    authority.ensure(tmp_path / "proxy-ca.pem", tmp_path / "proxy-ca.key")

    assert proxy_authority(tmp_path).cure is None


def test_no_proxy_authority_is_well_before_the_first_start(tmp_path: Path) -> None:
    assert proxy_authority(tmp_path).cure is None


@pytest.mark.parametrize("lost", ["proxy-ca.pem", "proxy-ca.key"])
def test_half_a_proxy_authority_is_wrong(tmp_path: Path, lost: str) -> None:
    authority.ensure(tmp_path / "proxy-ca.pem", tmp_path / "proxy-ca.key")
    (tmp_path / lost).unlink()

    assert "restore the missing file" in str(proxy_authority(tmp_path).cure)


@pytest.mark.parametrize(("name", "mode", "right"), [("key", 0o644, "0600"), ("pem", 0o600, "0644")])
def test_a_proxy_authority_of_wrong_modes_is_wrong(tmp_path: Path, name: str, mode: int, right: str) -> None:
    authority.ensure(tmp_path / "proxy-ca.pem", tmp_path / "proxy-ca.key")
    file = tmp_path / f"proxy-ca.{name}"
    file.chmod(mode)

    assert proxy_authority(tmp_path).cure == f"chmod {right} {file}"


def test_a_stranger_on_the_proxys_port_is_wrong() -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        port = stranger.getsockname()[1]

        # No figures either: nothing listens there.
        found = doctor.proxy_port(load({"SERVICE_PROXY_PORT": str(port), "SERVICE_METRICS_PORT_PROXY": "1"}))

    assert found.cure == "stop the program that uses it, or set SERVICE_PROXY_PORT"


class Figures(BaseHTTPRequestHandler):
    """The figures of a proxy."""

    def do_GET(self) -> None:
        """As the library writes it."""
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"# TYPE custody_proxy_connections gauge\ncustody_proxy_connections 4096.0\n")

    def log_message(self, *_: object) -> None:
        """Nothing."""


def test_a_proxy_that_is_crowded_is_not_taken_for_another_program() -> None:
    with socket.create_server(("127.0.0.1", 0)) as crowded, HTTPServer(("127.0.0.1", 0), Figures) as figures:
        threading.Thread(target=figures.handle_request).start()
        ports = crowded.getsockname()[1], figures.server_port
        found = doctor.proxy_port(
            load({"SERVICE_PROXY_PORT": str(ports[0]), "SERVICE_METRICS_PORT_PROXY": str(ports[1])})
        )

    assert "crowded: 4096 connections" in found.found
    assert found.cure is not None
    assert "stop" not in found.cure


def test_a_free_port_of_the_proxy_is_well() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

    assert doctor.proxy_port(load({"SERVICE_PROXY_PORT": str(port)})).cure is None


def test_uids_that_were_not_looked_at_are_not_called_alone(tmp_path: Path) -> None:
    settings = load({"SERVICE_HOME": str(tmp_path)})
    nothing_runs = doctor_uids.neighbours(settings).found
    holds = places.Lock(tmp_path / "lock")
    holds.take()
    running.note(tmp_path, running.Running(os.getpid(), settings.api_url, settings.proxy_url, None))

    without_own = doctor_uids.neighbours(settings).found
    holds.release()

    assert nothing_runs.startswith("not looked at: `custody up` does not run in this state folder")
    assert without_own == "not looked at: `custody up` runs here without uids of its own (64710 to 64717 unused)"


def test_a_free_port_beside_a_running_supervisor_is_wrong(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    settings = load({"SERVICE_HOME": str(tmp_path), "SERVICE_API_PORT": str(port), "SERVICE_PROXY_PORT": str(port)})
    holds = places.Lock(tmp_path / "lock")
    holds.take()
    running.note(tmp_path, running.Running(os.getpid(), settings.api_url, settings.proxy_url, None))

    findings = [doctor.api_port(settings), doctor.proxy_port(settings)]
    holds.release()

    assert all("no response" in finding.found for finding in findings)
    assert ["api.log" in str(findings[0].cure), "proxy.log" in str(findings[1].cure)] == [True, True]
    # Without a supervisor a free port is as it should be.
    assert doctor.api_port(settings).cure is None


@pytest.mark.parametrize(("url", "well"), [("memory", True), ("redis://:s3cret@127.0.0.1:{port}/0", False)])
def test_a_rate_limit_store_that_does_not_answer_is_wrong(url: str, well: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

    found = doctor.shared_counts(load({"SERVICE_RATE_LIMIT_STORE": url.format(port=port)}))

    assert (found.cure is None) is well
    assert "s3cret" not in found.found


async def test_a_newer_database_is_wrong_and_the_cure_is_named(database: Database, owner: asyncpg.Connection) -> None:
    await owner.execute(
        "INSERT INTO tortoise_migrations (app, name, applied_at) VALUES ('custody', '9999_future', now())"
    )
    try:
        found = await doctor.database(load({"SERVICE_DATABASE_URL": database.owner_url}))
    finally:
        await owner.execute("DELETE FROM tortoise_migrations WHERE name = '9999_future'")

    assert "9999_future" in found.found
    assert "start the newer version" in str(found.cure)


def test_closing_the_output_early_shows_no_error(tmp_path: Path) -> None:
    words = f"{sys.executable} -P -m ops doctor | head -n 1"
    environment = {"PATH": os.defpath, "PYTHONPATH": str(PROJECT), "SERVICE_HOME": str(tmp_path / "none")}

    ended = subprocess.run(words, shell=True, env=environment, capture_output=True, text=True, check=False)

    assert ended.stdout.count("\n") == 1
    assert ended.stderr == ""


@pytest.mark.parametrize(
    ("free", "total", "well"),
    [(3 * 2**30, 2**40, True), (2**30, 2**40, False), (2**30, 2**33, True), (2**28, 2**33, False)],
)
def test_a_disk_without_room_is_wrong(free: int, total: int, well: bool) -> None:
    found = doctor.room(Path("/var"), free, total)

    assert (found.cure is None) is well


def test_the_disk_that_is_looked_at_is_that_of_the_state_folder(tmp_path: Path) -> None:
    assert f"at {tmp_path}" in doctor.disk(load({"SERVICE_HOME": str(tmp_path / "none" / "yet")})).found


def test_how_new_a_copy_of_the_master_key_must_be_is_said(tmp_path: Path) -> None:
    (tmp_path / "master.key").touch()
    os.utime(tmp_path / "master.key", (0, 1_700_000_000))

    assert "2023-11-14" in doctor.copies(load({"SERVICE_HOME": str(tmp_path)})).found


async def test_where_nothing_runs_one_line_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    places.open_home(tmp_path / "home")
    api, proxy = map(str, free_ports(2))
    given = {"SERVICE_HOME": str(tmp_path / "home"), "SERVICE_API_PORT": api, "SERVICE_PROXY_PORT": proxy}

    status = await doctor.run(load(given))

    wrong = [line for line in capsys.readouterr().out.splitlines() if line.startswith("WRONG")]
    assert status == 1
    assert len(wrong) == 1
    assert "nothing runs in" in wrong[0]


def test_cures_of_production_name_no_command_of_a_laptop(tmp_path: Path) -> None:
    given = {"SERVICE_ENV": "production", "SERVICE_HOME": str(tmp_path / "none")}

    cure = doctor.state_folder(load(given)).cure

    assert cure is not None
    assert "make" not in cure
    assert "custody up" in cure


def test_half_of_a_providers_pair_is_pointed_out(tmp_path: Path) -> None:
    found = doctor.known_variables(load({"SERVICE_HOME": str(tmp_path), "GOOGLE_CLIENT_ID": "x"}))

    assert "GOOGLE_CLIENT_SECRET is not" in found.found
    assert found.cure is not None
