"""Passkeys as a real browser makes and shows them, from our options to our answers."""

from contextlib import closing
from typing import Any

import pytest
from playwright.sync_api import Error

from tests.fixtures.people import Person, sign_in
from tests.fixtures.server import Service
from tests.outside.browser import Visit, browser_page
from tests.routes.auth.factors import refusal

pytestmark = pytest.mark.long

_CREATE = """async options => (await navigator.credentials.create({
  publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options),
})).toJSON()"""
_GET = """async options => (await navigator.credentials.get({
  publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options),
})).toJSON()"""


def test_a_browser_s_passkey_signs_in_and_steps_up(service: Service) -> None:
    with closing(sign_in(service)) as person, browser_page(f"http://localhost:{service.port}") as visit:
        visit.page.goto("/ready")
        made = _register(person, visit)
        options = person.ok("POST", "/auth/passkeys/login/options", {})
        signed_in = person.ok("POST", "/auth/passkeys/login/verify", {"credential": visit.page.evaluate(_GET, options)})
        options = person.ok("POST", "/auth/mfa/passkey/options", {})
        raised = person.ok("POST", "/auth/mfa/passkey/step-up", {"credential": visit.page.evaluate(_GET, options)})
        held = visit.authenticator.passkeys()

    assert (signed_in["user"]["id"], signed_in["provider"]) == (person.id, "passkey")
    assert signed_in["mfa"]["verifiedAt"]
    assert raised["mfa"]["verifiedAt"]
    assert made["transports"] == ["internal"]
    assert [(passkey["rpId"], passkey["signCount"]) for passkey in held] == [("localhost", 3)]


def test_a_browser_that_does_not_know_its_owner_shows_no_second_factor(service: Service) -> None:
    with closing(sign_in(service)) as person, browser_page(f"http://localhost:{service.port}") as visit:
        visit.page.goto("/ready")
        _register(person, visit)
        visit.authenticator.verify_user(False)
        options = person.ok("POST", "/auth/mfa/passkey/options", {}) | {"userVerification": "discouraged"}
        shown = person.post("/auth/mfa/passkey/step-up", json={"credential": visit.page.evaluate(_GET, options)})

    assert refusal(shown) == (401, "user_unverified")


def test_a_browser_makes_no_second_passkey_on_one_device(service: Service) -> None:
    with closing(sign_in(service)) as person, browser_page(f"http://localhost:{service.port}") as visit:
        visit.page.goto("/ready")
        _register(person, visit)
        options = person.ok("POST", "/auth/mfa/passkey/options", {})
        answer = {"credential": visit.page.evaluate(_GET, options)}
        person.take(person.ok("POST", "/auth/mfa/passkey/step-up", answer))
        with pytest.raises(Error, match="InvalidStateError"):
            _register(person, visit)


def _register(person: Person, visit: Visit) -> dict[str, Any]:
    options = person.ok("POST", "/auth/passkeys/register/options", {})
    body = {"credential": visit.page.evaluate(_CREATE, options)}
    return dict(person.ok("POST", "/auth/passkeys/register/verify", body))
