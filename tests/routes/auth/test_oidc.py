"""Sign-in at a tenant's OIDC provider: from the authorize route to the session, at honest providers and others."""

import secrets
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import asyncpg
import msgspec
import pytest

from tests.fixtures.callers import Client, new_tenant
from tests.fixtures.people import Person, member, sign_in_by_mail
from tests.fixtures.saml_sign_on import SamlTenant
from tests.fixtures.server import Service
from tests.fixtures.sign_on import Flow, redirect_params, refusal, verified_domain
from tests.outside.dns_server import DnsServer
from tests.outside.identity_providers.oidc import OidcClient, running_oidc_provider
from tests.outside.jose import SigningKey, compact, hmac_signed, sign_token, token_in_the_clear, token_without_signature
from tests.outside.oidc_server import OidcServer, running_oidc_server
from tests.outside.replies import Reply, html, json, redirect, zip_bomb
from tests.outside.smtp_server import Mailbox

ID = "acme-idp"


class OidcTenant:
    """A tenant, its provider and a domain that it has proven."""

    def __init__(self, service: Service, owner: Person, domain: str, idp: OidcServer) -> None:
        self.service, self.owner, self.domain, self.idp = service, owner, domain, idp
        self.tenant = owner.tenant
        idp.client_secret = None
        self.somebody_new()

    def somebody_new(self) -> None:
        """The provider's next person is one whom nobody knows."""
        name = secrets.token_hex(4)
        self.idp.person = {"sub": name, "email": f"{name}@{self.domain}", "email_verified": True, "name": "Ann"}

    def put(self, **changed: Any) -> None:
        """Save the provider."""
        provider = {
            "id": ID,
            "enabled": True,
            "issuer": self.idp.issuer,
            "clientId": self.idp.client_id,
            "allowJitProvisioning": True,
            **changed,
        }
        self.owner.ok("PUT", f"/tenants/{self.tenant}/oidc-providers", {"providers": [provider]})

    def flow(self, **query: str | None) -> Flow:
        """A browser that signs in here."""
        return Flow(self.service, f"/auth/oidc/{self.tenant}~{ID}/authorize", **query)

    def refusal(self) -> str:
        """With which code somebody is sent back."""
        with self.flow() as flow:
            return refusal(flow.walk(self.idp.browse))


@pytest.fixture(scope="module")
def idp() -> Iterator[OidcServer]:
    """A provider that is honest until a test changes it."""
    with running_oidc_server() as server:
        yield server


@pytest.fixture
def oidc(service: Service, as_owner: Person, dns_server: DnsServer, idp: OidcServer) -> Iterator[OidcTenant]:
    """A tenant whose people sign in at it."""
    tenant = OidcTenant(service, as_owner, verified_domain(as_owner, dns_server), idp)
    tenant.put()
    yield tenant
    for name in [name for name in vars(idp) if name.endswith("_changes")]:
        setattr(idp, name, {})
    idp.id_token, idp.shown_keys, idp.callback_suffix = idp.sign, None, ""
    idp.well()


def test_a_newcomer_becomes_a_viewer_in_a_session_that_stays_in_the_tenant(oidc: OidcTenant) -> None:
    with oidc.flow() as flow, closing(flow.person(oidc.idp.browse)) as somebody:
        elsewhere = somebody.post("/auth/session/tenant", json={"tenantId": f"personal-{somebody.id}"})

    assert somebody.session["provider"] == f"oidc:{ID}"
    assert (somebody.tenant, somebody.role) == (oidc.tenant, "viewer")
    assert (elsewhere.status_code, elsewhere.json()["data"]["code"]) == (403, "session_bound")


def test_the_same_subject_is_the_same_person_whatever_address_it_brings(oidc: OidcTenant) -> None:
    people = []

    for address in (f"a@{oidc.domain}", f"b@{oidc.domain}"):
        oidc.idp.person["email"] = address
        with oidc.flow() as flow, closing(flow.person(oidc.idp.browse)) as somebody:
            people.append(somebody.id)

    assert people[0] == people[1]


def test_the_provider_may_be_named_by_id_and_tenant_apart(oidc: OidcTenant) -> None:
    with Flow(oidc.service, f"/auth/oidc/{ID}/authorize", tenant_id=oidc.tenant) as flow:
        assert "code" in redirect_params(flow.walk(oidc.idp.browse))


