"""Sign-in at Google, Discord and X: from the authorize route to the session."""

from contextlib import closing
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest

from tests.fixtures.callers import Client, Tenant
from tests.fixtures.people import Person, fresh_address, sign_in_by_mail
from tests.fixtures.server import Service
from tests.fixtures.sign_on import HTML, REDIRECT, Flow, challenge_of, redirect_params
from tests.outside.oauth_providers import OAuthProviders
from tests.outside.smtp_server import Mailbox

PROVIDERS = ("google", "discord", "twitter")


def authorize(provider: str) -> str:
    return f"/auth/oauth/{provider}/authorize"


def somebody_new(oauth: OAuthProviders, provider: str) -> None:
    """Let the provider's next person be one whom nobody knows."""
    number = str(abs(hash(fresh_address())))[:18]
    if provider == "twitter":
        oauth.twitter.profile = {"data": {"id": number}}
    else:
        oauth.all[provider].person = {"sub": number, "email": fresh_address(), "email_verified": True, "name": "Ann"}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_new_person_gets_a_session_and_a_tenant_of_their_own(
    service: Service, oauth: OAuthProviders, provider: str
) -> None:
    somebody_new(oauth, provider)

    with Flow(service, authorize(provider)) as flow, closing(flow.person(oauth.all[provider].browse)) as person:
        session = person.session

    assert session["provider"] == provider
    assert session["expiresIn"] == 900
    assert session["tenant"]["role"] == "owner"
    assert session["tenant"]["apiKey"].startswith("ck_")
    assert session["mfa"] == {"verifiedAt": None, "methods": []}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_same_account_is_the_same_person(service: Service, oauth: OAuthProviders, provider: str) -> None:
    somebody_new(oauth, provider)
    people = []

    for _ in range(2):
        with Flow(service, authorize(provider)) as flow, closing(flow.person(oauth.all[provider].browse)) as person:
            people.append(person.id)

    assert people[0] == people[1]


def test_the_browser_is_sent_with_a_challenge_of_our_own(service: Service, oauth: OAuthProviders) -> None:
    with Flow(service, authorize("google")) as flow:
        begun = flow.begin()
        asked = dict(parse_qsl(urlsplit(begun.headers["location"]).query))

    assert begun.headers["location"].startswith(f"{oauth.google.url}/authorize?")
    assert asked["client_id"] == "google-client"
    assert asked["redirect_uri"] == f"http://localhost:{service.port}/auth/oauth/google/callback"
    assert asked["scope"] == "openid email profile"
    assert asked["code_challenge_method"] == "S256"
    assert asked["code_challenge"] != challenge_of(flow.verifier)
    assert begun.headers["cache-control"] == "no-store"
    assert begun.headers["referrer-policy"] == "no-referrer"
    assert "custody-flow=" in begun.headers["set-cookie"]
    assert "HttpOnly" in begun.headers["set-cookie"]
    assert "SameSite=Lax" in begun.headers["set-cookie"]


def test_the_client_gets_its_state_and_our_issuer_back(service: Service, oauth: OAuthProviders) -> None:
    somebody_new(oauth, "google")

    with Flow(service, authorize("google"), state="a b&code=c") as flow:
        answered = redirect_params(flow.walk(oauth.google.browse))

    assert answered["state"] == "a b&code=c"
    assert answered["iss"] == f"http://localhost:{service.port}"
    assert set(answered) == {"code", "state", "iss"}


def test_an_address_of_somebody_known_links_nothing(service: Service, oauth: OAuthProviders, mailbox: Mailbox) -> None:
    """O29: an address that a provider says opens nobody's account."""
    address = fresh_address()
    with closing(sign_in_by_mail(service, mailbox, address)) as known:
        somebody_new(oauth, "google")
        oauth.google.person["email"] = address

        with Flow(service, authorize("google")) as flow, closing(flow.person(oauth.google.browse)) as other:
            assert other.id != known.id
            user = other.session["user"]
            assert (user["email"], user["emailVerified"]) == (address, False)


