"""The cost of signing on, its cost to orders meanwhile, and what a storm of exchange codes leaves.

`python -m bench.sign_on`
"""

import base64
import hashlib
import secrets
import statistics
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Lock
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx

from bench import load
from bench.__main__ import sign
from bench.deployment import Deployment
from bench.people import say
from identity.sign_on.id_tokens import Expected, verify
from identity.sign_on.key_sets import read
from tests.outside.jose import SigningKey, sign_token
from tests.outside.oauth_providers import OAuthProviders, running_oauth_providers
from tests.rules.identity.issuers import key_set

ROUNDS = 2_000
# As many as are exchanged at once; each person brings two of them.
CODES = 1_000
AT_ONCE = 64
ORDERS, CLIENTS, SECONDS = 50, 16, 6.0
OFF = {f"SERVICE_RATE_LIMIT_{name}": "0" for name in ("NONCE", "VERIFY", "CODES", "ANONYMOUS_MAX", "SSO", "CALLBACK")}
OFF |= {"SERVICE_RATE_LIMIT_EXCHANGE": "0"}


def measure() -> None:
    """Everything, one line each."""
    tokens()
    with tempfile.TemporaryDirectory() as folder, running_oauth_providers() as providers:
        endpoints = str(providers.write_endpoints(Path(folder) / "oauth.toml"))
        environment = {"SERVICE_OAUTH_ENDPOINTS_FILE": endpoints, **providers.environment, **OFF}
        with Deployment(**environment) as deployment:
            beside_orders(deployment, providers)
            storm(deployment, providers)


def tokens() -> None:
    """The checks of one ID token, in one process, without a database."""
    for alg in ("RS256", "ES256"):
        key = SigningKey(alg)
        keys, now = read(key_set(key.jwk)), datetime.now(UTC)
        moment = int(now.timestamp())
        said = {"iss": "https://idp.example.com", "aud": "c", "sub": "ann", "nonce": "n", "iat": moment}
        token = sign_token(said | {"exp": moment + 600, "email": "ann@example.com"}, key)
        expected = Expected(issuer="https://idp.example.com", client_id="c", audience=("c",), nonce="n", now=now)
        took = []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            verify(token, expected, keys)
            took.append((time.perf_counter() - began) * 1000)
        took.sort()
        say(f"ID token, {alg}   p50 {statistics.median(took):5.2f} ms   p99 {took[ROUNDS * 99 // 100]:5.2f} ms")


class Browser:
    """One that signs people in at X, where the server says who the person is."""

    def __init__(self, deployment: Deployment, providers: OAuthProviders) -> None:
        self.url, self.x = f"http://localhost:{deployment.port}", providers.twitter
        self.redirect = f"{self.url}/device"
        # Which person X answers with belongs to one browser at a time.
        self.turn = Lock()

    def code(self, person: str) -> tuple[str, str]:
        """A code of somebody's, and its verifier."""
        verifier = secrets.token_urlsafe(32)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
        asked = {"redirect_uri": self.redirect, "code_challenge": challenge, "code_challenge_method": "S256"}
        with httpx.Client(base_url=self.url, timeout=60) as http:
            begun = http.get("/auth/oauth/twitter/authorize", params=asked)
            callback = self.x.browse(begun.headers["location"])
            with self.turn:
                self.x.profile = {"data": {"id": person, "name": "Ann", "username": "ann"}}
                back = http.get(callback)
        return parse_qs(urlsplit(back.headers["location"]).query)["code"][0], verifier

    def exchange(self, http: httpx.Client, code: tuple[str, str]) -> dict[str, Any]:
        """Exchange a code."""
        body = {"code": code[0], "code_verifier": code[1], "redirect_uri": self.redirect}
        answer: dict[str, Any] = http.post("/auth/oauth/exchange", json=body).json()
        return answer


def beside_orders(deployment: Deployment, providers: OAuthProviders) -> None:
    """Orders alone, and while people sign in as fast as one browser can."""
    orders = [sign(agent, token) for agent, token in deployment.agents(ORDERS).items()]
    browser = Browser(deployment, providers)
    load.run(deployment.port, orders, clients=CLIENTS, seconds=SECONDS)
    for _ in range(2):
        say(f"orders, {CLIENTS} clients, alone          {_orders(deployment, orders)}")
        enough, done = Event(), Counter[str]()

        def people(enough: Event = enough, done: Counter[str] = done) -> None:
            with httpx.Client(base_url=browser.url, timeout=60) as http:
                while not enough.is_set():
                    said = browser.exchange(http, browser.code(f"{secrets.randbits(50)}"))
                    done["in" if said["ok"] else "out"] += 1

        with ThreadPoolExecutor(1) as pool:
            pool.submit(people)
            figures = _orders(deployment, orders)
            enough.set()
        say(f"orders, {CLIENTS} clients, beside sign-ins {figures}   {done['in']} signed in, {done['out']} not")


def _orders(deployment: Deployment, orders: list[bytes]) -> load.Figures:
    return load.run(deployment.port, orders, clients=CLIENTS, seconds=SECONDS)


def storm(deployment: Deployment, providers: OAuthProviders) -> None:
    """All codes at once, two of each person; then each of them once more."""
    browser = Browser(deployment, providers)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        codes = list(pool.map(lambda n: browser.code(f"9{n // 2:06d}"), range(CODES)))
        with httpx.Client(base_url=browser.url, timeout=60, limits=httpx.Limits(max_connections=AT_ONCE)) as http:
            began = time.perf_counter()
            answers = list(pool.map(lambda code: browser.exchange(http, code), codes))
            took = time.perf_counter() - began
            again = list(pool.map(lambda code: browser.exchange(http, code), codes))
    came = [answer["data"] for answer in answers if answer["ok"]]
    people = Counter(one["user"]["id"] for one in came)
    new = sum("apiKey" in one["tenant"] for one in came)
    say(
        f"storm of {CODES} codes of {CODES // 2} people: {len(came)} sessions, {len(people)} people, "
        f"{new} made, {CODES / took:.0f}/s; sent again: {Counter(one['data'].get('code') for one in again)}"
    )


if __name__ == "__main__":
    measure()
