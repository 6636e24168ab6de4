"""A tenant's OIDC providers over HTTP: what is discovered, what must agree, whose secret it is, and its keys."""

import uuid
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import msgspec
import pytest

from ops import places
from tests.fixtures.callers import new_tenant
from tests.fixtures.deployments import database_apart, deploy
from tests.fixtures.eventually import eventually
from tests.fixtures.people import Person, member
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import greet
from tests.outside.jose import SigningKey
from tests.outside.oidc_server import DISCOVERY, OidcServer, running_oidc_server
from tests.outside.replies import Heard, Reply, endless, html, json, redirect, zip_bomb

PREFIX = "SERVICE_TENANT_OIDC_SECRET_"
SECRET = "the-secret-of-a-client"
ACME = {
    f"{PREFIX}ACME_IDP": SECRET,
    f"{PREFIX}SHARED_X_IDP": SECRET,
    f"{PREFIX}SHARED_X_IDP_FOR": "shared.x",
    f"{PREFIX}EMPTY": " ",
}


@pytest.fixture(scope="module")
def running(postgres_home: places.Home, worker_id: str) -> Iterator[Service]:
    """A deployment whose operator keeps secrets of tenants' clients."""
    apart = database_apart(postgres_home, f"{worker_id}_oidc")
    with deploy(apart, "signer", "identity", "api", "scheduler", **ACME) as service:
        yield service


@pytest.fixture
def owner(running: Service) -> Iterator[Person]:
    """An owner of a tenant of this test's own."""
    with closing(owner_of_new(running)) as person:
        yield person


@pytest.fixture
def server() -> Iterator[OidcServer]:
    """An issuer of this test's own."""
    with running_oidc_server() as started:
        yield started


def owner_of_new(service: Service, tenant_id: str | None = None) -> Person:
    """An owner, with a recent second factor, of a tenant that is made now."""
    with new_tenant(service, tenant_id) as tenant:
        return member(service, tenant, "owner", mfa=True)


def path(owner: Person) -> str:
    return f"/tenants/{owner.tenant}/oidc-providers"


def least(server: OidcServer, **more: Any) -> dict[str, Any]:
    """Make the least that an administrator has to say of an honest provider."""
    return {"id": "idp", "issuer": server.issuer, "clientId": server.client_id, **more}


def whole(server: OidcServer, **more: Any) -> dict[str, Any]:
    """The same with every address."""
    given = {
        "jwksUri": f"{server.url}/jwks",
        "authorizationUrl": f"{server.url}/authorize",
        "tokenUrl": f"{server.url}/token",
    }
    return least(server, **given, **more)


def put(owner: Person, *providers: dict[str, Any]) -> list[dict[str, Any]]:
    answer: list[dict[str, Any]] = owner.ok("PUT", path(owner), {"providers": list(providers)})["providers"]
    return answer


def refusal(owner: Person, *providers: dict[str, Any], status: int = 400) -> dict[str, Any]:
    answer = owner.put(path(owner), json={"providers": list(providers)})
    assert answer.status_code == status, answer.text
    body = answer.json()
    return {**body["data"], "error": body["error"]}


def with_keys(owner: Person) -> dict[str, Any]:
    """The provider, once its keys were fetched."""
    return eventually(
        lambda: owner.ok("GET", path(owner))["providers"][0], lambda shown: shown["keysFetchedAt"] is not None, 20
    )


def test_an_administrator_sees_what_to_copy_before_anything_is_saved(running: Service, owner: Person) -> None:
    shown = owner.ok("GET", path(owner))

    assert shown["providers"] == []
    assert shown["callbackUrlTemplate"] == (f"http://localhost:{running.port}/auth/oidc/{owner.tenant}~{{id}}/callback")
    assert shown["secretVariablePrefix"] == f"{PREFIX}{owner.tenant.upper().replace('-', '_')}_"