@pytest.mark.parametrize(("name", "is_proven"), [("Eve", False), ("eve", True)])
def test_a_removed_member_is_no_newcomer_at_the_tenants_other_provider(
    oidc: OidcTenant, mailbox: Mailbox, as_platform: Client, name: str, is_proven: bool
) -> None:
    """Sign-on made them, or found them by an address that they had proven."""
    address, members = f"eve@{oidc.domain}", f"/platform/tenants/{oidc.tenant}/members"
    saml = SamlTenant(oidc.service, oidc.owner, oidc.domain)
    assert saml.put().status_code == 200
    oidc.idp.person["email"] = address
    if is_proven:
        with closing(sign_in_by_mail(oidc.service, mailbox, address)) as known:
            as_platform.ok("POST", members, {"userId": known.id, "role": "developer"})
    with saml.flow() as flow:
        user = flow.exchange(redirect_params(flow.arrive(name_id=f"{name}@{oidc.domain}"))["code"]).json()["data"][
            "user"
        ]["id"]

    as_platform.ok("DELETE", f"{members}/{user}")
    removed = oidc.refusal()
    as_platform.ok("POST", members, {"userId": user, "role": "viewer"})
    with oidc.flow() as flow, closing(flow.person(oidc.idp.browse)) as again:
        assert (again.id == user) == is_proven

    assert removed == "membership_removed"


@pytest.mark.parametrize(
    ("path", "named", "status", "code"),
    [
        (ID, None, 400, "tenant_required"),
        (f"nobody~{ID}", None, 404, "provider_absent"),
        (f"nobody~{ID}", "somebody", 400, "two_tenants"),
        ("Nope~", None, 404, "provider_unknown"),
    ],
)
def test_a_provider_that_is_named_wrongly_is_refused(
    oidc: OidcTenant, path: str, named: str | None, status: int, code: str
) -> None:
    with Flow(oidc.service, f"/auth/oidc/{path}/authorize", tenant_id=named) as flow:
        refused = flow.begin()

    assert (refused.status_code, refused.json()["data"]["code"]) == (status, code)


async def test_keys_that_changed_between_leaving_and_coming_back_are_fetched(
    oidc: OidcTenant, owner: asyncpg.Connection
) -> None:
    """O12: at once, unless they were fetched within the minute."""
    with oidc.flow() as flow:
        address = flow.provider_url()
        oidc.idp.rotate(keep=False)
        await owner.execute(
            "UPDATE provider_keys SET asked_at = asked_at - interval '2 minutes' WHERE tenant_id = $1", oidc.tenant
        )
        assert "code" in redirect_params(flow.back(oidc.idp.browse(address)))


def test_a_key_that_nobody_shows_is_waited_for_and_then_refused(oidc: OidcTenant) -> None:
    """O12."""
    stranger = SigningKey()
    oidc.idp.id_token = lambda claims: sign_token(claims, stranger)

    with oidc.flow() as flow:
        answered = redirect_params(flow.walk(oidc.idp.browse))

    assert (answered["error"], answered["error_code"]) == ("temporarily_unavailable", "keys_unavailable")


FORGED: dict[str, Any] = {
    "none": lambda claims, key: token_without_signature(claims, "none"),
    "nOnE": lambda claims, key: token_without_signature(claims, "nOnE"),
    "the public key as a secret": lambda claims, key: hmac_signed(claims, key.public_pem),
    "a header of its own": lambda claims, key: sign_token(claims, key, jwk=key.jwk),
    "crit": lambda claims, key: sign_token(claims, key, crit=["exp"]),
    "b64": token_in_the_clear,
    "five parts": lambda claims, key: sign_token(claims, key) + ".a.b",
    "twice the same": lambda claims, key: compact(
        {"alg": "RS256", "kid": key.kid}, msgspec.json.encode(claims)[:-1] + b',"sub":"other"}', key.sign
    ),
    "too long": lambda claims, key: sign_token({**claims, "x": "x" * 16 * 1024}, key),
    "nothing": lambda claims, key: None,
    "a list": lambda claims, key: [sign_token(claims, key)],
}


