"""Ports and room are looked at before anything is installed, and one port is enough for a second instance."""

import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from ops import first_look
from ops.runtime import PROJECT
from ops.settings import load
from tests.fixtures.server import free_ports

NAMES = ("SERVICE_API_PORT", *first_look.FOLLOWING)


def ports(environment: dict[str, str]) -> list[int]:
    found = load(environment)
    return [found.api_port, found.proxy_port, *(port for _, _, port in found.metrics_ports)]


def test_the_usual_ports_are_those_of_the_settings() -> None:
    assert ports({}) == [3200, *(default for default, _ in first_look.FOLLOWING.values())]


def test_the_others_follow_a_chosen_port() -> None:
    assert ports({"SERVICE_API_PORT": "4200"}) == [4200, 4280, 4290, 4291, 4292]
    assert ports({"SERVICE_API_PORT": "65500"}) == [65500, 65420, 65410, 65409, 65408]
    assert ports({"SERVICE_API_PORT": "4200", "SERVICE_PROXY_PORT": "8080"}) == [4200, 8080, 4290, 4291, 4292]


@pytest.mark.parametrize(
    "more", [{"SERVICE_API_PORT": "3200"}, {"SERVICE_API_PORT": "4200", "SERVICE_ENV": "production"}]
)
def test_nothing_follows_the_usual_port_or_in_production(more: dict[str, str]) -> None:
    assert ports(more)[1:] == ports({})[1:]


@pytest.mark.parametrize("port", ["0", "70000", "http", "²", ""])
def test_a_wrong_port_is_left_to_its_own_sentence(port: str) -> None:
    assert first_look.following({"SERVICE_API_PORT": port}) == {}


def test_all_that_stands_in_the_way_is_said_at_once_by_the_standard_library_alone(tmp_path: Path) -> None:
    with ExitStack() as held:
        taken = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in NAMES]
        given = {name: str(one.getsockname()[1]) for name, one in zip(NAMES, taken, strict=True)}

        ended = subprocess.run(
            [sys.executable, "-I", "-S", PROJECT / "ops" / "first_look.py"],
            env=given,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    assert ended.returncode == 1
    assert [name for name in NAMES if f"set {name} to another port" in ended.stderr] == list(NAMES)
    assert not any(tmp_path.iterdir())


def test_free_ports_and_room_are_no_complaint(tmp_path: Path) -> None:
    given = dict(zip(NAMES, map(str, free_ports(len(NAMES))), strict=True))

    assert first_look.main(given, tmp_path) == []


def test_a_disk_without_room_is_told_with_what_is_needed(tmp_path: Path) -> None:
    folder = tmp_path / "not" / "there yet"

    said = first_look.no_room(folder, 2**60, "a first start")

    assert said is not None
    assert f"are free at {tmp_path}, and a first start needs {2**40} MiB" in said
    assert first_look.no_room(folder, 1, "a first start") is None