def test_an_address_is_shown_where_the_provider_calls_it_verified(
    service: Service, oauth: OAuthProviders, as_platform: Client
) -> None:
    shown = []
    for verified in (True, False):
        somebody_new(oauth, "discord")
        oauth.discord.person["email_verified"] = verified
        address = oauth.discord.person["email"]
        with Flow(service, authorize("discord")) as flow, closing(flow.person(oauth.discord.browse)) as person:
            session = person.ok("GET", "/auth/session")["user"]
            [member] = as_platform.ok("GET", f"/platform/tenants/{person.tenant}/members")
        assert session == person.session["user"]
        shown.append((address, session["email"], session["emailVerified"], member["email"], member["emailVerified"]))

    assert [one[1:] for one in shown] == [(shown[0][0], False, shown[0][0], False), (None, None, None, None)]


def test_a_code_works_once_and_its_second_use_ends_the_session(service: Service, oauth: OAuthProviders) -> None:
    """O7: a code that is sent again after it worked may be stolen."""
    somebody_new(oauth, "google")

    with Flow(service, authorize("google")) as flow:
        code = flow.code(oauth.google.browse)
        first = flow.exchange(code)
        token = {"Authorization": f"Bearer {first.json()['data']['token']}"}
        alive = flow.get("/auth/session", headers=token)
        second = flow.exchange(code)
        ended = flow.get("/auth/session", headers=token)

    assert (first.status_code, alive.status_code) == (200, 200)
    assert (second.status_code, second.json()["data"]["code"]) == (401, "code_invalid")
    assert ended.status_code == 401


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"code_verifier": "x" * 43}, "code_verifier_mismatch"),
        ({"code_verifier": "too short"}, "code_verifier_mismatch"),
        ({"redirect_uri": "https://elsewhere.example.com/"}, "code_redirect_mismatch"),
        ({"tenant_id": "another-tenant"}, "code_tenant_mismatch"),
        ({"code": "nobody's"}, "code_invalid"),
    ],
)
def test_the_first_try_uses_the_code_up_right_or_wrong(
    service: Service, oauth: OAuthProviders, changed: dict[str, str], code: str
) -> None:
    """O6: nobody guesses at a verifier."""
    somebody_new(oauth, "google")

    with Flow(service, authorize("google")) as flow:
        held = flow.code(oauth.google.browse)
        wrong = flow.exchange(**{"code": held, **changed})
        right = flow.exchange(held)

    assert (wrong.status_code, wrong.json()["data"]["code"]) == (401, code)
    assert right.status_code == (200 if "code" in changed else 401)


def test_a_code_of_one_provider_is_not_exchanged_by_another(service: Service, oauth: OAuthProviders) -> None:
    somebody_new(oauth, "google")

    with Flow(service, authorize("google")) as flow:
        body = {"code": flow.code(oauth.google.browse), "code_verifier": flow.verifier}
        other = flow.post("/auth/oauth/discord/token", json=body)
        body["code"] = flow.code(oauth.google.browse)
        own = flow.post("/auth/oauth/google/token", json=body)

    assert (other.status_code, other.json()["data"]["code"]) == (401, "code_tenant_mismatch")
    assert own.json()["data"]["provider"] == "google"


@pytest.mark.parametrize(
    "query", [{"code_challenge": None}, {"code_challenge": "x" * 42}, {"code_challenge": "+" * 43}]
)
def test_a_challenge_that_is_none_is_refused(
    service: Service, oauth: OAuthProviders, query: dict[str, str | None]
) -> None:
    with Flow(service, authorize("google"), **query) as flow:
        refused = flow.begin()

    assert (refused.status_code, refused.json()["data"]["code"]) == (400, "bad_code_challenge")


@pytest.mark.parametrize("method", [None, "plain", "s256", "S256 ", ""])
def test_no_method_weaker_than_sha_256_is_taken(service: Service, oauth: OAuthProviders, method: str | None) -> None:
    """O5: a downgrade would leave the code alone to count."""
    with Flow(service, authorize("google"), code_challenge_method=method) as flow:
        refused = flow.begin()

    assert (refused.status_code, refused.json()["data"]["code"]) == (400, "bad_code_challenge")


WRONG = (
    "https://app.example.com/signed-in/",
    "https://app.example.com:443/signed-in",
    "https://APP.example.com/signed-in",
    "https://app.example.com/Signed-in",
    "https://app.example.com@evil.example.com/signed-in",
    "https://app.example.com/signed%2din",
    "https://app.example.com/signed-in#x",
    "https://evil.app.example.com/signed-in",
    "https:\\\\app.example.com\\signed-in",
    "//app.example.com/signed-in",
    "javascript:alert(1)",
    "",
    "http://localhost/device",
)


