"""`custody secrets`: values go in from a file, a pipe or unseen from a terminal, and come out nowhere."""

import asyncio
import subprocess
import uuid
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.fixtures.callers import Tenant
from tests.fixtures.server import free_ports
from tests.fixtures.tenant_commands import PATIENCE_SECONDS, Desk
from tests.outside import odd_api
from tests.outside.odd_api import OddApi
from tests.outside.terminal import terminal
from tests.routes.secrets.makers import keep_route, keep_secret


def canary() -> str:
    """A value that can be found again wherever it got to."""
    return f"canary-{uuid.uuid4().hex}"


def secrets_of(tenant: Tenant) -> dict[str, dict[str, Any]]:
    """The tenant's secrets, by name."""
    return {one["name"]: one for one in tenant.ok("GET", "/secrets")}


def test_a_secret_is_set_set_again_rotated_and_deleted(desk: Desk, tenant: Tenant) -> None:
    value = canary()
    made = desk.ok("secrets", "set", "openai", "--description", "For the build", said=value)
    again = desk.ok("secrets", "set", "openai", said=value)
    rotated = desk.ok("secrets", "rotate", made["id"], said=value)
    listed = desk.run("secrets", "list")

    assert (made["name"], made["version"], made["description"]) == ("openai", 1, "For the build")
    assert (again["id"], again["version"], rotated["version"]) == (made["id"], 2, 3)
    assert listed.said == f"openai\t3\tnever\tFor the build\t{made['id']}\n"
    assert desk.ok("secrets", "list") == [tenant.ok("GET", f"/secrets/{made['id']}")]
    assert desk.ok("secrets", "delete", "openai", "--yes") == {"deleted": made["id"]}
    assert desk.run("secrets", "list").said == ""


@pytest.mark.parametrize(
    ("way", "content", "arrives"),
    [
        ("pipe", b"from echo\n", "from echo"),
        ("pipe", b"from Windows\r\n", "from Windows"),
        ("pipe", "\u00fc\u202e\U0001f511".encode(), "\u00fc\u202e\U0001f511"),
        ("dash", b"two\nlines", "two\nlines"),
        ("file", b"three\nlines\n\n", "three\nlines\n"),
        ("file", b"x" * 65_536 + b"\n", "x" * 65_536),
    ],
    ids=["line end", "two bytes of a line end", "beyond ASCII", "no line end", "one of two line ends", "longest"],
)
async def test_a_value_arrives_as_it_was_but_for_one_line_end(
    odd_desk: Desk, odd: OddApi, way: str, content: bytes, arrives: str
) -> None:
    words = {"pipe": [], "dash": ["--from-file", "-"], "file": ["--from-file", "value"]}[way]
    (odd_desk.home / "value").write_bytes(content)
    said = b"" if way == "file" else content
    await asyncio.to_thread(odd_desk.ok, "secrets", "set", "one", *words, said=said)

    [sent] = odd.at("/secrets", "POST")
    assert msgspec.json.decode(sent.body) == {"name": "one", "value": arrives}


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "is empty"),
        (b"\n", "is empty"),
        (b"canary-\xff\xfe", "no text in UTF-8"),
        (b"canary-" + b"x" * 65_530, "more than the 65,536 bytes"),
    ],
    ids=["nothing", "a line end", "bytes", "too long"],
)
def test_content_that_is_no_value_is_neither_sent_nor_repeated(
    desk: Desk, tenant: Tenant, content: bytes, complaint: str
) -> None:
    (desk.home / "value").write_bytes(content)
    ended = desk.run("secrets", "set", "one", "--from-file", "value")

    assert (ended.status, ended.said) == (2, "")
    assert complaint in " ".join(ended.complained.split())
    assert "canary" not in ended.complained
    assert secrets_of(tenant) == {}


def test_a_value_without_an_end_is_not_read_to_it(desk: Desk) -> None:
    with Path("/dev/zero").open("rb") as endless:
        ended = subprocess.run(
            desk.command("secrets", "set", "one"),
            cwd=desk.home,
            env=desk.environment,
            stdin=endless,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )

    assert (ended.returncode, ended.stdout) == (2, "")
    assert "standard input has more than the 65,536 bytes" in " ".join(ended.stderr.split())


@pytest.mark.parametrize("name", ["missing", "."])
def test_a_file_that_cannot_be_read_is_named(desk: Desk, name: str) -> None:
    ended = desk.run("secrets", "set", "one", "--from-file", name)

    assert ended.status == 2
    assert f"{name} cannot be read: " in ended.complained


