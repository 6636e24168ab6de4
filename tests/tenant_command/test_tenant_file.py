"""`custody apply` and `custody export`, against a running service."""

import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.approvers import Authenticator
from tests.fixtures.callers import Tenant, new_tenant, rule
from tests.fixtures.people import Person, member
from tests.fixtures.server import Service
from tests.fixtures.tenant_commands import Desk
from tests.outside.counting_wire import CountingWire, counting_wire
from tests.outside.saml_answers import key

ADDRESS = "0x" + "11" * 20
WHOLE = """\
version: 1
secrets:
  - name: an API's key
    value: {env: API_KEY}
    description: A note
policySets:
  - name: small
    policies:
      - type: spending-limit
        config: {maxPerDay: 1000000000000000000000, scope: set}
tenantPolicySet:
  name: all
  policies:
    - type: rate-limit
      config: {maxTxPerDay: 50}
agents:
  - id: buyer
    name: Buys paper
    displayName: The buyer
    policies:
      - type: policy-set
        config: {policySet: small}
      - type: spending-limit
        config: {maxPerDay: 5, asset: "evm:native"}
  - id: "007"
    name: NO
credentialRoutes:
  - hostPattern: api.example
    secret: an API's key
    injectAs: header
    injectKey: Authorization
    injectFormat: Bearer {value}
    agents: [buyer]
paymentRoutes:
  - hostPattern: paid.example
    maxPerCall: {"evm:8453:0x833589fcd6edb6e08f4c7c32d4f71b54bda02913": 1000}
webhooks:
  - url: https://hooks.example/a
    events: [tx.pending]
    enabled: false
  - url: https://hooks.example/a
appClients:
  - id: shop
    name: Shop
    allowedOrigins: [https://shop.example]
oidcProviders:
  - id: idp
    issuer: http://127.0.0.1:1
    clientId: custody
    jwksUri: http://127.0.0.1:1/keys
    authorizationUrl: http://127.0.0.1:1/authorize
    tokenUrl: http://127.0.0.1:1/token
ssoDomains:
  - domain: acme.example
config:
  displayName: Acme
  approvalConfig: {uncoveredEffects: refuse}
  authAbuseConfig: {invitations: {requireToken: true}, mfa: {maxAgeSeconds: 600}}
  secretRoutePresets:
    - {id: one, name: One, hostPattern: a.example, injectAs: header, injectKey: X, provisioning: platform,
       platformSecret: an API's key}
"""
# Fewer things, for what is applied many times: each kind of request that makes or changes something without a name.
SMALL = """\
version: 1
policySets:
  - name: small
    policies: [{type: rate-limit, config: {maxTxPerDay: 5}}]
agents:
  - id: buyer
    name: Buys paper
    displayName: The buyer
    policies: [{type: policy-set, config: {policySet: small}}]
paymentRoutes:
  - {hostPattern: paid.example, maxPerCall: {"evm:8453:0x833589fcd6edb6e08f4c7c32d4f71b54bda02913": 1000}}
  - {hostPattern: paid.example, maxPerCall: {"evm:8453:0x833589fcd6edb6e08f4c7c32d4f71b54bda02913": 1000}}
"""


class Office(Desk):
    """Somebody's desk behind a wire that counts what they send."""

    def __init__(self, home: Path, wire: CountingWire) -> None:
        super().__init__(home, wire.url)
        self.wire = wire
        self.environment["API_KEY"] = "sk-live-0123456789"

    def fill(self, text: str) -> None:
        """Write the file."""
        (self.home / "tenant.yaml").write_text(text)

    def apply(self, *words: str) -> Any:
        """Apply it; gives what it says to programs."""
        return self.ok("apply", "-f", "tenant.yaml", "--yes", *words)

    def export(self) -> str:
        """Export the tenant."""
        ended = self.run("export")
        assert ended.status == 0, ended
        return ended.said


@pytest.fixture
def wire(service: Service) -> Iterator[CountingWire]:
    with counting_wire(service.port) as made:
        yield made


@pytest.fixture
def office(wire: CountingWire, as_owner: Person, tmp_path: Path) -> Office:
    """An owner with a recent second factor."""
    made = Office(tmp_path, wire)
    made.take_session(as_owner)
    return made


