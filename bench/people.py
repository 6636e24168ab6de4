"""The cost of sessions, second factors and signed requests, and how many guesses an attacker really has.

`python -m bench.people`
"""

import hashlib
import hmac
import statistics
import time
import uuid
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pyotp

from bench import load
from bench.deployment import Deployment
from custody.identity.request_signature import canonical
from tests.outside.sms_gateway import running_sms_gateway
from tests.outside.smtp_server import running_mail_server
from tests.outside.wallet import SignIn, Wallet

SECONDS = 4.0
CLIENTS = 16
# Spread over agents, or what is measured is the wait for one row.
AGENTS = 50
ROUNDS = 3
SIGNED = 10_000
GUESSES = 100
HOUR = 3600
OFF = {f"SERVICE_RATE_LIMIT_{name}": "0" for name in ("NONCE", "VERIFY", "CODES", "REFRESH", "ANONYMOUS_MAX")}


def measure() -> None:
    """Everything, one line each."""
    with running_mail_server("plain") as mail, running_sms_gateway() as sms:
        senders = {"SERVICE_SMTP_URL": mail.url, "SERVICE_SMS_URL": sms.url}
        with Deployment(**OFF, **senders) as deployment:
            owner = Owner(deployment)
            reads(deployment, owner)
            changes(deployment, owner)
            guesses(deployment, owner, mail, sms)


def say(text: str) -> None:
    """One line, at once."""
    print(text, flush=True)


class Owner:
    """A person who owns the bench's tenant, with an authenticator shown just now."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        nonce = deployment.call("GET", "/auth/nonce")["nonce"]
        domain = f"localhost:{deployment.port}"
        signed = Wallet().sign_in(SignIn(domain=domain, uri=f"http://{domain}/", nonce=nonce, chain_id=31337))
        body = {"message": signed.message, "signature": signed.signature}
        session = deployment.call("POST", "/auth/verify", body)
        self.user, self.token = session["user"]["id"], session["token"]
        platform = (deployment.home.path / "platform.key").read_text().strip()
        members = {"userId": self.user, "role": "owner"}
        deployment.call("POST", "/platform/tenants/bench/members", members, **{"X-Service-Platform-Key": platform})
        self.seed = self.call("POST", "/auth/mfa/totp/enroll", {})["secret"]
        session = self.call("POST", "/auth/mfa/totp/verify", {"code": pyotp.TOTP(self.seed).now()})
        self.token = session["token"]
        self.token = self.call("POST", "/auth/session/tenant", {"tenantId": "bench"})["token"]

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """One call of this person's that must succeed."""
        return self.deployment.call(method, path, body, Authorization=f"Bearer {self.token}", **headers)


def reads(deployment: Deployment, owner: Owner) -> None:
    """The same read with a tenant's key, and by an owner; and one that wants the owner's second factor."""
    key, bearer = {"X_Service_Key": deployment.tenant_key}, {"Authorization": f"Bearer {owner.token}"}
    deployment.agents(AGENTS)
    by_key = _reads(deployment, "/agents/agent-0", key)
    say(f"GET /agents/:id, tenant key                        {by_key}")
    by_owner = _reads(deployment, "/agents/agent-0", bearer)
    say(
        f"GET /agents/:id, session of an owner               {by_owner}   of the key's {by_owner.rate / by_key.rate:.2f}"
    )
    without = _reads(deployment, "/tenants/bench/app-clients", bearer)
    say(f"GET /tenants/:id/app-clients, owner                {without}")
    keys = _reads(deployment, "/tenants/bench/request-signing-keys", bearer)
    say(
        f"GET /tenants/:id/request-signing-keys, owner, MFA  {keys}   of the one without {keys.rate / without.rate:.2f}"
    )


def _reads(deployment: Deployment, path: str, headers: dict[str, str]) -> load.Figures:
    return load.run(deployment.port, [load.request("GET", path, **headers)], clients=CLIENTS, seconds=SECONDS)


