"""Signing in at this service's own page for an app client: the code, whose it is, and where it may go."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.fixtures.callers import Client, Tenant
from tests.fixtures.each import each
from tests.fixtures.people import Person, member, says, sign_in
from tests.fixtures.server import Service
from tests.routes.auth.factors import refusal
from tests.routes.auth.hosted import CLIENT, REDIRECT, Application, put_client

THEME = {"primaryColor": "#a1b2c3", "colorScheme": "dark", "borderRadius": 12, "fontFamily": "Georgia, serif"}


@pytest.fixture
def application(service: Service, tenant: Tenant, as_owner: Person) -> Application:
    """An application of this test's tenant."""
    put_client(as_owner)
    return Application(service, tenant.id)


@pytest.fixture
def visitor(service: Service, tenant: Tenant) -> Iterator[Person]:
    """An end user of the tenant, signed in at our own address."""
    with closing(member(service, tenant, "member")) as person:
        yield person


def look(client: Client, tenant: str, **changed: Any) -> Any:
    query = {"tenant_id": tenant, "client_id": CLIENT, "redirect_uri": REDIRECT, **changed}
    return client.get("/auth/sign-in", params=query)


def test_a_code_begins_a_session_of_the_same_person_in_that_tenant(
    service: Service, tenant: Tenant, application: Application, visitor: Person
) -> None:
    brought = application.came_to(visitor)
    answer = application.exchange(brought["code"])

    session = answer.json()["data"]
    assert (brought["state"], brought["iss"], brought["from"]) == (
        application.state,
        f"http://localhost:{service.port}",
        "us",
    )
    assert (session["user"]["id"], session["tenant"]["id"]) == (visitor.id, tenant.id)
    assert (session["tenant"]["role"], session["tenant"].get("apiKey")) == ("member", None)
    assert answer.headers["Cache-Control"] == "no-store"


def test_a_code_works_once_and_a_second_use_ends_what_it_began(
    application: Application, visitor: Person, service: Service
) -> None:
    code = application.came_to(visitor)["code"]
    begun = application.exchange(code).json()["data"]

    again = application.exchange(code)

    assert refusal(again) == (401, "code_invalid")
    with Client(base_url=service.url, headers={"Authorization": f"Bearer {begun['token']}"}) as held:
        assert held.get("/auth/session").status_code == 401


@each(
    ("changed", "code"),
    [
        ({"code_verifier": "x" * 43}, "code_verifier_mismatch"),
        ({"redirect_uri": REDIRECT.replace("?from=us", "")}, "code_redirect_mismatch"),
        ({"tenant_id": "another"}, "code_tenant_mismatch"),
    ],
)
def test_a_code_of_others_opens_nothing_and_is_used_up(
    application: Application, visitor: Person, changed: dict[str, str], code: str
) -> None:
    given = application.came_to(visitor)["code"]

    assert refusal(application.exchange(given, **changed))[1] == code
    assert refusal(application.exchange(given)) == (401, "code_invalid")


@each(
    ("changed", "code"),
    [
        ({"redirectUri": f"{REDIRECT}#x"}, "bad_redirect_uri"),
        ({"redirectUri": REDIRECT.upper()}, "bad_redirect_uri"),
        ({"redirectUri": REDIRECT.replace("?from=us", "/..")}, "bad_redirect_uri"),
        ({"redirectUri": "https://evil.example/"}, "bad_redirect_uri"),
        ({"redirectUri": "javascript:alert(1)"}, "bad_redirect_uri"),
        ({"redirectUri": "//evil.example"}, "bad_redirect_uri"),
        ({"redirectUri": ""}, "bad_redirect_uri"),
        ({"clientId": "another"}, "unknown_app_client"),
        ({"codeChallenge": ""}, "bad_code_challenge"),
        ({"codeChallenge": "x" * 42}, "bad_code_challenge"),
        ({"codeChallengeMethod": "plain"}, "bad_code_challenge"),
        ({"codeChallengeMethod": None}, "bad_code_challenge"),
        ({"state": "a\r\nLocation: https://evil.example"}, "bad_client_state"),
        ({"state": "s" * 513}, "bad_client_state"),
    ],
)
def test_a_code_goes_nowhere_but_to_an_address_that_the_client_lists(
    application: Application, visitor: Person, changed: dict[str, Any], code: str
) -> None:
    assert refusal(application.ask(visitor, **changed)) == (400, code)


def test_a_code_is_worth_nothing_once_the_client_lists_its_address_no_more(
    application: Application, visitor: Person, as_owner: Person
) -> None:
    codes = [application.came_to(visitor)["code"] for _ in range(3)]

    put_client(as_owner, allowedRedirectUrls=[])
    unlisted = application.exchange(codes[0])
    put_client(as_owner, enabled=False)
    disabled = application.exchange(codes[1])
    put_client(as_owner)
    control = application.exchange(codes[2])

    assert refusal(unlisted) == (400, "bad_redirect_uri")
    assert refusal(disabled) == (400, "unknown_app_client")
    assert control.status_code == 200