@pytest.fixture
def key_office(wire: CountingWire, tenant: Tenant, tmp_path: Path) -> Office:
    """Somebody with the tenant's key."""
    made = Office(tmp_path, wire)
    made.take_key(tenant.key)
    return made


def test_a_tenant_becomes_as_the_file_says_and_a_second_apply_sends_nothing(office: Office, as_owner: Person) -> None:
    saml = key("rsa", "of the provider").certificate.replace("\n", "\n      ").rstrip()
    office.fill(
        f"{WHOLE}saml:\n  idpEntityId: https://idp.example/e\n  idpSsoUrl: https://idp.example.com/sso\n"
        f"  enabled: false\n  idpCertPems:\n    - |\n      {saml}\n"
    )
    dry = office.run("apply", "-f", "tenant.yaml", "--dry-run")
    sent_dry = office.wire.changing.copy()
    first = office.run("apply", "-f", "tenant.yaml", "--yes")
    sent = len(office.wire.changing)
    second = office.apply()

    assert (dry.status, sent_dry) == (0, [])
    assert (first.status, first.complained.count("roll-secret")) == (0, 2), first
    assert first.said.startswith(dry.said.rstrip("\n"))
    assert (second["steps"], len(office.wire.changing)) == ([], sent)
    assert "sk-live" not in dry.said + first.said + first.complained
    [buyer_set, limit] = as_owner.ok("GET", "/agents/buyer/policies")
    [small] = [one for one in as_owner.ok("GET", "/policy-sets") if one["id"] != "tenant"]
    assert (buyer_set["config"], limit["config"]["maxPerDay"]) == ({"policySet": small["id"]}, "5")
    assert small["policies"][0]["config"]["maxPerDay"] == "1" + "0" * 21
    assert {one["id"]: one["name"] for one in as_owner.ok("GET", "/agents")} == {"buyer": "Buys paper", "007": "NO"}
    assert sorted(one["enabled"] for one in as_owner.ok("GET", "/webhooks")) == [False, True]


def test_an_export_makes_an_equal_tenant(office: Office, service: Service, tmp_path: Path) -> None:
    office.fill(WHOLE)
    office.apply()
    exported = office.export()
    (elsewhere := tmp_path / "elsewhere").mkdir()
    with new_tenant(service) as other, closing(member(service, other, "owner", mfa=True)) as owner:
        again = Office(elsewhere, office.wire)
        again.take_session(owner)
        again.environment["SECRET_AN_API_S_KEY"] = "sk-other"
        again.fill(exported)
        again.apply()
        copied = again.export()

    office.fill(exported)
    assert "sk-live" not in exported
    assert office.apply()["steps"] == []
    assert copied == exported


def test_a_plan_says_who_is_affected_and_what_becomes_looser(office: Office, tenant: Tenant) -> None:
    tenant.agent(rule("spending-limit", maxPerDay="5"), rule("rate-limit", maxTxPerDay=3), agent_id="buyer")
    [before, _] = tenant.ok("GET", "/agents/buyer/policies")
    limit = "{type: spending-limit, config: {maxPerDay: 9}}"
    office.fill(f"version: 1\nagents: [{{id: buyer, name: Agent buyer, policies: [{limit}]}}]")
    said = office.run("apply", "-f", "tenant.yaml", "--yes").said
    [after] = tenant.ok("GET", "/agents/buyer/policies")

    assert "~ change rules of agent buyer" in said
    assert 'spending limit, maxPerDay: "5" -> "9"' in said
    assert "affects: agent buyer" in said
    assert re.search(r"LOOSER: Spending limit: .*9 wei.* in any 24 hours, was .*5 wei", said)
    assert "LOOSER: Rate limit: removed." in said
    assert "1 of these need a recent second factor" in said
    assert (after["id"], after["config"]) == (before["id"], {"maxPerDay": "9"})