def test_a_value_is_never_an_argument(desk: Desk, tenant: Tenant) -> None:
    value = canary()
    ended = desk.run("secrets", "set", "one", value)

    assert ended.status == 2
    assert secrets_of(tenant) == {}


def test_a_value_is_in_no_answer_warning_or_refusal(desk: Desk, tenant: Tenant) -> None:
    value = canary()
    secret = keep_secret(tenant, name="in-a-header")
    keep_route(tenant, secret)
    [nobodys] = free_ports(1)
    odd_value = desk.run("secrets", "set", "odd", said=f" {value} ")
    refused = desk.run("secrets", "set", "in-a-header", said=f"{value}\n{value}")
    told = desk.run("secrets", "set", "in-a-header", "--json", said=f"{value}\n{value}")
    away = desk.run("secrets", "set", "odd", said=value, environment={"SERVICE_URL": f"http://127.0.0.1:{nobodys}"})

    assert odd_value.status == 0
    assert "blanks or line ends" in odd_value.complained
    assert (refused.status, told.failure["code"], away.status) == (1, "value_not_for_header", 4)
    for ended in (odd_value, refused, told, away):
        assert value not in ended.said + ended.complained


def test_a_note_on_a_secret_that_exists_is_refused_before_its_value_is_read(desk: Desk, tenant: Tenant) -> None:
    keep_secret(tenant, name="one")
    ended = desk.run("secrets", "set", "one", "--description", "another", said=canary())

    assert ended.status == 2
    assert "keeps its description" in ended.complained
    assert secrets_of(tenant)["one"]["version"] == 1


def test_a_secret_with_a_name_that_terminals_are_not_shown_is_found_by_it(desk: Desk, tenant: Tenant) -> None:
    keep_secret(tenant, name="\u05e1\u05d5\u05d3")

    assert desk.run("secrets", "rotate", "\u05e1\u05d5\u05d3", said=canary()).status == 0
    assert secrets_of(tenant)["\u05e1\u05d5\u05d3"]["version"] == 2


def test_a_secret_that_is_not_there_is_not_made_by_a_rotation(desk: Desk, tenant: Tenant) -> None:
    ended = desk.run("secrets", "rotate", "one", "--json", said=canary())

    assert (ended.status, ended.failure["code"]) == (1, "secret_absent")
    assert secrets_of(tenant) == {}


def test_a_deletion_that_nobody_confirms_does_nothing_and_says_what_it_would_do(desk: Desk, tenant: Tenant) -> None:
    keep_route(tenant, keep_secret(tenant, name="used"))
    ended = desk.run("secrets", "delete", "used")

    assert ended.status == 1
    assert "1 of your routes use it and will fail" in ended.complained
    assert "--yes" in ended.complained
    assert "used" in secrets_of(tenant)


async def test_an_answer_that_is_lost_is_told_apart_from_a_refusal(odd_desk: Desk, odd: OddApi, tenant: Tenant) -> None:
    odd.does(odd_api.loses, "/secrets", "POST")
    ended = await asyncio.to_thread(odd_desk.run, "secrets", "set", "one", said=canary())
    odd.well()
    again = await asyncio.to_thread(odd_desk.ok, "secrets", "set", "one", said=canary())

    assert ended.status == 4
    assert again["version"] == 2


def test_a_typed_value_is_not_shown_and_a_list_is_a_table(desk: Desk, tenant: Tenant, tmp_path: Path) -> None:
    value = canary()
    with terminal(list(desk.command("secrets", "set", "typed")), tmp_path, desk.environment) as window:
        window.sees("The value (it is not shown)")
        window.press(value, "Enter")
        seen = window.sees("Stored typed, version 1.")
        assert window.wait_for_end() == 0
    with terminal(list(desk.command("secrets", "list")), tmp_path, desk.environment) as window:
        table = window.sees("NAME", "VERSION", "EXPIRES", "typed")
        assert window.wait_for_end() == 0

    assert value not in seen + table
    assert secrets_of(tenant)["typed"]["version"] == 1


@pytest.mark.parametrize("first", ["-----BEGIN PRIVATE KEY-----", "{"])
def test_the_first_of_several_lines_is_not_taken_for_the_value(
    desk: Desk, tenant: Tenant, tmp_path: Path, first: str
) -> None:
    with terminal(list(desk.command("secrets", "set", "typed")), tmp_path, desk.environment) as window:
        window.sees("The value (it is not shown)")
        window.press("--", first, "Enter")
        window.sees("the first of several lines", "--from-file")
        assert window.wait_for_end() == 2

    assert secrets_of(tenant) == {}
