"""Starts of processes: workers with numbers, and to each process what it needs."""

import os
import stat
from pathlib import Path

import pytest

from custody.kit import authority
from custody.kit.environment import BadSetting
from ops import places
from ops.programs import Programs, turn
from ops.runtime import python_for
from ops.settings import load


def test_one_worker_is_one_process_without_a_number(home: places.Home) -> None:
    (only,) = Programs(load({"SERVICE_HOME": str(home.path)}), home).workers("api", "api", python_for(home))

    assert only.name == "api"
    assert "SERVICE_API_WORKER" not in only.environment


def test_each_of_several_workers_has_a_number_and_a_log(home: places.Home) -> None:
    settings = load({"SERVICE_HOME": str(home.path), "SERVICE_API_WORKERS": "3"})

    found = Programs(settings, home).workers("api", "api", python_for(home))

    assert [program.name for program in found] == ["api", "api-1", "api-2"]
    assert [program.environment["SERVICE_API_WORKER"] for program in found] == ["0", "1", "2"]
    assert {program.environment["SERVICE_API_WORKERS"] for program in found} == {"3"}
    assert len({program.log for program in found}) == 3


def test_proxies_are_numbered_by_their_own_variable(home: places.Home) -> None:
    settings = load({"SERVICE_HOME": str(home.path), "SERVICE_PROXY_WORKERS": "2"})

    found = Programs(settings, home).workers("proxy", "proxy_addon", python_for(home))

    assert [program.name for program in found] == ["proxy", "proxy-1"]
    assert [program.environment["SERVICE_PROXY_WORKER"] for program in found] == ["0", "1"]
    assert [program.stop_seconds for program in found] == [15.0, 15.0]


def test_only_api_and_proxy_have_workers(home: places.Home) -> None:
    settings = load({"SERVICE_HOME": str(home.path), "SERVICE_API_WORKERS": "3", "SERVICE_PROXY_WORKERS": "3"})

    assert len(Programs(settings, home).workers("signer", "signer", python_for(home))) == 1


def test_each_process_knows_the_sockets_that_it_may_speak_on(home: places.Home) -> None:
    programs = Programs(load({"SERVICE_HOME": str(home.path)}), home)
    sockets = {}
    for process in ("signer", "identity", "api", "scheduler", "proxy"):
        (program,) = programs.workers(process, process, python_for(home))
        sockets[process] = {name for name in program.environment if name.endswith("_SOCKET")}

    assert sockets == {
        "signer": {"SERVICE_SIGN_SOCKET", "SERVICE_REVEAL_SOCKET"},
        "identity": {"SERVICE_IDENTITY_SOCKET"},
        "api": {"SERVICE_SIGN_SOCKET", "SERVICE_IDENTITY_SOCKET"},
        "scheduler": {"SERVICE_SIGN_SOCKET", "SERVICE_IDENTITY_SOCKET"},
        "proxy": {"SERVICE_REVEAL_SOCKET"},
    }


def test_the_signer_knows_the_proxys_uid(home: places.Home) -> None:
    (signer,) = Programs(load({"SERVICE_HOME": str(home.path)}), home).workers("signer", "signer", python_for(home))

    uid = 64714 if home.separate else os.geteuid()
    assert f"proxy:{uid}" in signer.environment["SERVICE_PEER_UIDS"].split(",")


def test_the_proxy_runs_without_its_librarys_assertions(home: places.Home) -> None:
    (proxy,) = Programs(load({"SERVICE_HOME": str(home.path)}), home).workers("proxy", "proxy", python_for(home))

    assert proxy.environment["PYTHONOPTIMIZE"] == "1"