def test_a_thing_that_the_file_does_not_name_stays_unless_told_and_an_agent_always_does(office: Office) -> None:
    office.fill(WHOLE)
    office.apply()
    before = office.export()
    office.fill("version: 1\nagents: []\nwebhooks: []\nsecrets: []\ncredentialRoutes: []\noidcProviders: []\n")
    kept = office.apply()
    unchanged = office.export()
    asked = office.run("apply", "-f", "tenant.yaml", "--prune")
    pruned = office.apply("--prune")
    after = office.export()

    assert (kept["steps"], unchanged) == ([], before)
    assert len(kept["left"]) == 7
    assert (asked.status, "Nobody can be asked here; say it with --yes" in asked.complained) == (1, True)
    assert [(step["verb"], step["section"]) for step in pruned["steps"]] == [
        ("delete", "oidcProviders"), ("delete", "webhooks"), ("delete", "webhooks"), ("delete", "credentialRoutes"),
        ("delete", "secrets"),
    ]  # fmt: skip
    for section in ("webhooks", "secrets", "credentialRoutes", "oidcProviders"):
        assert f"\n{section}: []\n" in after
    assert "id: buyer" in after
    assert "paid.example" in after


@pytest.mark.long
@pytest.mark.parametrize("how", ["before it arrives", "after it was done"])
def test_an_apply_that_was_killed_at_any_request_is_finished_by_the_next(
    service: Service, tmp_path: Path, how: Any
) -> None:
    ends: set[str] = set()
    at = total = 0
    while at <= total:
        (home := tmp_path / str(at)).mkdir()
        with new_tenant(service) as tenant, counting_wire(service.port) as wire:
            office = Office(home, wire)
            office.take_key(tenant.key)
            office.fill(SMALL)
            if at:
                kill_at(office, wire, at, how)
            with counting_wire(service.port) as good:
                office.environment["SERVICE_URL"] = good.url
                office.apply()
                total = total or len(good.changing)
                ends.add(office.export())
        at += 1

    assert total == 5
    assert len(ends) == 1
    assert ends.pop().count("paid.example") == 2