def test_identity_discovers_what_is_left_out_and_fetches_the_keys(
    running: Service, owner: Person, server: OidcServer
) -> None:
    [saved] = put(owner, least(server))

    times = {name: saved.pop(name) for name in ("createdAt", "updatedAt", "keysFetchedAt", "keysProblem")}
    assert times["createdAt"] == times["updatedAt"]
    assert saved == {
        "id": "idp",
        "enabled": True,
        "issuer": server.issuer,
        "audience": ["client-1"],
        "jwksUri": f"{server.url}/jwks",
        "clientId": "client-1",
        "clientSecretEnv": None,
        "authorizationUrl": f"{server.url}/authorize",
        "tokenUrl": f"{server.url}/token",
        "scopes": ["openid", "email"],
        "allowJitProvisioning": False,
        "clientAuthentication": "basic",
        "issInResponse": True,
        "userinfoUrl": None,
        "callbackUrl": f"http://localhost:{running.port}/auth/oidc/{owner.tenant}~idp/callback",
        "clientSecretSet": None,
        "lastTest": None,
    }
    assert with_keys(owner)["keysProblem"] is None
    assert server.at("/jwks")[0].headers["accept-encoding"] == "identity"


def test_the_secret_goes_in_the_form_where_an_issuer_takes_no_basic(owner: Person, server: OidcServer) -> None:
    server.auth_methods = ("private_key_jwt", "client_secret_post")

    [saved] = put(owner, least(server))

    assert saved["clientAuthentication"] == "post"


def test_an_issuer_that_takes_no_secret_gets_none(owner: Person, server: OidcServer) -> None:
    server.auth_methods = ("private_key_jwt",)
    name = f"{PREFIX}{owner.tenant.upper().replace('-', '_')}_A"

    assert refusal(owner, least(server, clientSecretEnv=name))["fields"] == ["providers[0].clientSecretEnv"]
    assert put(owner, least(server))[0]["clientSecretEnv"] is None


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"jwksUri": "http://localhost:1/keys"}, "jwksUri"),
        ({"authorizationUrl": "http://localhost:1/authorize"}, "authorizationUrl"),
        ({"tokenUrl": "http://localhost:1/token"}, "tokenUrl"),
        ({"issInResponse": False}, "issInResponse"),
        ({"id": "b", "audience": []}, "audience"),
    ],
)
def test_a_field_that_does_not_agree_is_named(
    owner: Person, server: OidcServer, given: dict[str, Any], field: str
) -> None:
    refused = refusal(owner, least(server), least(server, **{"id": "two", **given}))

    assert refused["code"] == "invalid_oidc_provider"
    assert refused["fields"] == [f"providers[1].{field}"]
    assert owner.ok("GET", path(owner))["providers"] == []


def test_a_way_of_showing_the_secret_that_is_not_offered_is_named(owner: Person, server: OidcServer) -> None:
    server.auth_methods = ("client_secret_post",)

    refused = refusal(owner, least(server, clientAuthentication="basic"))

    assert refused["fields"] == ["providers[0].clientAuthentication"]


def test_a_document_of_another_issuer_is_refused(owner: Person, server: OidcServer) -> None:
    for issuer in (f"{server.issuer}/", server.issuer.replace("127.0.0.1", "localhost"), "https://evil.example.com"):
        server.discovery_changes = {"issuer": issuer}

        assert refusal(owner, whole(server))["fields"] == ["providers[0].issuer"]


@pytest.mark.parametrize(
    "address",
    [
        "http://169.254.169.254/latest/meta-data",
        "http://10.0.0.1/keys",
        "https://[::ffff:127.0.0.1]/keys",
        "https://user:hunter2@idp.example.com/keys",
        "http://idp.example.com/keys",
        "file:///etc/passwd",
    ],
)
def test_a_document_leads_nowhere_that_an_administrator_could_not(
    owner: Person, server: OidcServer, address: str
) -> None:
    for name, field in (
        ("jwks_uri", "jwksUri"),
        ("token_endpoint", "tokenUrl"),
        ("authorization_endpoint", "authorizationUrl"),
    ):
        server.discovery_changes = {name: address}
        refused = refusal(owner, least(server))

        assert refused["fields"] == [f"providers[0].{field}"]
        assert "hunter2" not in refused["error"]