@pytest.mark.parametrize("name", FORGED)
def test_a_token_that_proves_nothing_signs_nobody_in(oidc: OidcTenant, name: str) -> None:
    """O10, O11, O26."""
    oidc.idp.id_token = lambda claims: FORGED[name](claims, oidc.idp.keys[0])

    assert oidc.refusal().startswith(("id_token_", "token_endpoint_failed"))


NOW = int(time.time())


@pytest.mark.parametrize(
    ("claims", "code"),
    [
        ({"iss": "https://elsewhere.example.com"}, "id_token_issuer"),
        ({"aud": "another client"}, "id_token_audience"),
        ({"aud": ["client-1", "a stranger"]}, "id_token_azp"),
        ({"azp": "another client"}, "id_token_azp"),
        ({"nonce": None}, "id_token_nonce"),
        ({"nonce": "of another flow"}, "id_token_nonce"),
        ({"exp": None}, "id_token_time"),
        ({"exp": NOW - 3600}, "id_token_expired"),
        ({"iat": NOW - 7200}, "id_token_old"),
        ({"nbf": NOW + 3600}, "id_token_early"),
        ({"sub": None}, "id_token_subject"),
        ({"sub": 7}, "id_token_subject"),
        ({"sub": "x" * 300}, "id_token_subject"),
        ({"email_verified": False}, "email_unverified"),
        ({"email_verified": None}, "email_unverified"),
        ({"email_verified": None, "xms_edov": True}, "email_unverified"),
        ({"email": "ann@elsewhere.example.com"}, "email_domain_unverified"),
    ],
)
def test_a_claim_that_is_wrong_signs_nobody_in(oidc: OidcTenant, claims: dict[str, Any], code: str) -> None:
    """O14 to O17, O27."""
    oidc.idp.claim_changes = claims

    assert oidc.refusal() == code


def test_a_token_of_another_flow_proves_nothing_in_this_one(oidc: OidcTenant) -> None:
    """O15, O18: the nonce is of one state."""
    tokens: list[Any] = []

    def keep(claims: dict[str, Any]) -> Any:
        tokens.append(oidc.idp.sign(claims))
        return tokens[0]

    oidc.idp.id_token = keep
    with oidc.flow() as first, oidc.flow() as second:
        assert "code" in redirect_params(first.walk(oidc.idp.browse))
        assert refusal(second.walk(oidc.idp.browse)) == "id_token_nonce"


def odd_members() -> list[Any]:
    """Members of a key set that issuers of the field publish, each signing with what it shows."""
    return [
        SigningKey(bits=1024, kid="weak").jwk,
        {**SigningKey().jwk, "kid": ""},
        {**SigningKey().jwk, "kid": 7},
        {**SigningKey().jwk, "n": SigningKey().jwk["n"] + "=="},
        SigningKey(kid="namesake").jwk,
        SigningKey(kid="namesake").jwk,
        {**SigningKey().jwk, "use": "enc"},
        {"kty": "AKP", "kid": "later", "pub": "AAAA"},
        {"kty": "RSA", "kid": "hollow"},
        "no key",
    ]


def test_a_good_key_verifies_whatever_stands_beside_it_in_the_set(oidc: OidcTenant) -> None:
    with running_oidc_server() as other:
        other.client_secret, other.person = None, oidc.idp.person
        other.shown_keys = [*odd_members(), other.keys[0].jwk]
        oidc.put(issuer=other.issuer)

        with oidc.flow() as flow, closing(flow.person(other.browse)) as somebody:
            assert somebody.role == "viewer"


@pytest.mark.parametrize("odd", ["weak", "namesake", "for encryption"])
def test_a_token_by_a_key_that_is_skipped_signs_nobody_in(oidc: OidcTenant, odd: str) -> None:
    key = SigningKey(bits=1024 if odd == "weak" else 2048, kid=odd)
    shown = {**key.jwk, "use": "enc"} if odd == "for encryption" else key.jwk
    with running_oidc_server() as other:
        other.client_secret, other.person = None, oidc.idp.person
        other.shown_keys = [shown, SigningKey(kid="namesake").jwk, other.keys[0].jwk]
        oidc.put(issuer=other.issuer)
        with oidc.flow() as flow:
            assert "code" in redirect_params(flow.walk(other.browse))

        other.id_token = lambda claims: sign_token(claims, key)
        with oidc.flow() as flow:
            assert refusal(flow.walk(other.browse)) == "keys_unavailable"