def test_a_removed_member_gets_no_session_from_a_code(
    application: Application, visitor: Person, as_owner: Person, tenant: Tenant
) -> None:
    code = application.came_to(visitor)["code"]
    as_owner.ok("DELETE", f"/tenants/{tenant.id}/members/{visitor.id}")

    assert refusal(application.exchange(code)) == (403, "not_a_member")


def test_a_session_of_an_application_reaches_nothing_of_the_person_elsewhere(
    service: Service, application: Application, visitor: Person
) -> None:
    with closing(sign_in(service, visitor.wallet)) as at_home:
        own = at_home.tenant
    with closing(application.person(visitor)) as held:
        elsewhere = held.post("/auth/session/tenant", json={"tenantId": own})
        identities = held.post("/auth/identities", json={})
        passkeys = held.get("/auth/passkeys")

    assert refusal(elsewhere) == (403, "session_bound")
    assert [one.status_code for one in (identities, passkeys)] == [403, 403]


def test_a_code_links_no_account(application: Application, visitor: Person, service: Service) -> None:
    """Codes of providers do; this one proves nobody's account there."""
    code = application.came_to(visitor)["code"]
    proof = {"oauth": {"code": code, "codeVerifier": application.verifier, "redirectUri": REDIRECT}}

    with closing(sign_in(service)) as another:
        assert another.post("/auth/identities", json=proof).status_code in (400, 403)


def test_a_second_factor_that_was_shown_here_counts_at_the_application(
    service: Service, application: Application, tenant: Tenant
) -> None:
    with closing(member(service, tenant, "member", mfa=True)) as person, closing(application.person(person)) as held:
        before, after = person.session["mfa"]["verifiedAt"], held.session["mfa"]["verifiedAt"]

    with closing(member(service, tenant, "member")) as person, closing(application.person(person)) as held:
        without = held.session["mfa"]["verifiedAt"]

    assert (after, without) == (before, None)


def test_a_session_at_a_page_of_an_application_makes_no_codes(
    service: Service, application: Application, visitor: Person, as_owner: Person, tenant: Tenant
) -> None:
    """A page's session is no sign-in at our own page."""
    put_client(as_owner, allowedOrigins=["https://shop.example.com"])
    with Client(base_url=service.url) as nobody:
        nonce = nobody.ok("GET", "/auth/nonce")["nonce"]
    signed = visitor.wallet.sign_in(
        says(service, nonce, domain="shop.example.com", uri="https://shop.example.com/login")
    )
    body = {"message": signed.message, "signature": signed.signature, "tenantId": tenant.id, "clientId": CLIENT}
    with Person(base_url=service.url) as page:
        page.take(page.ok("POST", "/auth/verify", body))

        assert refusal(application.ask(page))[0] == 403


def test_a_page_shows_the_application_its_colours_and_where_it_leads(
    as_nobody: Client, as_owner: Person, tenant: Tenant, application: Application
) -> None:
    as_owner.ok("PUT", f"/tenants/{tenant.id}/config", {"displayName": "Acme", "theme": THEME})

    shown = look(as_nobody, tenant.id).json()["data"]

    assert (shown["tenantName"], shown["clientName"], shown["returnsTo"]) == (
        "Acme",
        "The shop",
        "https://app.example.com",
    )
    assert (shown["registers"], shown["organisation"]) == (False, [])
    assert shown["theme"] == THEME


@each(
    ("changed", "code"),
    [
        ({"redirect_uri": "https://evil.example/"}, "bad_redirect_uri"),
        ({"client_id": "another"}, "unknown_app_client"),
        ({"tenant_id": "another"}, "unknown_app_client"),
    ],
)
def test_a_page_shows_nothing_of_what_is_not_listed(
    as_nobody: Client, tenant: Tenant, application: Application, changed: dict[str, str], code: str
) -> None:
    assert refusal(look(as_nobody, tenant.id, **changed)) == (400, code)


def test_a_page_is_framed_by_nobody_and_runs_what_we_serve(as_nobody: Client) -> None:
    page = as_nobody.get("/sign-in", params={"client_id": '"><script>alert(1)</script>'})

    rules = dict(part.strip().split(" ", 1) for part in page.headers["Content-Security-Policy"].split(";"))
    assert page.status_code == 200
    assert (rules["frame-ancestors"], rules["script-src"], rules["style-src"]) == ("'none'", "'self'", "'self'")
    assert "alert(1)" not in page.text