def _twice(_heard: Heard) -> Reply:
    return Reply(200, b'{"issuer": "a", "issuer": "b"}', {"content-type": "application/json"})


@pytest.mark.parametrize(
    "answer",
    [
        Reply(404),
        Reply(500),
        redirect("/elsewhere"),
        redirect("http://169.254.169.254/"),
        html(),
        json([]),
        json({}),
        json({"issuer": ["a"]}),
        json({"issuer": "a", "pad": "x" * 1_048_576}),
        endless(),
        zip_bomb(b"{}"),
        _twice,
    ],
    ids=[
        "not_there",
        "failed",
        "moved",
        "moved_inside",
        "page",
        "list",
        "empty",
        "odd",
        "large",
        "endless",
        "packed",
        "twice",
    ],
)
def test_without_a_usable_document_every_address_must_be_given(owner: Person, server: OidcServer, answer: Any) -> None:
    server.replies(DISCOVERY, answer)

    refused = refusal(owner, least(server, jwksUri=f"{server.url}/jwks"))

    assert refused["code"] == "oidc_discovery_failed"
    assert refused["fields"] == ["providers[0].authorizationUrl", "providers[0].tokenUrl"]
    assert len(server.heard) == 1
    [saved] = put(owner, whole(server))
    assert (saved["clientAuthentication"], saved["issInResponse"]) == ("basic", False)


def test_an_issuer_that_says_nothing_for_eleven_seconds_has_no_document(owner: Person, server: OidcServer) -> None:
    server.delays(DISCOVERY, 11)

    refused = refusal(owner, least(server))

    assert refused["code"] == "oidc_discovery_failed"
    assert "in time" in refused["error"]


def test_an_address_on_the_private_network_is_not_asked(owner: Person) -> None:
    for issuer in (
        "https://10.0.0.1",
        "http://169.254.169.254",
        "https://localhost.internal",
        "http://idp.example.com",
    ):
        refused = refusal(owner, {"id": "idp", "issuer": issuer, "clientId": "a"})

        assert refused["fields"] == ["providers[0].issuer"]


@pytest.mark.parametrize(
    "issuer",
    ["https://login.microsoftonline.com/common/v2.0", "https://login.microsoftonline.com/{tenantid}/v2.0"],
)
def test_an_issuer_of_every_organisation_is_refused(owner: Person, issuer: str) -> None:
    refused = refusal(owner, {"id": "idp", "issuer": issuer, "clientId": "a"})

    assert refused["fields"] == ["providers[0].issuer"]


def test_the_userinfo_endpoint_is_public_and_the_issuers_own_or_not_saved(owner: Person, server: OidcServer) -> None:
    own = f"{server.url}/userinfo"

    assert put(owner, least(server))[0]["userinfoUrl"] is None
    assert put(owner, least(server, userinfoUrl=own))[0]["userinfoUrl"] == own
    for wrong in ("https://10.0.0.1/", "http://169.254.169.254/", "http://idp.example.com/", f"{own}/other"):
        assert refusal(owner, least(server, userinfoUrl=wrong))["fields"] == ["providers[0].userinfoUrl"]
    server.discovery_changes = {"userinfo_endpoint": None}
    for wrong in ("https://10.0.0.1/", "https://user:password@idp.example.com/"):
        assert refusal(owner, least(server, userinfoUrl=wrong))["fields"] == ["providers[0].userinfoUrl"]
    assert put(owner, least(server, userinfoUrl=own))[0]["userinfoUrl"] == own


@pytest.mark.parametrize("methods", [["client_secret_post", None, 7, {}], [None, "client_secret_post"]])
def test_odd_members_of_a_documents_list_say_nothing(owner: Person, server: OidcServer, methods: list[Any]) -> None:
    server.discovery_changes = {"token_endpoint_auth_methods_supported": methods, "scopes_supported": [7]}

    assert put(owner, least(server))[0]["clientAuthentication"] == "post"


