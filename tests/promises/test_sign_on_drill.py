"""A drill: an attacker controls the api or the scheduler while people sign on.

What the attacker can do stands in docs/threats.md: use what passes by, once. Whom a provider has proven is not the
api's to say, and the keys of a provider are not the scheduler's to choose.
"""

from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from tests.fixtures.eventually import eventually
from tests.fixtures.people import Person
from tests.fixtures.saml_sign_on import SamlTenant
from tests.fixtures.server import Service
from tests.fixtures.sign_on import challenge_of, verified_domain
from tests.fixtures.signer_socket import Wire, greet
from tests.outside.dns_server import DnsServer
from tests.outside.jose import SigningKey, sign_token
from tests.outside.oauth_providers import OAuthProviders
from tests.outside.oidc_server import running_oidc_server
from tests.outside.saml_answers import Answer, form_value, key

BROWSER, VERIFIER = "b" * 43, "v" * 43


class Taken:
    """The api's place at identity's socket."""

    def __init__(self, wire: Wire, service: Service) -> None:
        self.wire, self.service = wire, service

    def say(self, name: str, **fields: Any) -> Any:
        """Send a message to identity and return its answer."""
        return self.wire.ask(name, fields)

    def begin(self, kind: str, provider: str, tenant: str | None = None) -> dict[str, list[str]]:
        """A sign-in that the attacker began: what the browser would take to the provider."""
        said = self.say(
            "BeginSignIn",
            kind=kind,
            provider=provider,
            tenant=tenant,
            browser=BROWSER,
            redirect_uri=f"http://localhost:{self.service.port}/device",
            code_challenge=challenge_of(VERIFIER),
        )
        return parse_qs(urlsplit(said["data"]["url"]).query)

    def open_sign_in(self, provider: str) -> str:
        """The state of a sign-in at one of the deployment's providers, opened as after a callback."""
        (state,) = self.begin("oauth", provider)["state"]
        answer = self.say("OpenSignIn", kind="oauth", provider=provider, tenant=None, state=state, browser=BROWSER)
        assert answer["type"] == "Opened", answer
        return state


def error_of(answer: Any) -> str:
    """With which code a browser would be sent back, or that of the failure."""
    if answer["type"] == "Failed":
        return str(answer["code"])
    return parse_qs(urlsplit(answer["location"]).query).get("error_code", ["none"])[0]


@pytest.fixture
def attacker(service: Service) -> Iterator[Taken]:
    with greet(service) as wire:
        yield Taken(wire, service)


def test_a_token_of_the_apis_own_making_is_nobody_at_google(attacker: Taken, oauth: OAuthProviders) -> None:
    """O35."""
    state = attacker.open_sign_in("google")
    claims = oauth.google.claims("any nonce", sub="the victim")

    answer = attacker.say("FinishOAuth", state=state, id_token=sign_token(claims, SigningKey()))

    # The key is unknown, so identity asks for the provider's keys, and goes on knowing nobody.
    assert error_of(answer) == "keys_wanted"


def test_a_genuine_token_of_another_flow_is_nobody_in_this_one(attacker: Taken, oauth: OAuthProviders) -> None:
    """O18, O35: its nonce is of another state, which the api cannot choose."""
    state = attacker.open_sign_in("google")
    genuine = oauth.google.sign(oauth.google.claims("the victim's nonce"))

    def judge() -> str:
        return error_of(attacker.say("FinishOAuth", state=state, id_token=genuine))

    # The state stays until identity has the provider's keys, which the scheduler may only be fetching yet.
    assert eventually(judge, lambda code: code != "keys_wanted") == "id_token_nonce"


def test_a_profile_is_nobody_at_a_provider_with_tokens(attacker: Taken) -> None:
    """O35: at X the api is believed, and nowhere else."""
    state = attacker.open_sign_in("google")

    assert error_of(attacker.say("FinishOAuth", state=state, profile="2244994945")) == "id_token_missing"


@pytest.mark.parametrize(
    ("wanted", "changed", "code"),
    [
        (False, {}, "email_unverified"),
        (True, {}, "none"),
        (True, {"sub": "the victim"}, "userinfo_invalid"),
        (True, {"email": "boss@{domain}"}, "email_unverified"),
    ],
    ids=["not wanted", "wanted", "of another person", "of another address"],
)
def test_userinfo_of_the_apis_own_making_counts_only_where_an_administrator_wants_it(
    attacker: Taken, as_owner: Person, dns_server: DnsServer, wanted: bool, changed: dict[str, str], code: str
) -> None:
    """It says that an address is verified, and never whose it is: subject and address are what the provider signed."""
    domain = verified_domain(as_owner, dns_server)
    with running_oidc_server() as idp:
        body = {"id": "idp", "issuer": idp.issuer, "clientId": idp.client_id, "allowJitProvisioning": True}
        body |= {"userinfoUrl": f"{idp.url}/userinfo"} if wanted else {}
        as_owner.ok("PUT", f"/tenants/{as_owner.tenant}/oidc-providers", {"providers": [body]})
        asked = attacker.begin("oidc", "idp", as_owner.tenant)
        state, nonce = asked["state"][0], asked["nonce"][0]
        mine = {"kind": "oidc", "provider": "idp", "tenant": as_owner.tenant, "state": state, "browser": BROWSER}
        assert attacker.say("OpenSignIn", **mine, issuer=idp.issuer)["type"] == "Opened"
        person = {"sub": "ann", "email": f"ann@{domain}"}
        token = idp.sign(idp.claims(nonce, **person, email_verified=None))
        made = {"email_verified": True, **person, **{name: one.format(domain=domain) for name, one in changed.items()}}

        def judge() -> str:
            said = msgspec.json.encode(made).decode()
            return error_of(attacker.say("FinishOAuth", state=state, id_token=token, userinfo=said))

        assert eventually(judge, lambda found: found != "keys_wanted") == code