def kill_at(office: Office, wire: CountingWire, at: int, how: Any) -> None:
    """Begin an apply, and kill it at a request."""
    reached = threading.Event()
    begun = subprocess.Popen(
        office.command("apply", "-f", "tenant.yaml", "--yes"),
        cwd=office.home,
        env=office.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def kill() -> None:
        begun.kill()
        reached.set()

    wire.cut(at, how, kill)
    assert reached.wait(60)
    begun.wait(60)


def test_a_change_of_somebody_meanwhile_is_not_overwritten(key_office: Office, tenant: Tenant) -> None:
    tenant.agent(rule("spending-limit", maxPerDay="5"), agent_id="one")
    tenant.agent(rule("spending-limit", maxPerDay="5"), agent_id="two")
    key_office.fill(
        "version: 1\nagents:\n"
        "  - {id: one, name: Agent one, policies: [{type: spending-limit, config: {maxPerDay: 6}}]}\n"
        "  - {id: two, name: Agent two, policies: [{type: spending-limit, config: {maxPerDay: 6}}]}\n"
    )
    theirs = [rule("spending-limit", maxPerDay="1")]
    key_office.wire.between(1, lambda: tenant.ok("PUT", "/agents/two/policies", theirs))
    ended = key_office.run("apply", "-f", "tenant.yaml", "--yes")

    assert (ended.status, "Somebody changed it since this was planned" in ended.complained) == (1, True)
    assert "1 of 2 steps were done" in ended.complained
    assert tenant.ok("GET", "/agents/one/policies")[0]["config"] == {"maxPerDay": "6"}
    assert tenant.ok("GET", "/agents/two/policies")[0]["config"] == {"maxPerDay": "1"}


def test_a_deleted_route_is_made_again_though_its_key_was_used(key_office: Office, tenant: Tenant) -> None:
    key_office.fill(SMALL)
    for _ in range(3):
        key_office.apply()
        made = tenant.ok("GET", "/payment-routes")
        assert len(made) == 2
        for route in made:
            tenant.ok("DELETE", f"/payment-routes/{route['id']}")


def test_a_key_is_refused_what_is_for_people_before_anything_is_sent(key_office: Office) -> None:
    key_office.fill(WHOLE)
    ended = key_office.run("apply", "-f", "tenant.yaml", "--yes")
    exported = key_office.run("export")

    assert ended.status == 1
    for section in ("webhooks", "appClients", "oidcProviders", "ssoDomains"):
        assert f"`{section}` is for an owner or admin: sign in" in ended.complained
        assert f"`{section}` is not in it" in exported.complained
    assert "`config.authAbuseConfig` changes, which is for people" in ended.complained
    assert key_office.wire.changing == []
    assert exported.status == 0
    assert "webhooks" not in exported.said


def test_a_name_that_is_nowhere_and_a_value_that_is_missing_are_told_before_anything_is_sent(
    key_office: Office,
) -> None:
    route = "credentialRoutes: [{hostPattern: a.example, secret: keey, injectAs: header, injectKey: X}]"
    secret = "secrets: [{name: key, value: {env: NOT_SET}}, {name: file, value: {file: key.txt}}]"
    key_office.fill(f"version: 1\n{secret}\n{route}\n")
    nowhere = key_office.run("apply", "-f", "tenant.yaml", "--yes")
    key_office.fill(f"version: 1\n{secret}\n{route.replace('keey', 'key')}\n")
    missing = key_office.run("apply", "-f", "tenant.yaml", "--yes")

    assert "names the secret keey, which is nowhere" in nowhere.complained
    assert "nothing is in the variable NOT_SET" in missing.complained
    assert "nothing is in the file key.txt" in missing.complained
    assert (nowhere.status, missing.status, key_office.wire.changing) == (1, 1, [])

    (key_office.home / "key.txt").symlink_to("/etc/hostname")
    key_office.environment["NOT_SET"] = "sk-2"
    outside = key_office.run("apply", "-f", "tenant.yaml", "--yes")
    assert "key.txt is a link that leads out of the folder" in outside.complained
    assert (outside.status, key_office.wire.changing) == (2, [])
    (key_office.home / "key.txt").unlink()
    (key_office.home / "key.txt").write_text("sk-1\n")
    assert len(key_office.apply()["steps"]) == 3


def test_rules_that_votes_guard_are_told_and_sent_last(office: Office, as_owner: Person, tenant: Tenant) -> None:
    authenticator = Authenticator()
    authenticator.id = as_owner.ok("POST", "/approver-keys", authenticator.registration())["id"]
    voter = {"userId": as_owner.id, "keys": [authenticator.fingerprint]}
    guarded = [rule("approval-quorum", threshold=1, approvers=[voter]), rule("spending-limit", maxPerDay="5")]
    tenant.agent(agent_id="buyer")
    as_owner.ok("PUT", "/agents/buyer/policies", guarded)
    quorum = f"{{type: approval-quorum, config: {{threshold: 1, approvers: [{{userId: {as_owner.id}, "
    quorum += f'keys: ["{authenticator.fingerprint}"]}}]}}}}'
    limit = "{type: spending-limit, config: {maxPerDay: 9}}"
    office.fill(
        f"version: 1\nagents: [{{id: buyer, name: Agent buyer, policies: [{quorum}, {limit}]}}]\n"
        "paymentRoutes:\n"
        '  - {hostPattern: paid.example, maxPerCall: {"evm:8453:0x833589fcd6edb6e08f4c7c32d4f71b54bda02913": 1}}\n'
    )
    ended = office.run("apply", "-f", "tenant.yaml", "--yes")

    assert ended.status == 1
    assert "rules of agent buyer loosens rules that votes guard" in ended.said
    assert "1 of 2 steps were done" in ended.complained
    assert len(tenant.ok("GET", "/payment-routes")) == 1
    assert tenant.ok("GET", "/agents/buyer/policies")[1]["config"] == {"maxPerDay": "5"}


def test_a_second_factor_that_is_not_recent_is_told_and_nothing_is_sent(careful_desk: Desk, tenant: Tenant) -> None:
    (careful_desk.home / "tenant.yaml").write_text(SMALL)
    ended = careful_desk.run("apply", "-f", "tenant.yaml", "--yes")

    assert re.search(r"4 of these need a recent second factor of yours", ended.said)
    assert (ended.status, "Show it first: custody step-up" in ended.complained) == (1, True)
    assert tenant.ok("GET", "/policy-sets") == []


def test_a_role_that_may_not_is_told_before_anything_is_sent(
    service: Service, tenant: Tenant, wire: CountingWire, tmp_path: Path
) -> None:
    office = Office(tmp_path, wire)
    office.fill(SMALL)
    with closing(member(service, tenant, "developer", mfa=True)) as developer:
        office.take_session(developer)
        ended = office.run("apply", "-f", "tenant.yaml", "--yes")

    assert "policy set small is for owners and admins, and you are developer" in ended.complained
    assert (ended.status, wire.changing) == (1, [])
