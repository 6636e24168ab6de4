"""An application that has its people sign in at our page `/sign-in`: its client, verifier and code."""

import secrets
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx

from tests.fixtures.callers import Client
from tests.fixtures.people import Person, says
from tests.fixtures.server import Service
from tests.fixtures.sign_on import challenge_of
from tests.outside.wallet import Wallet

REDIRECT = "https://app.example.com/signed-in?from=us"
CLIENT = "shop"


def put_client(owner: Person, **changed: Any) -> None:
    """Make the app client, or put it in place."""
    body = {"id": CLIENT, "name": "The shop", "allowedRedirectUrls": [REDIRECT], **changed}
    owner.ok("PUT", f"/tenants/{owner.tenant}/app-clients", body)


class Application:
    """One sign-in of an application, which keeps its verifier to itself."""

    def __init__(self, service: Service, tenant: str) -> None:
        self._service, self.tenant = service, tenant
        self.verifier, self.state = secrets.token_urlsafe(32), "its own state"

    def body(self, **changed: Any) -> dict[str, Any]:
        """The body with which the page asks for a code."""
        given = {
            "clientId": CLIENT,
            "redirectUri": REDIRECT,
            "codeChallenge": challenge_of(self.verifier),
            "codeChallengeMethod": "S256",
            "state": self.state,
            **changed,
        }
        return {name: value for name, value in given.items() if value is not None}

    def ask(self, person: Person, **changed: Any) -> httpx.Response:
        """Ask for a code, as the page does."""
        return person.post("/auth/sign-in/code", json=self.body(**changed))

    def came_to(self, person: Person) -> dict[str, str]:
        """Say what the browser brings to the application's address."""
        answer = self.ask(person)
        assert answer.status_code == 200, answer.text
        parts = urlsplit(answer.json()["data"]["location"])
        return dict(parse_qsl(parts.query))

    def exchange(self, code: str, **changed: Any) -> httpx.Response:
        """Exchange a code, as the application does."""
        body = {"code": code, "redirect_uri": REDIRECT, "code_verifier": self.verifier, **changed}
        with Client(base_url=self._service.url) as client:
            return client.post("/auth/oauth/exchange", json=body)

    def person(self, person: Person) -> Person:
        """The person as the application holds them."""
        answer = self.exchange(self.came_to(person)["code"])
        assert answer.status_code == 200, answer.text
        held = Person(base_url=self._service.url, timeout=30)
        held.take(answer.json()["data"])
        return held


def come(service: Service, tenant: str, wallet: Wallet | None = None, **changed: Any) -> httpx.Response:
    """Sign in with a wallet at the page, for the application."""
    with Client(base_url=service.url) as client:
        signed = (wallet or Wallet()).sign_in(says(service, client.ok("GET", "/auth/nonce")["nonce"]))
        body = {"message": signed.message, "signature": signed.signature, "tenantId": tenant, "appClientId": CLIENT}
        return client.post("/auth/verify", json={**body, **changed})


def newcomer(service: Service, tenant: str, wallet: Wallet | None = None) -> Person:
    """Somebody who registered at the page, signed in there."""
    person = Person(base_url=service.url, timeout=30)
    person.wallet = wallet or Wallet()
    answer = come(service, tenant, person.wallet)
    assert answer.status_code == 200, answer.text
    person.take(answer.json()["data"])
    return person