def asks_userinfo(oidc: OidcTenant, **changed: Any) -> None:
    """The tenant's provider says only at its userinfo endpoint that an address is verified."""
    oidc.put(userinfoUrl=f"{oidc.idp.url}/userinfo")
    oidc.idp.claim_changes = {"email_verified": None, **changed}
    oidc.idp.heard.clear()


@pytest.mark.parametrize("left_out", [{}, {"email": None}], ids=["address in both", "address there alone"])
def test_userinfo_says_once_that_the_address_is_verified(oidc: OidcTenant, left_out: dict[str, Any]) -> None:
    asks_userinfo(oidc, **left_out)

    with oidc.flow() as flow, closing(flow.person(oidc.idp.browse)) as somebody:
        assert (somebody.tenant, somebody.role) == (oidc.tenant, "viewer")
    assert len(oidc.idp.at("/userinfo")) == 1


@pytest.mark.parametrize(("verified", "outcome"), [(True, "none"), (False, "email_unverified")])
def test_userinfo_is_not_asked_where_the_id_token_says_it(oidc: OidcTenant, verified: bool, outcome: str) -> None:
    asks_userinfo(oidc, email_verified=verified)

    assert oidc.refusal() == outcome
    assert oidc.idp.at("/userinfo") == []


def test_userinfo_is_not_asked_where_no_administrator_wants_it(oidc: OidcTenant) -> None:
    oidc.idp.claim_changes = {"email_verified": None}
    oidc.idp.heard.clear()

    assert oidc.refusal() == "email_unverified"
    assert oidc.idp.at("/userinfo") == []


@pytest.mark.parametrize(
    ("says", "code"),
    [
        ({"sub": "somebody else"}, "userinfo_invalid"),
        ({"sub": None}, "userinfo_invalid"),
        ({"sub": 7}, "userinfo_invalid"),
        ({"email_verified": False}, "email_unverified"),
        ({"email_verified": None}, "email_unverified"),
        ({"email_verified": 1}, "email_unverified"),
        ({"email_verified": None, "xms_edov": True}, "email_unverified"),
        ({"email": "boss@elsewhere.example.com"}, "email_unverified"),
        ({"email": None}, "email_unverified"),
        ({"email": ["a@b.example"]}, "email_unverified"),
    ],
)
def test_userinfo_that_says_something_else_signs_nobody_in(oidc: OidcTenant, says: dict[str, Any], code: str) -> None:
    asks_userinfo(oidc)
    oidc.idp.userinfo_changes = says

    assert oidc.refusal() == code


def test_an_address_that_userinfo_alone_says_must_be_in_a_verified_domain(oidc: OidcTenant) -> None:
    asks_userinfo(oidc, email=None)
    oidc.idp.userinfo_changes = {"email": "ann@elsewhere.example.com"}

    assert oidc.refusal() == "email_domain_unverified"


USERINFO: dict[str, tuple[Reply, str]] = {
    "HTML": (html(), "userinfo_invalid"),
    "a list": (json([]), "userinfo_invalid"),
    "a member twice": (Reply(200, b'{"sub": "a", "sub": "b"}'), "userinfo_invalid"),
    "no UTF-8": (Reply(200, b"\xff"), "userinfo_failed"),
    "401": (Reply(401), "userinfo_failed"),
    "500": (Reply(500), "userinfo_failed"),
    "elsewhere": (redirect("/elsewhere"), "userinfo_failed"),
    "17 KiB": (json({"sub": "x" * 17 * 1024}), "userinfo_failed"),
    "packed": (zip_bomb(b"{}"), "userinfo_failed"),
}


@pytest.mark.parametrize("name", USERINFO)
def test_userinfo_that_is_not_answered_as_it_must_be_signs_nobody_in(oidc: OidcTenant, name: str) -> None:
    asks_userinfo(oidc)
    reply, code = USERINFO[name]
    oidc.idp.replies("/userinfo", reply)

    assert oidc.refusal() == code
    assert oidc.idp.at("/elsewhere") == []


@pytest.mark.parametrize("token", ["", "a\r\nX-More: 1", "\u00e9", None])
def test_an_access_token_that_cannot_stand_in_a_header_is_not_sent(oidc: OidcTenant, token: str | None) -> None:
    asks_userinfo(oidc)
    oidc.idp.token_changes = {"access_token": token}

    assert oidc.refusal() == "userinfo_failed"
    assert oidc.idp.at("/userinfo") == []


