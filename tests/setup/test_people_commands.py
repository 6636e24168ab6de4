"""`custody tenants`, `custody users`, `custody invitations`: the first hour of an operator without curl."""

import json
import os
import stat
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from tests.fixtures.callers import Tenant
from tests.fixtures.people import fresh_address
from tests.fixtures.server import Service
from tests.outside.processes import PROJECT


def custody(service: Service, *words: str, **changed: str) -> subprocess.CompletedProcess[str]:
    """Run the command on the machine of a deployment."""
    environment = {
        "PATH": "",
        "PYTHONPATH": str(PROJECT),
        "SERVICE_HOME": str(service.home),
        "SERVICE_API_PORT": str(service.port),
    }
    return subprocess.run(
        [sys.executable, "-P", "-m", "ops", *words],
        cwd="/",
        capture_output=True,
        text=True,
        env=environment | changed,
        timeout=60,
        check=False,
    )


def run(service: Service, *words: str) -> str:
    """Run the command, which must succeed, and return its output."""
    ended = custody(service, *words)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stderr
    return ended.stdout


def fields(printed: str) -> dict[str, str]:
    """Names and values of one thing."""
    return {line.partition(" ")[0]: line.partition(" ")[2].strip() for line in printed.splitlines()}


def test_a_tenant_is_made_listed_and_shown(service: Service) -> None:
    tenant_id = f"shop-{uuid.uuid4().hex[:8]}"

    made = run(service, "tenants", "create", tenant_id, "--name", "A shop")
    listed = run(service, "tenants", "list", "--limit", "2")
    shown = fields(run(service, "tenants", "show", tenant_id))

    assert "not shown again" in made
    with Tenant(base_url=service.url, headers={"X-Service-Key": fields(made)["apiKey"]}, timeout=30) as tenant:
        assert tenant.get(f"/tenants/{tenant_id}").status_code == 200
    heading, first, *_ = listed.splitlines()
    assert heading.split() == ["ID", "NAME", "CREATED"]
    assert first.split()[0] == tenant_id
    assert (shown["name"], shown["agentCount"]) == ("A shop", "0")
    as_json = json.loads(run(service, "tenants", "show", tenant_id, "--json"))
    assert as_json["id"] == tenant_id


def test_a_tenants_key_goes_into_a_file_that_nobody_else_reads(service: Service, tmp_path: Path) -> None:
    tenant_id, file = f"shop-{uuid.uuid4().hex[:8]}", tmp_path / "shop.key"

    printed = run(service, "tenants", "create", tenant_id, "--key-file", str(file))
    taken = custody(service, "tenants", "create", "another", "--key-file", str(file))
    refused = custody(service, "tenants", "create", tenant_id, "--key-file", str(tmp_path / "never.key"))

    key = file.read_text().strip()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert key not in printed
    with Tenant(base_url=service.url, headers={"X-Service-Key": key}, timeout=30) as tenant:
        assert tenant.get(f"/tenants/{tenant_id}").status_code == 200
    assert (taken.returncode, "is there already" in taken.stderr) == (1, True)
    assert (refused.returncode, os.listdir(tmp_path)) == (1, ["shop.key"])
    assert refused.stderr == "custody tenants: A tenant with this id already exists.\n"


def test_a_user_is_made_found_and_listed(service: Service, tenant: Tenant) -> None:
    address, external_id = fresh_address(), f"x-{uuid.uuid4().hex[:8]}"
    words = ("--tenant", tenant.id, "--role", "owner", "--external-id", external_id, "--name", "Ada", "--verified")

    made = fields(run(service, "users", "create", address, *words))
    again = custody(service, "users", "create", address, *words)
    found = fields(run(service, "users", "create", address))

    assert (made["isNew"], made["walletExternalId"], found["isNew"]) == ("true", external_id, "false")
    assert found["userId"] == made["userId"]
    assert (again.returncode, "is a member" in again.stderr) == (1, True)
    for words in (("--email", address), ("--external-id", external_id, "--tenant", tenant.id)):
        shown = json.loads(run(service, "users", "show", *words, "--json"))
        assert (shown["userId"], shown["name"], shown["emailVerified"]) == (made["userId"], "Ada", True)
    heading, row = run(service, "users", "list", "--tenant", tenant.id).splitlines()
    assert (heading.split(), row.split()) == (["ID", "E-MAIL", "NAME"], [made["userId"], address, "Ada"])
    assert "No users." in run(service, "users", "list", "--tenant", tenant.id, "--offset", "1")
    assert "No users." in run(service, "users", "list", "--tenant", tenant.id, "--external-id", "another")
    user = made["userId"]
    refused = custody(service, "users", "deactivate", user)
    assert (refused.returncode, f"last owner of {tenant.id}" in refused.stderr) == (1, True)
    assert fields(run(service, "users", "deactivate", user, "--force"))["deactivatedAt"]
    assert not fields(run(service, "users", "reactivate", user))["deactivatedAt"]
    assert (active := custody(service, "users", "delete", user, "--force")).returncode == 1
    assert "/deactivate first" in active.stderr
    run(service, "users", "deactivate", user, "--force")
    assert fields(run(service, "users", "delete", user, "--force")) == {"deleted": user}


def test_a_list_says_how_to_see_the_rest(service: Service, tenant: Tenant) -> None:
    for _ in range(2):
        run(service, "users", "create", fresh_address(), "--tenant", tenant.id)

    assert run(service, "users", "list", "--tenant", tenant.id, "--limit", "1").endswith("1 more: --offset 1\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("tenants", "show", "absent"), "No such tenant."),
        (("tenants", "create", "a b"), "id must be letters, digits, dots, colons, hyphens and underscores"),
        (("users", "create", "nobody"), "Not a valid e-mail address"),
        (("users", "create", "a@example.com", "--role", "owner"), "say --tenant too"),
        (("users", "show", "--email", "nobody-at-all@example.com"), "No user has this"),
        (("users", "show", "--external-id", "x"), "walletExternalId belongs to a tenant"),
        (("users", "list", "--tenant", "absent"), "No such tenant."),
    ],
)
def test_a_refusal_says_why(service: Service, words: tuple[str, ...], said: str) -> None:
    ended = custody(service, *words)

    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith(f"custody {words[0]}: ")
    assert said in ended.stderr


def test_without_a_service_a_key_or_a_good_key_the_cure_is_named(service: Service, tmp_path: Path) -> None:
    (bad := tmp_path / "bad.key").write_text("x" * 40)

    away = custody(service, "tenants", "list", SERVICE_API_PORT="9")
    no_key = custody(service, "tenants", "list", SERVICE_HOME=str(tmp_path / "nowhere"))
    rejected = custody(service, "tenants", "list", SERVICE_PLATFORM_KEY_FILE=str(bad))

    assert [ended.returncode for ended in (away, no_key, rejected)] == [1, 1, 1]
    assert "start it with `make run`, or set SERVICE_URL" in away.stderr
    assert "set SERVICE_HOME or SERVICE_PLATFORM_KEY_FILE" in no_key.stderr
    assert "rejects the platform key of this installation" in rejected.stderr
    assert "x" * 40 not in rejected.stderr
