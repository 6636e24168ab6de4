"""`custody invitations`: invited, listed and shown from a terminal."""

import json
import uuid

import pytest

from tests.fixtures.callers import Tenant
from tests.fixtures.people import fresh_address
from tests.fixtures.server import Service
from tests.setup.test_people_commands import custody, fields, run

pytest.importorskip("api.routes.platform.invitations")


def test_an_address_is_invited_and_the_invitation_shown(service: Service, tenant: Tenant) -> None:
    address, here = fresh_address(), ("--tenant", tenant.id)

    made = run(service, "invitations", "create", address, *here, "--role", "viewer", "--expires-in", "3600")
    heading, row = run(service, "invitations", "list", *here).splitlines()
    shown = json.loads(run(service, "invitations", "show", fields(made)["id"], *here, "--json"))

    assert "Hand the token to them" in made
    assert fields(made)["token"]
    assert heading.split() == ["ID", "E-MAIL", "ROLE", "STATUS", "EXPIRES"]
    assert row.split()[:4] == [shown["id"], address, "viewer", "pending"]
    assert "token" not in shown


def test_a_refused_invitation_says_why(service: Service, tenant: Tenant) -> None:
    here = ("--tenant", tenant.id)

    bad = custody(service, "invitations", "create", "nobody", *here, "--role", "viewer")
    absent = custody(service, "invitations", "show", str(uuid.uuid4()), *here)
    elsewhere = custody(service, "invitations", "list", "--tenant", "absent")

    assert [ended.returncode for ended in (bad, absent, elsewhere)] == [1, 1, 1]
    assert "Not a valid e-mail address" in bad.stderr
    assert "has no invitation" in absent.stderr
    assert "No such tenant." in elsewhere.stderr
