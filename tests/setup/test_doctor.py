"""`custody doctor` says what is wrong, and how to mend it. Design 10."""

import os
import socket
from pathlib import Path

import pytest

from custody.cli import doctor, owners, places
from custody.cli.settings import load
from custody.kit import authority
from custody.kit.environment import BadSetting


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
    assert "WRONG  database: SERVICE_DATABASE_URL: is no address of a database" in said
    assert "ok     disk: " in said
    assert "sealed logs: " in said
    assert not any(part in said for part in ("s3", "p4ss", "junk"))


async def test_what_copies_the_database_refuses_such_an_address(tmp_path: Path) -> None:
    settings = load({"SERVICE_HOME": str(tmp_path), "SERVICE_DATABASE_URL": "postgresql://u:s3cret/p4ss@localhost/db"})

    with pytest.raises(BadSetting, match="is no address") as refused:
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

    assert "put the missing file back" in str(proxy_authority(tmp_path).cure)


@pytest.mark.parametrize(("name", "mode", "right"), [("key", 0o644, "0600"), ("pem", 0o600, "0644")])
def test_a_proxy_authority_of_wrong_modes_is_wrong(tmp_path: Path, name: str, mode: int, right: str) -> None:
    authority.ensure(tmp_path / "proxy-ca.pem", tmp_path / "proxy-ca.key")
    file = tmp_path / f"proxy-ca.{name}"
    file.chmod(mode)

    assert proxy_authority(tmp_path).cure == f"chmod {right} {file}"


def test_a_stranger_on_the_proxys_port_is_wrong() -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        port = stranger.getsockname()[1]

        found = doctor.proxy_port(load({"SERVICE_PROXY_PORT": str(port)}))

    assert found.cure == "stop the program that holds it or set SERVICE_PROXY_PORT"


def test_a_free_port_of_the_proxy_is_well() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

    assert doctor.proxy_port(load({"SERVICE_PROXY_PORT": str(port)})).cure is None


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