@pytest.mark.parametrize("iss", [None, "https://elsewhere.example.com"])
def test_an_answer_must_name_the_issuer_where_discovery_promised_it(oidc: OidcTenant, iss: str | None) -> None:
    """O9."""
    oidc.idp.callback_changes = {"iss": iss}

    assert oidc.refusal() == "issuer_mismatch"


def test_an_issuer_that_is_named_twice_is_refused(oidc: OidcTenant) -> None:
    """O9."""
    oidc.idp.callback_suffix = "&iss=https%3A%2F%2Felsewhere.example.com"

    with oidc.flow() as flow:
        refused = flow.walk(oidc.idp.browse)

    assert (refused.status_code, refused.json()["data"]["code"]) == (400, "bad_query")


ANSWERS: dict[str, tuple[Reply, str]] = {
    "HTML": (html(), "token_endpoint_failed"),
    "500": (Reply(500), "token_endpoint_failed"),
    "400": (json({"error": "invalid_grant"}, 400), "token_endpoint_refused"),
    "elsewhere": (redirect("https://elsewhere.example.com/token"), "token_endpoint_failed"),
    "another type": (json({"token_type": "mac", "id_token": "x"}), "token_endpoint_failed"),
    "a list": (json([]), "token_endpoint_failed"),
    "no token": (json({"token_type": "Bearer", "access_token": "x"}), "id_token_missing"),
    "65 KiB": (json({"token_type": "Bearer", "x": "x" * 65 * 1024}), "token_endpoint_failed"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_token_endpoint_that_answers_something_else_signs_nobody_in(oidc: OidcTenant, name: str) -> None:
    """O26."""
    reply, code = ANSWERS[name]
    oidc.idp.replies("/token", reply)

    assert oidc.refusal() == code


@pytest.mark.parametrize("change", [{"enabled": False}, {"clientId": "another"}, None])
def test_a_configuration_that_changed_meanwhile_is_not_judged_by(
    oidc: OidcTenant, change: dict[str, Any] | None
) -> None:
    """O22."""
    with oidc.flow() as flow:
        callback = oidc.idp.browse(flow.provider_url())
        if change is None:
            oidc.owner.ok("PUT", f"/tenants/{oidc.tenant}/oidc-providers", {"providers": []})
        else:
            oidc.put(**change)
        assert refusal(flow.back(callback)) == "provider_changed"


def test_each_tenants_provider_has_a_callback_of_its_own(
    oidc: OidcTenant, service: Service, dns_server: DnsServer
) -> None:
    """O19: an answer that was meant for one tenant's provider is nothing to another's of the same name."""
    with closing(member(service, new_tenant_id(service), "owner", mfa=True)) as owner:
        other = OidcTenant(service, owner, verified_domain(owner, dns_server), oidc.idp)
        other.put()
        with oidc.flow() as flow:
            callback = oidc.idp.browse(flow.provider_url())
            refused = flow.back(callback.replace(f"/{oidc.tenant}~", f"/{other.tenant}~"))

    assert (refused.status_code, refused.json()["data"]["code"]) == (400, "sign_in_state_invalid")


def test_the_same_subject_at_another_issuer_is_nobody(oidc: OidcTenant) -> None:
    """O23: an old account is not the new issuer's to open."""
    with oidc.flow() as flow, closing(flow.person(oidc.idp.browse)) as before:
        pass
    with running_oidc_server() as other:
        other.client_secret, other.person = None, {**oidc.idp.person, "email": f"new@{oidc.domain}"}
        oidc.put(issuer=other.issuer)
        with oidc.flow() as flow, closing(flow.person(other.browse)) as after:
            assert after.id != before.id


def test_an_address_with_another_subject_is_no_account(oidc: OidcTenant) -> None:
    """O28."""
    oidc.put(allowJitProvisioning=False)
    with oidc.flow() as flow:
        assert refusal(flow.walk(oidc.idp.browse)) == "account_unknown"


def test_a_member_is_found_by_their_proven_address(oidc: OidcTenant, mailbox: Mailbox, as_platform: Client) -> None:
    with closing(sign_in_by_mail(oidc.service, mailbox, oidc.idp.person["email"])) as known:
        body = {"userId": known.id, "role": "admin"}
        as_platform.ok("POST", f"/platform/tenants/{oidc.tenant}/members", body)

        with oidc.flow() as flow, closing(flow.person(oidc.idp.browse)) as came:
            assert (came.id, came.role) == (known.id, "admin")


async def test_a_request_that_somebody_else_wrote_signs_nobody_in(oidc: OidcTenant, owner: asyncpg.Connection) -> None:
    """O37: where the browser goes is under a MAC."""
    with oidc.flow() as flow:
        callback = oidc.idp.browse(flow.provider_url())
        await owner.execute(
            "UPDATE sign_in_requests SET document = replace(document, '/device', '/evil') WHERE document LIKE $1",
            f"%{oidc.tenant}%",
        )
        refused = flow.back(callback)

    assert (refused.status_code, refused.json()["data"]["code"]) == (400, "sign_in_state_invalid")


async def test_a_code_that_somebody_else_wrote_begins_nothing(oidc: OidcTenant, owner: asyncpg.Connection) -> None:
    """O37."""
    with oidc.flow() as flow:
        code = flow.code(oidc.idp.browse)
        await owner.execute(
            "UPDATE exchange_codes SET document = replace(document, $1, 'other')", oidc.idp.person["sub"]
        )
        refused = flow.exchange(code)

    assert (refused.status_code, refused.json()["data"]["code"]) == (401, "code_invalid")


def test_nothing_secret_of_a_flow_is_logged_or_recorded(oidc: OidcTenant) -> None:
    """O8."""
    seen: list[str] = []
    oidc.idp.id_token = lambda claims: seen.append(oidc.idp.sign(claims)) or seen[-1]
    with oidc.flow() as flow:
        address = flow.provider_url()
        state = dict(parse_qsl(urlsplit(address).query))["state"]
        code = redirect_params(flow.back(oidc.idp.browse(address)))["code"]
        flow.exchange(code)
        seen += [state, code, flow.verifier, flow.cookies["custody-flow"]]

    told = oidc.service.logs() + str(oidc.owner.ok("GET", "/audit/events?limit=200"))
    assert [secret for secret in seen if secret in told] == []


def test_a_try_shows_what_arrived_and_signs_nobody_in(oidc: OidcTenant) -> None:
    oidc.put(enabled=False)
    begun = oidc.owner.ok("POST", f"/tenants/{oidc.tenant}/sign-on/test", {"provider": ID})

    with oidc.flow() as flow:
        flow.path, flow.query = begun["url"], {}
        page = flow.walk(oidc.idp.browse)

    assert page.status_code == 200
    assert "Nobody was signed in" in page.text
    assert oidc.idp.person["sub"] in page.text
    [shown] = oidc.owner.ok("GET", f"/tenants/{oidc.tenant}/oidc-providers")["providers"]
    assert shown["lastTest"]["ok"] is True
    assert [check["passed"] for check in shown["lastTest"]["checks"]] == [True] * len(shown["lastTest"]["checks"])


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
def test_a_provider_that_somebody_else_wrote_signs_people_in(
    service: Service, as_owner: Person, dns_server: DnsServer, algorithm: str
) -> None:
    domain = verified_domain(as_owner, dns_server)
    callback = f"http://localhost:{service.port}/auth/oidc/{as_owner.tenant}~{ID}/callback"
    client = OidcClient(
        "custody", [callback], token_endpoint_auth_method="none", id_token_signed_response_alg=algorithm
    )
    with running_oidc_provider([client]) as provider:
        provider.says("ann-1", email=f"ann@{domain}", email_verified=True)
        body = {
            "id": ID,
            "enabled": True,
            "issuer": provider.issuer,
            "clientId": "custody",
            "allowJitProvisioning": True,
        }
        as_owner.ok("PUT", f"/tenants/{as_owner.tenant}/oidc-providers", {"providers": [body]})

        with (
            Flow(service, f"/auth/oidc/{as_owner.tenant}~{ID}/authorize") as flow,
            closing(flow.person(provider.answer)) as somebody,
        ):
            assert (somebody.tenant, somebody.role) == (as_owner.tenant, "viewer")


def new_tenant_id(service: Service) -> str:
    with closing(new_tenant(service)) as made:
        return made.id
