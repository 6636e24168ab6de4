"""Signing in and out from a shell, and the second factor there."""

import re
import subprocess
import time
from pathlib import Path

import pyotp
import pytest

from tests.fixtures.callers import Tenant, rule
from tests.fixtures.people import Person
from tests.fixtures.server import Service
from tests.fixtures.tenant_commands import Desk
from tests.outside.terminal import terminal


@pytest.fixture
def stranger(service: Service, tmp_path: Path) -> Desk:
    """Somebody who has nothing yet but the address."""
    return Desk(tmp_path, service.url)


def begin(desk: Desk, *words: str) -> "subprocess.Popen[str]":
    """Start a command that asks for something meanwhile."""
    return subprocess.Popen(
        desk.command(*words),
        cwd=desk.home,
        env=desk.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def code_of(program: "subprocess.Popen[str]") -> str:
    """Read the code that it shows."""
    assert program.stderr is not None
    for line in program.stderr:
        if found := re.search(r"the code ([A-Z0-9]{4}-[A-Z0-9]{4})", line):
            return found[1]
    raise AssertionError("no code was shown")


def sign_in_at(desk: Desk, admin: Person, *words: str) -> tuple[int, str, str]:
    """Sign in as somebody who approves in a browser; status, output, and the rest of the complaints."""
    with begin(desk, "login", *words) as program:
        admin.ok("POST", "/auth/device/verify", {"user_code": code_of(program), "action": "approve"})
        said, complained = program.communicate(timeout=60)
    return program.returncode, said, complained


def test_a_person_signs_in_by_a_code_and_is_known_from_then_on(stranger: Desk, tenant: Tenant, admin: Person) -> None:
    status, said, complained = sign_in_at(stranger, admin, "--tenant", tenant.id)
    again = stranger.run("login")
    who = stranger.ok("whoami")

    assert status == 0, complained
    assert "(admin) in" in said
    assert again.said == said
    assert who == {"url": stranger.url, "user": admin.id, "tenant": tenant.id, "role": "admin"}


def test_a_new_profile_is_written_and_names_its_service(stranger: Desk, tenant: Tenant, admin: Person) -> None:
    del stranger.environment["SERVICE_URL"]
    status, _, complained = sign_in_at(
        stranger, admin, "--tenant", tenant.id, "--url", stranger.url, "--profile", "at work"
    )
    who = stranger.ok("whoami", "--profile", "at work")

    assert status == 0, complained
    assert who["tenant"] == tenant.id
    assert (stranger.folder / "console.toml").stat().st_mode & 0o777 == 0o600


def test_a_code_that_is_refused_signs_nobody_in(stranger: Desk, tenant: Tenant, admin: Person) -> None:
    with begin(stranger, "login", "--tenant", tenant.id) as program:
        admin.ok("POST", "/auth/device/verify", {"user_code": code_of(program), "action": "deny"})
        said, complained = program.communicate(timeout=60)

    assert (program.returncode, said) == (1, "")
    assert "refused" in complained


def test_without_anybody_signed_in_it_says_how(stranger: Desk) -> None:
    ended, told = stranger.run("whoami"), stranger.run("whoami", "--json")

    assert (ended.status, ended.said) == (3, "")
    assert "custody login" in ended.complained
    assert told.failure["code"] == "sign_in_first"


def test_signing_out_ends_the_session_at_the_service(service: Service, tmp_path: Path, admin: Person) -> None:
    desk = Desk(tmp_path, service.url)
    desk.take_session(admin)

    assert desk.ok("logout") == {"signedOut": True}
    assert desk.run("whoami").status == 3
    assert admin.get("/auth/session").status_code == 401
    assert desk.ok("logout") == {"signedOut": False}


def test_a_key_is_named_by_its_tenant(desk: Desk, tenant: Tenant) -> None:
    assert desk.ok("whoami") == {"url": desk.url, "user": None, "tenant": tenant.id, "role": None}
    assert desk.run("whoami").said == f"{desk.url}: with the key of tenant {tenant.id}\n"


def order_that_waits(tenant: Tenant) -> str:
    """An order that waits for somebody; gives the path that approves it."""
    agent = tenant.agent(rule("auto-approve-threshold", threshold="0"))
    return f"/approvals/{agent.sign(value=5).json()['data']['approvalId']}/approve"


def next_code(person: Person) -> str:
    """A code that was not used yet: enrolling used the one of this half minute."""
    return str(pyotp.TOTP(person.seed).at(int(time.time()) + 30))


def test_a_factor_that_is_wanted_where_nobody_can_be_asked_names_the_cure(careful_desk: Desk, tenant: Tenant) -> None:
    ended = careful_desk.run("api", "POST", order_that_waits(tenant), "--json")

    assert ended.status == 1
    assert ended.failure["error"].endswith("Show it first: custody step-up")
    assert ended.failure["code"] == "mfa_required"


def test_a_factor_from_standard_input_serves_the_next_commands(
    careful_desk: Desk, careful: Person, tenant: Tenant
) -> None:
    shown = careful_desk.ok("step-up", said=next_code(careful))
    decided = careful_desk.ok("api", "POST", order_that_waits(tenant))

    assert shown == {"shown": True}
    assert decided["status"] == "approved"


def test_a_factor_is_asked_for_at_a_terminal_and_not_shown(
    careful_desk: Desk, careful: Person, tenant: Tenant, tmp_path: Path
) -> None:
    code = next_code(careful)
    command = careful_desk.command("api", "POST", order_that_waits(tenant))
    with terminal(list(command), tmp_path, careful_desk.environment) as window:
        window.sees("Type the code of your authenticator or a recovery code")
        window.press("000000", "Enter")
        window.sees("wrong")
        window.press(code, "Enter")
        seen = window.sees('"status": "approved"')

        assert window.wait_for_end() == 0
        assert code not in seen