def test_a_put_replaces_all_and_the_audit_log_names_them(owner: Person, server: OidcServer) -> None:
    put(owner, whole(server), whole(server, id="old"))
    first = {one["id"]: one for one in owner.ok("GET", path(owner))["providers"]}

    put(owner, whole(server, id="new", enabled=False), whole(server))

    shown = owner.ok("GET", path(owner))["providers"]
    assert [one["id"] for one in shown] == ["new", "idp"]
    assert shown[1]["updatedAt"] == first["idp"]["updatedAt"]
    rows = owner.ok("GET", "/audit/events?action=sso.oidc_providers_changed")["data"]
    assert len(rows) == 2
    assert rows[0]["metadata"] == {
        "issuers": {"new": server.issuer, "idp": server.issuer},
        "enabled": ["idp"],
        "removed": ["old"],
    }
    assert put(owner) == []


def test_eleven_providers_or_an_id_twice_are_refused(owner: Person, server: OidcServer) -> None:
    many = [whole(server, id=f"p{number}") for number in range(11)]

    assert refusal(owner, *many)["fields"] == ["providers"]
    assert refusal(owner, whole(server), whole(server))["fields"] == ["providers[1].id"]
    assert len(put(owner, *many[:10])) == 10


def test_a_provider_of_one_tenant_is_nothing_to_another(running: Service, owner: Person, server: OidcServer) -> None:
    put(owner, whole(server))
    with closing(owner_of_new(running)) as other:
        assert other.ok("GET", path(other))["providers"] == []
        assert other.get(path(owner)).status_code == 404
        assert other.put(path(owner), json={"providers": []}).status_code == 404
    assert len(owner.ok("GET", path(owner))["providers"]) == 1


def test_a_secret_is_named_and_never_shown(running: Service, server: OidcServer) -> None:
    with closing(owner_of_new(running, "acme")) as acme:
        [set_one, unset] = put(
            acme,
            whole(server, clientSecretEnv=f"{PREFIX}ACME_IDP"),
            whole(server, id="unset", clientSecretEnv=f"{PREFIX}ACME_NOTHING"),
        )

        assert (set_one["clientSecretSet"], unset["clientSecretSet"]) == (True, False)
        assert SECRET not in acme.get(path(acme)).text
        rows = acme.get("/audit/events?action=sso.oidc_providers_changed").text
        assert "acme" in rows
        assert SECRET not in rows
    assert SECRET not in running.logs()


@pytest.mark.parametrize(
    "name",
    ["SERVICE_MASTER_KEY_FILE", f"{PREFIX}ACME_IDP", f"{PREFIX}ACME_IDP".lower(), "PATH", f"{PREFIX}EMPTY"],
)
def test_a_variable_of_somebody_else_is_refused(owner: Person, server: OidcServer, name: str) -> None:
    refused = refusal(owner, whole(server, clientSecretEnv=name))

    assert (refused["code"], refused["fields"][0].rpartition(".")[2]) == ("invalid_oidc_provider", "clientSecretEnv")


def test_a_name_that_two_tenants_could_mean_is_refused_once_both_are_there(
    running: Service, server: OidcServer
) -> None:
    name = uuid.uuid4().hex[:8]
    variable = f"{PREFIX}{name.upper()}_CORP_IDP"
    with closing(owner_of_new(running, f"{name}-corp")) as corp:
        put(corp, whole(server, clientSecretEnv=variable))
        with closing(owner_of_new(running, name)) as kin:
            for one in (corp, kin):
                refused = refusal(one, whole(server, clientSecretEnv=variable), status=409)
                assert refused["code"] == "oidc_secret_ambiguous"
                assert f"{variable}_FOR" in refused["error"]