def changes(deployment: Deployment, owner: Owner) -> None:
    """One change of a tenant's: as it is, with an Idempotency-Key, and signed as well."""
    secret = owner.call("POST", "/tenants/bench/request-signing-keys", {})["signingSecret"]
    wanted: dict[str, Callable[[str], dict[str, str]]] = {
        "as it is": lambda _: {},
        "with an Idempotency-Key": lambda _: {"Idempotency_Key": uuid.uuid4().hex},
        "signed, with an Idempotency-Key": lambda path: _sign(secret, path),
    }
    rates: dict[str, list[float]] = {name: [] for name in wanted}
    for _ in range(ROUNDS):
        for name, headers in wanted.items():
            paths = [f"/agents/agent-{n % AGENTS}/policies" for n in range(SIGNED)]
            requests = [
                load.request("PUT", path, BODY, X_Service_Key=deployment.tenant_key, **headers(path)) for path in paths
            ]
            figures = load.run(deployment.port, requests, clients=8, seconds=SECONDS)
            rates[name].append(figures.rate)
            say(f"PUT /agents/:id/policies, {name:32} {figures}")
    plain = statistics.median(rates["as it is"])
    for name, found in rates.items():
        say(
            f"  median, {name:32} {statistics.median(found):6.0f}/s   of the plain one {statistics.median(found) / plain:.2f}"
        )


BODY = b"[]"


def _sign(secret: str, path: str) -> dict[str, str]:
    key, now = uuid.uuid4().hex, str(int(time.time()))
    content = canonical("PUT", path, "bench", now, None, key, BODY)
    signature = hmac.new(secret.encode(), content, hashlib.sha256).hexdigest()
    return {"Idempotency_Key": key, "X_Service_Request_Timestamp": now, "X_Service_Signature": f"v1={signature}"}


def guesses(deployment: Deployment, owner: Owner, mail: Any, sms: Any) -> None:
    """At each route that takes a code: how many of 100 wrong ones, 16 at a time, were looked at, and the pause then."""
    recovery = "abcde-fghjk"
    address = "target@example.com"
    deployment.call("POST", "/auth/email/send", {"email": address})
    attack(deployment, "/auth/email/verify", lambda guess: {"email": address, "code": guess}, {})
    bearer = {"Authorization": f"Bearer {owner.token}"}
    owner.call("POST", "/auth/mfa/sms/enroll", {"phone": "+15550001111"})
    attack(deployment, "/auth/mfa/sms/verify", lambda guess: {"code": guess}, bearer)
    attack(deployment, "/auth/mfa/totp/step-up", lambda guess: {"code": guess}, bearer)
    attack(deployment, "/auth/mfa/recovery-codes/step-up", lambda _: {"code": recovery}, bearer)
    attack(deployment, "/auth/device/verify", lambda _: {"user_code": "BCDF-GHJK", "action": "approve"}, bearer)


def attack(deployment: Deployment, path: str, body: Callable[[str], Any], headers: dict[str, str]) -> None:
    """Guess as fast as the service lets us; print what that makes an hour."""
    with (
        httpx.Client(base_url=f"http://127.0.0.1:{deployment.port}", timeout=30) as client,
        ThreadPoolExecutor(16) as pool,
    ):
        answers = list(pool.map(lambda n: client.post(path, json=body(f"{n:06d}"), headers=headers), range(GUESSES)))
    looked_at = [answer for answer in answers if answer.status_code != 429]
    pauses = [int(answer.headers["Retry-After"]) for answer in answers if answer.status_code == 429]
    said = Counter(answer.json()["data"]["code"] for answer in looked_at)
    window = max(pauses, default=0)
    an_hour = len(looked_at) * -(-HOUR // window) if window else HOUR * GUESSES
    say(
        f"{path:36} {len(looked_at):3} of {GUESSES} guesses looked at, then 429 for {window} s: "
        f"{an_hour} an hour and account   {dict(said)}"
    )


if __name__ == "__main__":
    measure()