@pytest.mark.parametrize("address", WRONG)
def test_an_address_that_is_not_listed_is_refused_without_a_redirect_or_an_echo(
    service: Service, oauth: OAuthProviders, as_owner: Person, address: str
) -> None:
    """O3: the address decides who gets the code, so only the very text counts."""
    app_client(as_owner, allowedRedirectUrls=[REDIRECT])

    with Flow(service, authorize("google"), tenant_id=as_owner.tenant, client_id="shop", redirect_uri=address) as flow:
        refused = flow.begin()
        page = flow.begin(**HTML)

    assert (refused.status_code, refused.json()["data"]["code"]) == (400, "bad_redirect_uri")
    assert "location" not in refused.headers
    assert page.headers["content-type"].startswith("text/html")
    assert not address or address not in page.text


def test_the_list_of_the_app_client_counts(service: Service, oauth: OAuthProviders, as_owner: Person) -> None:
    app_client(as_owner, allowedRedirectUrls=[REDIRECT])
    app_client(as_owner, id="other", allowedRedirectUrls=["https://other.example.com/"])
    given = {"redirect_uri": REDIRECT, "tenant_id": as_owner.tenant}

    answers = {}
    for client in ("shop", f"{as_owner.tenant}/shop", "other", "absent", None):
        with Flow(service, authorize("google"), **given, client_id=client) as flow:
            answers[client] = flow.begin().status_code

    assert answers == {"shop": 302, f"{as_owner.tenant}/shop": 302, "other": 400, "absent": 400, None: 400}


def test_without_a_client_the_default_one_counts(service: Service, oauth: OAuthProviders, as_owner: Person) -> None:
    app_client(as_owner, allowedRedirectUrls=[REDIRECT], isDefault=True)

    with Flow(service, authorize("google"), redirect_uri=REDIRECT, tenant_id=as_owner.tenant) as flow:
        assert flow.begin().status_code == 302


@pytest.mark.parametrize("change", [{"enabled": False}, {"loginMethods": {"oauth": {"google": False}}}])
def test_a_client_that_is_off_or_lets_nobody_in_that_way_is_refused(
    service: Service, oauth: OAuthProviders, as_owner: Person, change: dict[str, object]
) -> None:
    """O4."""
    app_client(as_owner, allowedRedirectUrls=[REDIRECT], **change)
    given = {"redirect_uri": REDIRECT, "tenant_id": as_owner.tenant, "client_id": "shop"}

    with Flow(service, authorize("google"), **given) as flow:
        google = flow.begin()
    with Flow(service, authorize("discord"), **given) as flow:
        discord = flow.begin()

    assert google.status_code == (400 if "enabled" in change else 404)
    assert discord.status_code == (400 if "enabled" in change else 302)


def test_a_provider_that_nobody_configured_is_absent(service: Service, oauth: OAuthProviders) -> None:
    with Flow(service, authorize("myspace")) as flow:
        refused = flow.begin()

    assert (refused.status_code, refused.json()["data"]["code"]) == (404, "provider_unknown")


def test_the_sign_in_methods_name_the_providers(service: Service, oauth: OAuthProviders) -> None:
    with Client(base_url=service.url) as nobody:
        assert nobody.ok("GET", "/auth/providers")["oauth"] == ["discord", "google", "twitter"]


def test_a_person_comes_into_a_tenant_only_as_its_member(
    service: Service, oauth: OAuthProviders, tenant: Tenant
) -> None:
    somebody_new(oauth, "google")

    with Flow(service, authorize("google"), tenant_id=tenant.id) as flow:
        stranger = redirect_params(flow.walk(oauth.google.browse))

    assert (stranger["error"], stranger["error_code"]) == ("access_denied", "not_a_member")


# ---------------------------------------------------------------- the state


def test_a_state_of_another_browser_is_used_up_and_signs_nobody_in(service: Service, oauth: OAuthProviders) -> None:
    """O1: an attacker's own flow, begun in the attacker's browser, must not end in the victim's."""
    somebody_new(oauth, "google")

    with Flow(service, authorize("google")) as attacker, Flow(service, authorize("google")) as victim:
        victim.begin()
        callback = oauth.google.browse(attacker.provider_url())
        theirs, own = victim.back(callback), attacker.back(callback)

    assert [(one.status_code, one.json()["data"]["code"]) for one in (theirs, own)] == [
        (400, "sign_in_state_invalid")
    ] * 2