def test_a_variable_that_says_whose_it_is_is_that_tenants_alone(running: Service, server: OidcServer) -> None:
    variable = f"{PREFIX}SHARED_X_IDP"
    with closing(owner_of_new(running, "shared.x")) as right, closing(owner_of_new(running, "shared-x")) as wrong:
        [saved] = put(right, whole(server, clientSecretEnv=variable))

        assert saved["clientSecretSet"] is True
        assert refusal(wrong, whole(server, clientSecretEnv=variable), status=409)["code"] == "oidc_secret_ambiguous"
        assert refusal(right, whole(server, clientSecretEnv=f"{variable}_FOR"))["code"] == "invalid_oidc_provider"


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (html(), "set_malformed"),
        (json({"keys": []}), "set_empty"),
        (json({"keys": [SigningKey().private_jwk]}), "set_key_private"),
        (json({"keys": [SigningKey(bits=1024).jwk]}), "set_key_weak"),
        (json({"keys": [{**SigningKey().jwk, "use": "enc"}]}), "set_empty"),
        (json({"keys": [{"kty": "AKP", "kid": str(number)} for number in range(200)]}), "set_too_many_keys"),
        (json({"keys": [], "pad": "x" * 65_536}), "too_large"),
        (endless(), "too_large"),
        (zip_bomb(b"{}"), "encoded"),
        (redirect("/elsewhere"), "redirect"),
        (Reply(503), "status"),
    ],
    ids=["page", "empty", "private", "weak", "for_encryption", "many", "large", "endless", "packed", "moved", "failed"],
)
def test_a_set_that_is_not_taken_is_told_to_the_administrator(
    owner: Person, server: OidcServer, answer: Any, problem: str
) -> None:
    server.replies("/jwks", answer)

    put(owner, whole(server))

    shown = eventually(lambda: owner.ok("GET", path(owner))["providers"][0], lambda one: one["keysProblem"], 20)
    assert (shown["keysProblem"], shown["keysFetchedAt"]) == (problem, None)


def test_keys_from_another_address_are_fetched_at_once(owner: Person, server: OidcServer) -> None:
    put(owner, whole(server))
    with_keys(owner)
    server.discovery_changes = {"jwks_uri": f"{server.url}/other"}
    server.replies("/other", lambda heard: json({"keys": [SigningKey().jwk]}))

    [saved] = put(owner, least(server))

    assert saved["keysFetchedAt"] is None
    assert with_keys(owner)["keysProblem"] is None
    assert len(server.at("/other")) == 1


def set_of(*keys: SigningKey) -> bytes:
    return msgspec.json.encode({"keys": [key.jwk for key in keys]})


def test_keys_are_taken_from_the_scheduler_and_the_saved_address_alone(
    running: Service, owner: Person, server: OidcServer
) -> None:
    put(owner, whole(server))
    before = with_keys(owner)
    address, forged = f"{server.url}/jwks", set_of(SigningKey())
    body = {"tenant": owner.tenant, "provider": "idp", "jwks_uri": address, "keys": forged}

    with greet(running, "api") as api:
        assert api.ask("PutProviderKeys", body)["type"] == "Failed"
    with greet(running, "scheduler") as scheduler:
        elsewhere = scheduler.ask("PutProviderKeys", body | {"jwks_uri": f"{server.url}/other"})
        nobodys = scheduler.ask("PutProviderKeys", body | {"provider": "another"})
        of_platform = scheduler.ask("PutProviderKeys", body | {"tenant": None})
    assert [one["code"] for one in (elsewhere, nobodys, of_platform)] == ["provider_keys_moved"] * 3
    assert owner.ok("GET", path(owner))["providers"][0]["keysFetchedAt"] == before["keysFetchedAt"]


def test_a_bad_set_leaves_the_good_one_and_says_why(running: Service, owner: Person, server: OidcServer) -> None:
    put(owner, whole(server))
    before = with_keys(owner)
    body = {"tenant": owner.tenant, "provider": "idp", "jwks_uri": f"{server.url}/jwks"}

    with greet(running, "scheduler") as scheduler:
        bad = scheduler.ask("PutProviderKeys", body | {"keys": b"<html>"})
        away = scheduler.ask("PutProviderKeys", body | {"problem": "timeout"})

    assert (bad["data"], away["data"]) == ({"problem": "set_malformed"}, {"problem": "timeout"})
    after = owner.ok("GET", path(owner))["providers"][0]
    assert (after["keysFetchedAt"], after["keysProblem"]) == (before["keysFetchedAt"], "timeout")
