"""Configurations for tenants of known ids, and what the checklist says of a deployment."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from custody.kit.environment import BadSetting
from custody.tenants import presets
from ops import places
from tests.fixtures.callers import Client, platform_client
from tests.fixtures.deployments import database_apart, deploy
from tests.fixtures.people import member
from tests.fixtures.server import Service

FILE = """
[shop]
displayName = "The shop"
featureFlags = { enableSolana = false }
theme = { primaryColor = "#102030", logoUrl = "https://example.com/logo.png" }

[[shop.secretRoutePresets]]
id = "mail"
name = "Mail"
hostPattern = "mail.example.com"
injectAs = "header"
injectKey = "authorization"
provisioning = "platform"

[demo]
displayName = "Another demo"
"""


@pytest.fixture(scope="module")
def preset(postgres_home: places.Home, worker_id: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A deployment with presets of its own and its switches on."""
    file = tmp_path_factory.mktemp("presets") / "presets.toml"
    file.write_text(FILE)
    settings = {"SERVICE_TENANT_PRESETS_FILE": str(file), "SERVICE_EMPTY_POLICY": "deny"}
    database = database_apart(postgres_home, f"{worker_id}_presets")
    with deploy(database, **settings, SERVICE_SCOPED_PLATFORM_KEYS="false") as service:
        yield service


def make_tenant(service: Service, tenant: str) -> Client:
    """A tenant with this id and a client with its key."""
    with platform_client(service) as platform:
        key = platform.ok("POST", "/platform/tenants", {"id": tenant, "name": "x"})["apiKey"]
    return Client(base_url=service.url, headers={"X-Service-Key": key}, timeout=30)


def test_a_known_tenant_has_the_preset_until_it_saves_a_configuration(preset: Service) -> None:
    with make_tenant(preset, "shop") as shop:
        seen = shop.ok("GET", "/tenants/shop/config")
        back = shop.ok("PUT", "/tenants/shop/config", seen)
        emptied = shop.ok("PUT", "/tenants/shop/config", {})

    assert (seen["displayName"], seen["featureFlags"]["enableSolana"]) == ("The shop", False)
    assert seen["theme"]["primaryColor"] == "#102030"
    assert seen["secretRoutePresets"][0]["pathPattern"] == "/*"
    assert back == seen
    assert (emptied["displayName"], emptied["theme"], emptied["secretRoutePresets"]) == (None, None, [])


def test_the_file_takes_the_place_of_what_is_built_in(preset: Service) -> None:
    with make_tenant(preset, "demo") as demo, make_tenant(preset, "unknown") as unknown:
        assert demo.ok("GET", "/tenants/demo/config")["displayName"] == "Another demo"
        assert unknown.ok("GET", "/tenants/unknown/config")["displayName"] is None


def test_the_checklist_knows_the_switches_of_the_deployment(preset: Service) -> None:
    with make_tenant(preset, "looked-at"), closing(member(preset, "looked-at", "owner", mfa=True)) as owner:
        items = owner.ok("GET", "/tenants/looked-at/security-checklist")["items"]

    found = {one["id"]: one["status"] for one in items}
    assert (found["empty-policy"], found["platform-scopes"], found["public-url"]) == ("pass", "warning", "warning")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[shop", "table declaration"),
        ("shop = 1", "shop"),
        ('["a b"]\ndisplayName = "x"', "regex"),
        ("[shop]\nsurplus = 1", "surplus"),
        ("[shop]\nfeatureFlags = { everything = true }", "featureFlags"),
        ('[shop]\ntheme = { logoUrl = "http://example.com/a.png" }', "logoUrl"),
        ("[shop]\napprovalConfig = { autoExpireSeconds = 1 }", "only what people see"),
        ("[shop]\nauthAbuseConfig = { mfa = {} }", "only what people see"),
        ("[shop]\nappClients = []", "only what people see"),
    ],
    ids=str,
)
def test_a_bad_file_is_refused_by_name(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "presets.toml"
    file.write_text(text)

    with pytest.raises(BadSetting, match="SERVICE_TENANT_PRESETS_FILE") as refused:
        presets.load({presets.VARIABLE: str(file)})

    assert complaint in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match=r"nothing\.toml"):
        presets.load({presets.VARIABLE: str(tmp_path / "nothing.toml")})
