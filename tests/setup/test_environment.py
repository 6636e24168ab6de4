"""A wrong variable stops the start with its own name in the message."""

import socket
import tempfile
from pathlib import Path

import pytest

from custody.kit import environment
from custody.kit.environment import BadSetting

SOCKETS = {
    "SERVICE_SIGN_SOCKET": environment.sign_socket,
    "SERVICE_REVEAL_SOCKET": environment.reveal_socket,
    "SERVICE_IDENTITY_SOCKET": environment.identity_socket,
}


def test_an_empty_value_counts_as_unset() -> None:
    assert environment.text({"SERVICE_X": " "}, "SERVICE_X", "default") == "default"


@pytest.mark.parametrize("value", ["-1", "1.5", "abc", "70000", "٣", "1_0"])
def test_a_port_that_is_none_is_refused_by_name(value: str) -> None:
    with pytest.raises(BadSetting, match="SERVICE_API_PORT"):
        environment.port({"SERVICE_API_PORT": value}, "SERVICE_API_PORT", 3200)


@pytest.mark.parametrize(("value", "expected"), [("true", True), ("0", False), ("", True)])
def test_a_flag_reads_the_usual_words(value: str, expected: bool) -> None:
    assert environment.flag({"F": value}, "F", default=True) is expected


def test_a_flag_of_another_word_is_refused() -> None:
    with pytest.raises(BadSetting, match="F: must be true or false"):
        environment.flag({"F": "maybe"}, "F", default=True)


def test_a_process_finds_its_address_in_the_state_folder(tmp_path: Path) -> None:
    (tmp_path / "db").mkdir()
    (tmp_path / "db" / "api.url").write_text("postgresql://x\n")

    assert environment.url_from_home({"SERVICE_HOME": str(tmp_path)}, "api") == "postgresql://x"


@pytest.mark.parametrize(
    "value",
    [
        "postgresql://custody:p%2Fw@db.example.com:5432/custody",
        "postgres://custody@[::1]/custody?sslmode=require",
        "postgresql://custody:pw@/custody?host=/run/postgres&port=5433",
        "postgresql://u:pw@one:5432,two:5433/custody",
    ],
)
def test_the_address_of_a_database_stays_as_it_is(value: str) -> None:
    assert environment.database_address("U", value) == value


@pytest.mark.parametrize(
    "value",
    [
        "hunter2",
        "mysql://u:hunter2@h/db",
        "postgresql://u:hunter2/x@h/db",
        "postgresql://u:12/hunter2@h/db",
        "postgresql://u:x#hunter2@h/db",
        "postgresql://u:12#hunter2@h/db",
        "postgresql://u:12?hunter2@h/db",
        "postgresql://u:a@hunter2:b@h/db",
        "postgresql://u:hunter2@h:port/db",
        "postgresql://u:hunter2@[::1/db",
        "postgresql://u:hunter2@h/db?sslmode=no",
        "postgresql://u:hunter2@h/db?port=x",
    ],
)
def test_a_malformed_database_address_is_not_repeated(value: str) -> None:
    with pytest.raises(BadSetting, match=r"\ASERVICE_DATABASE_URL_API: is not a database URL") as refused:
        environment.url_from_home({"SERVICE_DATABASE_URL_API": value}, "api")

    assert "hunter2" not in str(refused.value)
    # Nor by a traceback.
    assert refused.value.__context__ is None or refused.value.__suppress_context__


def test_a_missing_address_names_the_command_that_writes_it(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match=r"SERVICE_DATABASE_URL_API.*custody migrate"):
        environment.url_from_home({"SERVICE_HOME": str(tmp_path)}, "api")


@pytest.mark.parametrize("value", ["http://proxy:8080", "http://10.0.0.1/", "http://[::1]:1"])
def test_an_address_is_read_without_a_slash_at_its_end(value: str) -> None:
    assert environment.url({"U": value}, "U", "http://x") == value.rstrip("/")


@pytest.mark.parametrize(
    "value",
    [
        "proxy:8080",
        "ftp://proxy",
        "http://",
        "http://u:hunter2@proxy",
        "http://proxy:0",
        "http://proxy:99999",
        "http://proxy?a=b",
        "http://proxy#c",
    ],
)
def test_an_address_that_is_none_is_refused_without_repeating_it(value: str) -> None:
    with pytest.raises(BadSetting, match=r"\AU: must look like https://") as refused:
        environment.url({"U": value}, "U", "http://x")

    assert "hunter2" not in str(refused.value)


def test_a_socket_is_where_a_link_leads_or_refused_by_its_name(tmp_path: Path) -> None:
    long, short = tmp_path / ("long" * 30), Path(tempfile.mkdtemp(prefix="cs-"))
    long.mkdir()
    source = {"SERVICE_HOME": str(long)}
    for name, of in SOCKETS.items():
        with pytest.raises(BadSetting, match=rf"\A{name}: .* is longer than the 103 bytes of a socket"):
            environment.short(name, of(source))
    for folder in ("run", "run-identity"):
        (long / folder).symlink_to(short)
    assert {of(source).parent for of in SOCKETS.values()} == {short.resolve()}
    # The longest: a worker binds it under its own name with `.new` behind.
    longest = short / ("s" * (environment.LONGEST_SOCKET - len(str(short)) - 1))
    assert environment.short("SERVICE_SIGN_SOCKET", longest) == longest
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(f"{longest}.new")
    with pytest.raises(BadSetting):
        environment.short("SERVICE_SIGN_SOCKET", environment.sign_socket({"SERVICE_SIGN_SOCKET": f"{longest}s"}))