def test_a_state_works_once(service: Service, oauth: OAuthProviders) -> None:
    somebody_new(oauth, "google")

    with Flow(service, authorize("google")) as flow:
        callback = oauth.google.browse(flow.provider_url())
        first, second = flow.back(callback), flow.back(callback)

    assert first.status_code == 303
    assert (second.status_code, second.json()["data"]["code"]) == (400, "sign_in_state_invalid")


def test_a_second_callback_takes_nothing_from_the_first(service: Service, oauth: OAuthProviders) -> None:
    """O1: who presses twice at the provider comes in once."""
    somebody_new(oauth, "google")
    seconds: list[httpx.Response] = []

    with Flow(service, authorize("google")) as flow:
        callback = oauth.google.browse(flow.provider_url())
        cookie = {"Cookie": f"custody-flow={flow.cookies['custody-flow']}"}

        def meanwhile(claims: dict[str, Any]) -> str:
            seconds.append(httpx.get(callback, headers=cookie, timeout=30))
            return oauth.google.sign(claims)

        oauth.google.id_token = meanwhile
        try:
            code = redirect_params(flow.back(callback))["code"]
        finally:
            oauth.google.id_token = oauth.google.sign
        third = flow.back(callback)
        exchanged = flow.exchange(code)

    refused = [(one.status_code, one.json()["data"]["code"]) for one in (*seconds, third)]
    assert refused == [(400, "sign_in_state_invalid")] * 2
    assert exchanged.status_code == 200


def test_a_state_of_one_provider_is_nothing_to_another(service: Service, oauth: OAuthProviders) -> None:
    with Flow(service, authorize("google")) as flow:
        callback = oauth.google.browse(flow.provider_url())
        elsewhere = flow.back(callback.replace("/google/", "/discord/"))

    assert (elsewhere.status_code, elsewhere.json()["data"]["code"]) == (400, "sign_in_state_invalid")


@pytest.mark.parametrize(("state", "code"), [("", "state_missing"), ("x" * 43, "sign_in_state_invalid")])
def test_no_state_and_an_unknown_one_are_refused_with_a_page(service: Service, state: str, code: str) -> None:
    with Client(base_url=service.url) as browser:
        page = browser.get("/auth/oauth/google/callback", params={"state": state, "code": "x"}, headers=HTML)

    assert page.status_code == 400
    assert page.headers["content-type"].startswith("text/html")
    assert code in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]


def test_two_cookies_of_one_name_are_refused(service: Service, oauth: OAuthProviders) -> None:
    """O38: somebody planted one beside ours."""
    with Flow(service, authorize("google")) as flow:
        callback = oauth.google.browse(flow.provider_url())
        mine = flow.cookies["custody-flow"]
        flow.cookies.clear()
        planted = flow.get(callback, headers={"Cookie": f"custody-flow=x; custody-flow={mine}"})

    assert (planted.status_code, planted.json()["data"]["code"]) == (400, "bad_cookie")


def test_two_tabs_of_one_browser_both_end_well(service: Service, oauth: OAuthProviders) -> None:
    somebody_new(oauth, "google")

    with Flow(service, authorize("google")) as browser:
        callbacks = [oauth.google.browse(browser.provider_url()) for _ in range(2)]
        ends = [redirect_params(browser.back(callback)) for callback in callbacks]

    assert all("code" in end for end in ends)


def test_the_provider_s_refusal_uses_the_state_up_and_its_text_goes_nowhere(
    service: Service, oauth: OAuthProviders
) -> None:
    """O2."""
    with Flow(service, authorize("google")) as flow:
        state = dict(parse_qsl(urlsplit(flow.provider_url()).query))["state"]
        where = {"state": state, "error": "<blink>", "error_uri": "https://evil.example.com/"}
        refused = flow.get("/auth/oauth/google/callback", params=where)
        again = flow.get("/auth/oauth/google/callback", params={"state": state, "code": "x"})

    assert redirect_params(refused)["error_code"] == "provider_refused"
    assert "evil" not in refused.headers["location"]
    assert "blink" not in refused.headers["location"]
    assert again.status_code == 400


# ---------------------------------------------------------------- what providers say