def test_a_state_is_opened_once_and_finished_once(attacker: Taken) -> None:
    """O35."""
    state = attacker.open_sign_in("twitter")
    again = attacker.say("OpenSignIn", kind="oauth", provider="twitter", tenant=None, state=state, browser=BROWSER)
    first = attacker.say("FinishOAuth", state=state, profile="77")
    second = attacker.say("FinishOAuth", state=state, profile="78")

    assert error_of(again) == "sign_in_state_invalid"
    # Who opens it twice, as by pressing twice, is refused once and comes in.
    assert [error_of(one) for one in (first, second)] == ["none", "sign_in_state_invalid"]


def test_a_state_that_nobody_brought_back_cannot_be_finished(attacker: Taken) -> None:
    (state,) = attacker.begin("oauth", "twitter")["state"]

    assert error_of(attacker.say("FinishOAuth", state=state, profile="77")) == "sign_in_state_invalid"


def test_a_code_without_its_verifier_begins_nothing(attacker: Taken) -> None:
    """O35: a code that passed by is the client's, who holds the verifier."""
    answer = attacker.say("FinishOAuth", state=attacker.open_sign_in("twitter"), profile="79")
    (code,) = parse_qs(urlsplit(answer["location"]).query)["code"]

    tries = [attacker.say("ExchangeCode", code=code, code_verifier=verifier) for verifier in ("x" * 43, VERIFIER)]

    assert [one["code"] for one in tries] == ["code_verifier_mismatch", "code_invalid"]


def test_the_api_gives_no_keys(attacker: Taken) -> None:
    """O35: only the scheduler brings them."""
    said = attacker.say(
        "PutProviderKeys", tenant=None, provider="google", jwks_uri="https://evil.example.com/jwks", keys=b"{}"
    )

    assert said["type"] == "Failed"


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("FinishSaml", {"tenant": "t", "relay_state": "x", "browser": "x", "response": "x"}),
        ("FinishOAuth", {"state": "x"}),
        ("ExchangeCode", {"code": "x", "code_verifier": "x"}),
        ("BeginSignIn", {"kind": "oauth", "provider": "google", "browser": BROWSER}),
    ],
)
def test_the_scheduler_signs_nobody_in(service: Service, name: str, fields: dict[str, Any]) -> None:
    """O36, S43."""
    with greet(service, "scheduler") as wire:
        assert wire.ask(name, fields)["type"] == "Failed"


def test_keys_from_another_address_are_not_taken_from_the_scheduler(service: Service) -> None:
    """O36: it says where they are from, and that is the address that was configured."""
    with greet(service, "scheduler") as wire:
        said = wire.ask(
            "PutProviderKeys",
            {"tenant": None, "provider": "google", "jwks_uri": "https://evil.example.com/", "keys": b'{"keys":[]}'},
        )

    assert said["type"] == "Failed"


class TestSaml:
    """S43: what the api could make up of a SAML sign-in."""

    @pytest.fixture
    def saml(self, service: Service, as_owner: Person, dns_server: DnsServer) -> SamlTenant:
        tenant = SamlTenant(service, as_owner, verified_domain(as_owner, dns_server))
        assert tenant.put().status_code == 200
        return tenant

    def test_an_answer_of_its_own_making_is_nobody(self, attacker: Taken, saml: SamlTenant) -> None:
        """Signed by a key that no administrator has named."""
        assert error_of(self._finish(attacker, saml, by=key("rsa", "of the attacker"))) == "saml_signature_invalid"

    def test_a_genuine_answer_to_another_request_is_nobody(self, attacker: Taken, saml: SamlTenant) -> None:
        assert error_of(self._finish(attacker, saml, request_id="_" + "x" * 43)) == "saml_request_mismatch"

    def test_an_answer_is_for_its_tenant_alone(self, attacker: Taken, saml: SamlTenant, person: Person) -> None:
        said = attacker.begin("saml", "saml", saml.tenant)
        fields = {"relay_state": said["RelayState"][0], "browser": BROWSER, "response": "AAAA"}

        assert error_of(attacker.say("FinishSaml", tenant=person.tenant, **fields)) == "sign_in_state_invalid"

    def test_a_configuration_needs_an_administrators_session(self, attacker: Taken, saml: SamlTenant) -> None:
        with closing(saml.owner):
            assert attacker.say("PutSaml", config=saml.config())["type"] == "Failed"

    def _finish(self, taken: Taken, saml: SamlTenant, by: Any = None, **changed: Any) -> Any:
        said = taken.begin("saml", "saml", saml.tenant)
        with saml.flow() as flow:
            flow.request_id = "_" + "r" * 43
            answer: Answer = flow.answer(**changed)
        form = form_value(answer.sign(by or saml.key))
        return taken.say(
            "FinishSaml", tenant=saml.tenant, relay_state=said["RelayState"][0], browser=BROWSER, response=form
        )
