"""docs/commands.md: its programs run as they stand there, in their order, and it names every command there is."""

import re
from pathlib import Path

import pytest

from tests.fixtures.callers import ADDRESS, Client, Tenant
from tests.fixtures.pages import Reader, programs_of
from tests.fixtures.people import Person
from tests.fixtures.server import Service
from tests.fixtures.tenant_commands import Desk
from tests.outside.processes import PROJECT
from tests.tenant_command.test_account import next_code
from tests.tenant_command.test_words import COMMANDS

PAGE = "docs/commands.md"
# Of each program what it is about: the last word before it that only it has.
FACTOR, MADE, CHANGED, DENIED, APPROVED, SHARED, STORED, SENT = range(8)


@pytest.fixture
def programs() -> list[str]:
    """The programs of the page."""
    return [program for _, program in programs_of(PAGE)]


def test_the_programs_of_the_page_do_what_it_says(
    programs: list[str], service: Service, tenant: Tenant, tmp_path: Path
) -> None:
    key = tmp_path / "tenant.key"
    key.write_text(tenant.key)
    key.chmod(0o600)
    reader = Reader(tmp_path, service, SERVICE_KEY_FILE=str(key))

    made = reader.paste(programs[MADE])
    token = (tmp_path / "buyer.token").read_text().strip()
    with Client(base_url=service.url, headers={"Authorization": f"Bearer {token}"}) as agent:
        for _ in range(2):
            order = {"to": ADDRESS, "value": str(4 * 10**17), "broadcast": False}
            assert agent.post("/vault/buyer/sign", json=order).status_code == 202
    changed = reader.paste(programs[CHANGED])
    denied = reader.paste(programs[DENIED])
    approved = reader.paste(programs[APPROVED])
    shared = reader.paste(programs[SHARED])
    reader.environment["OPENAI_API_KEY"] = "sk-canary-of-the-page"
    stored = reader.paste(programs[STORED])
    sent = reader.paste(programs[SENT])

    assert made.startswith("Made agent buyer.")
    assert "\nbuyer\n" in made
    assert "Spending limit" in made
    assert "orders in any hour, was 20" in changed
    assert "Of 2 requests of the last 30 days, none would have been decided otherwise." in changed
    assert changed.endswith("Agent buyer has 3 rules now.\n")
    assert "0.4\tETH" in denied
    assert denied.splitlines()[-1].startswith("Denied")
    assert approved.splitlines()[-1] == "approved"
    assert "counts what all agents of the set spend together" in shared
    assert "Stored openai, version 1." in stored
    assert "would be forwarded with the secret of this route" in stored
    assert "canary" not in stored
    assert sent.splitlines() == ["A tenant", "Buys paper and ink", "2"]
    assert len(programs) == SENT + 1


def test_the_factor_of_the_page_comes_from_a_pipe(
    programs: list[str], careful: Person, careful_desk: Desk, service: Service
) -> None:
    reader = Reader(careful_desk.home, service, **careful_desk.environment)
    reader.environment["PATH"] = f"{careful_desk.home}:{PROJECT}/.venv/bin:{reader.environment['PATH']}"
    # What prints a code stands in for the program of the same name, which not every machine has.
    tool = careful_desk.home / "oathtool"
    tool.write_text(f"#!/bin/sh\necho {next_code(careful)}\n")
    tool.chmod(0o700)

    assert reader.paste(programs[FACTOR]) == "The second factor was taken.\n"


def test_the_page_names_every_command() -> None:
    table = re.findall(r"^\| (`custody .+?) \|", (PROJECT / PAGE).read_text(), re.MULTILINE)
    named = {one for row in table for one in re.findall(r"`custody ([a-z][a-z -]*[a-z])", row)}

    assert {" ".join(words) for words in COMMANDS} - {one.strip() for one in named} == set()