@pytest.mark.parametrize(
    "profile",
    [
        {"data": {"id": 2244994945}},
        {"data": {"id": {"id": "1"}}},
        {"data": {"id": "x" * 10_240}},
        {"data": {"id": "ann@example.com"}},
        {"data": {"id": ""}},
        {"data": {"id": "12"}, "errors": [{"title": "x"}]},
        {"errors": [{"title": "Unauthorized"}]},
        {},
    ],
)
def test_nothing_but_a_number_is_a_person_at_x(
    service: Service, oauth: OAuthProviders, profile: dict[str, object]
) -> None:
    """O34."""
    oauth.twitter.profile = profile

    with Flow(service, authorize("twitter")) as flow:
        refused = redirect_params(flow.walk(oauth.twitter.browse))

    assert (refused["error"], refused["error_code"]) == ("access_denied", "profile_invalid")


@pytest.mark.parametrize("state", ["x" * 513, "a\r\nSet-Cookie: a=b", "é"])
def test_a_state_of_the_client_that_no_address_can_carry_is_refused(
    service: Service, oauth: OAuthProviders, state: str
) -> None:
    """O39."""
    with Flow(service, authorize("google"), state=state) as flow:
        refused = flow.begin()

    assert (refused.status_code, refused.json()["data"]["code"]) == (400, "bad_client_state")


def app_client(owner: Person, **changed: object) -> None:
    body = {"id": "shop", "name": "Shop", "allowedRedirectUrls": [], **changed}
    owner.ok("PUT", f"/tenants/{owner.tenant}/app-clients", body)


def test_a_session_that_a_tenants_application_gets_stays_in_that_tenant(
    service: Service, oauth: OAuthProviders, as_owner: Person, as_platform: Client
) -> None:
    """The application is the tenant's; what the person has elsewhere is none of its business."""
    app_client(as_owner, allowedRedirectUrls=[REDIRECT])
    somebody_new(oauth, "google")
    with Flow(service, authorize("google")) as flow, closing(flow.person(oauth.google.browse)) as person:
        member = {"userId": person.id, "role": "developer"}
        as_platform.ok("POST", f"/platform/tenants/{as_owner.tenant}/members", member)
    given = {"redirect_uri": REDIRECT, "tenant_id": as_owner.tenant, "client_id": "shop"}

    with Flow(service, authorize("google"), **given) as flow, closing(flow.person(oauth.google.browse)) as there:
        elsewhere = there.post("/auth/session/tenant", json={"tenantId": f"personal-{person.id}"})

    assert there.id == person.id
    assert (elsewhere.status_code, elsewhere.json()["data"]["code"]) == (403, "session_bound")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/auth/oauth/google/authorize?test=short", 400),
        ("/auth/oidc/t~idp/authorize?test=short", 400),
        ("/auth/saml/t/login?test=short", 400),
        ("/auth/oauth/google/authorize?code_challenge_method=S256&client_id=" + "x" * 2000, 400),
        ("/auth/oauth/google/authorize?code_challenge_method=S256&client_id=../web", 400),
        ("/auth/oauth/google/authorize?code_challenge_method=S256&client_id=" + "t" * 100 + "/web", 400),
        ("/auth/oidc/" + "t" * 70 + "~idp/authorize?code_challenge_method=S256", 404),
        ("/auth/oidc/..~idp/authorize?code_challenge_method=S256", 404),
        ("/auth/oidc/..~idp/callback?state=x", 404),
        ("/auth/oauth/google/authorize?code_challenge_method=S256&state=" + "x" * 2000, 400),
        ("/auth/oauth/google/authorize?code_challenge_method=S256&code_challenge=" + "x" * 2000, 400),
    ],
)
def test_the_api_refuses_what_identity_could_not_read(as_nobody: Client, path: str, status: int) -> None:
    """A message that identity cannot read costs the connection that everybody's messages share."""
    assert as_nobody.get(path).status_code == status


@pytest.mark.parametrize("verifier", ["x", "x" * 500, "\u00e9" * 43])
def test_a_verifier_of_any_length_is_wrong_and_no_more(as_nobody: Client, verifier: str) -> None:
    body = {"code": "exc_none", "redirect_uri": "x", "code_verifier": verifier}

    assert as_nobody.post("/auth/oauth/exchange", json=body).status_code == 401