def test_the_proxys_authority_is_made_where_its_variables_say(home: places.Home, open_folder: Path) -> None:
    given = {name: str(open_folder / name) for name in ("SERVICE_PROXY_CA_FILE", "SERVICE_PROXY_CA_KEY_FILE")}
    settings = load({"SERVICE_HOME": str(home.path), **given})

    (proxy,) = Programs(settings, home).workers("proxy", "proxy_addon", python_for(home))

    found = {name: Path(proxy.environment[name]) for name in given}
    assert found == {name: open_folder / name for name in given}
    assert [stat.S_IMODE(file.stat().st_mode) for file in found.values()] == [0o644, 0o600]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give processes uids of their own")
def test_an_authority_of_the_operators_must_be_the_proxys_to_read(home: places.Home, tmp_path: Path) -> None:
    certificate, key = tmp_path / "ca.pem", tmp_path / "ca.key"
    authority.ensure(certificate, key)
    given = {"SERVICE_PROXY_CA_FILE": str(certificate), "SERVICE_PROXY_CA_KEY_FILE": str(key)}
    programs = Programs(load({"SERVICE_HOME": str(home.path), **given}), home)

    with pytest.raises(BadSetting, match=f"chown 64714 {key}"):
        programs.workers("proxy", "proxy_addon", python_for(home))


NAMED = [
    ("signer", "SERVICE_USER_WALLET_POLICIES_FILE"),
    ("identity", "SERVICE_QUOTAS_FILE"),
    ("api", "SERVICE_PRICES_FILE"),
    ("scheduler", "SERVICE_WEBHOOK_EXTRA_CA_FILE"),
    ("proxy", "SERVICE_PROXY_EXTRA_CA_FILE"),
    ("api", "SSL_CERT_FILE"),
    ("signer", "sslkey"),
]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give processes uids of their own")
@pytest.mark.parametrize(("process", "name"), NAMED)
def test_a_file_that_root_can_read_and_its_process_cannot_is_refused(
    home: places.Home, open_folder: Path, process: str, name: str
) -> None:
    folder = open_folder / "certain"
    folder.mkdir(mode=0o755)
    file = folder / "file"
    file.touch()
    given = {"SERVICE_HOME": str(home.path), name: str(file)}
    if name == "sslkey":
        # What `custody migrate` makes of the owner's address.
        address = f"postgresql://custody_{process}:pw@h/d?sslcert={file}&sslkey={file}"
        home.file("db", f"{process}.url").write_text(address)
    variable = "SERVICE_DATABASE_URL" if name == "sslkey" else name
    programs = Programs(load(given), home)

    for mode, of_folder in ((0o600, 0o755), (0o644, 0o700)):
        file.chmod(mode)
        folder.chmod(of_folder)
        with pytest.raises(
            BadSetting, match=f"^{variable}: {process} cannot read {file}: give uid {home.uid_of(process)}"
        ):
            programs.workers(process, process, python_for(home))
    # The control: its own uid is asked, not whether everybody may.
    folder.chmod(0o711)
    file.chmod(0o400)
    os.chown(file, home.uid_of(process) or 0, 0)
    programs.workers(process, process, python_for(home))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give processes uids of their own")
def test_a_key_that_an_earlier_start_made_for_us_becomes_the_proxys(home: places.Home) -> None:
    key = home.file("proxy-ca.key")
    authority.ensure(home.file("proxy-ca.pem"), key)

    Programs(load({"SERVICE_HOME": str(home.path)}), home).workers("proxy", "proxy_addon", python_for(home))

    assert key.stat().st_uid == 64714


def test_a_log_that_has_grown_is_put_aside_while_its_writer_goes_on(home: places.Home) -> None:
    log = Programs(load({"SERVICE_HOME": str(home.path)}), home).log("api")
    with log.open("ab", buffering=0) as writer:
        writer.write(b"first\n" * 20)
        turn(log, 100)
        writer.write(b"second\n")
        turn(log, 100)

    assert log.read_bytes() == b"second\n"
    # Of a larger one the end is kept, and no more than a log may have.
    assert log.with_suffix(".log.1").read_bytes() == (b"first\n" * 20)[-100:]
