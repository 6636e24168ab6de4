"""Tenants at random: what one exports makes another like it, and a second apply changes nothing."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tenant_command.yaml_text import yaml_text
from tests.fixtures.callers import new_tenant
from tests.fixtures.server import Service
from tests.fixtures.tenant_commands import Desk
from tests.rules.policies import drawn

NAMES = st.text(st.characters(min_codepoint=0x20, exclude_categories=("Cs", "Cc", "Cn")), min_size=1, max_size=12) | (
    st.sampled_from(("NO", "yes", "007", "1e3", "~", "null", "a: b", "- a", " a ", "#", "\u202eabc", "é", "\U0001f600"))
)
IDS = st.from_regex(r"[A-Za-z0-9_:-][A-Za-z0-9_.:-]{0,9}", fullmatch=True)


def some(one, by: str | None = None, most: int = 3):
    return st.lists(one, max_size=most, unique_by=(lambda made: made[by]) if by else None)


@st.composite
def rules(draw, *more):
    found = [{"type": rule.type, "enabled": rule.enabled, "config": rule.config} for rule in draw(drawn.sets)]
    return [*found, *(draw(one) for one in more)]


@st.composite
def tenants(draw):
    """The data of a file, each name of which is there."""
    secrets = draw(some(st.fixed_dictionaries({"name": NAMES, "value": st.just({"env": "VALUE"})}), "name"))
    sets = draw(some(st.fixed_dictionaries({"name": NAMES, "policies": rules()}), "name"))
    named = [
        st.just({"type": "policy-set", "config": {"policySet": one["name"]}}) for one in draw(st.permutations(sets))[:1]
    ]
    agents = draw(
        some(
            st.fixed_dictionaries(
                {"id": IDS, "name": NAMES, "policies": rules(*named)},
                optional={"displayName": NAMES, "platformId": NAMES},
            ),
            "id",
        )
    )
    for number, agent in enumerate(agents):
        if "platformId" in agent:
            agent["platformId"] += f" {number}"
    hosts = st.sampled_from(("api.example", "*.api.example", "api.example:8443"))
    ids = (
        st.lists(st.sampled_from([agent["id"] for agent in agents]), max_size=2, unique=True) if agents else st.just([])
    )
    place = {
        "hostPattern": hosts,
        "pathPattern": st.sampled_from(("/*", "/v1/*")),
        "method": st.sampled_from(("*", "GET")),
        "priority": st.integers(-2, 2),
        "enabled": st.booleans(),
        "agents": ids,
    }
    route = st.fixed_dictionaries(
        {
            **place,
            "secret": st.sampled_from([one["name"] for one in secrets] or [""]),
            "injectAs": st.just("header"),
            "injectKey": st.sampled_from(("Authorization", "X-Key")),
            "injectFormat": st.sampled_from(("{value}", "Bearer {value}")),
        }
    )
    paid = st.fixed_dictionaries(
        {**place, "maxPerCall": st.just({f"evm:8453:0x{'83' * 20}": "5"}), "allowUnknownPayTo": st.booleans()}
    )
    return {
        "version": 1,
        "secrets": secrets,
        "policySets": sets,
        "agents": agents,
        "credentialRoutes": draw(some(route)) if secrets else [],
        "paymentRoutes": draw(some(paid)),
        "config": {"displayName": draw(NAMES), "approvalConfig": {"autoExpireSeconds": draw(st.integers(0, 99))}},
    }


@settings(max_examples=4)
@given(data=tenants())
def test_the_export_of_any_tenant_makes_its_like(service: Service, data: dict) -> None:
    with tempfile.TemporaryDirectory() as folder, new_tenant(service) as one, new_tenant(service) as other:
        desks = [Desk(Path(folder) / name, service.url) for name in ("one", "other")]
        for desk, tenant in zip(desks, (one, other), strict=True):
            desk.home.mkdir()
            desk.take_key(tenant.key)
        first, second = desks
        first.environment["VALUE"] = "sk-1"
        (first.home / "tenant.yaml").write_text(yaml_text(data))
        first.ok("apply", "-f", "tenant.yaml", "--yes")
        exported = first.run("export").said
        second.environment |= {name: "sk-2" for name in exported.split() if name.startswith("SECRET_")}
        (second.home / "tenant.yaml").write_text(exported)
        second.ok("apply", "-f", "tenant.yaml", "--yes")

        assert second.run("export").said == exported
        assert second.ok("apply", "-f", "tenant.yaml", "--yes")["steps"] == []
