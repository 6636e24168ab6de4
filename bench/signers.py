"""The cost of a second agreement: orders with one P-256 signer, and with quorums of 3 and of 32.

`python -m bench.signers`
"""

import statistics
import time
import uuid

import msgspec
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey, generate_private_key

from bench import load
from bench.deployment import Deployment
from bench.people import OFF, Owner
from ops.sign_request import Key, Request, public_key, sign

ORDER = msgspec.json.encode({"to": f"0x{1:040x}", "value": "1", "broadcast": False})
TENANT = "bench"
SECONDS = 4.0
CLIENTS = 16
ROUNDS = 3
# Spread over agents, or what is measured is the wait for one row.
AGENTS = 50
PERMISSIONS = ["sign_transaction"]
# How many signers an agent has, all of which authorise, and how many such orders are made beforehand: each is good once.
KINDS = {1: ("one P-256 signer", 10_000), 3: ("quorum of 3", 8_000), 32: ("quorum of 32", 3_000)}
KEYED_ORDERS = 20_000
PLAIN, KEYED = "plain", "plain, with an Idempotency-Key"


class Signers:
    """An agent's signers with their keys, and where they are several their quorum."""

    def __init__(self, owner: Owner, agent: str, token: str, count: int) -> None:
        self.agent, self.token = agent, token
        self.keys: dict[str, Key] = {}
        for number in range(count):
            key = generate_private_key(SECP256R1())
            self.keys[self._register(owner, number, key)] = key
        self.quorum = self._quorum(owner) if count > 1 else None

    def _register(self, owner: Owner, number: int, key: EllipticCurvePrivateKey) -> str:
        signer = {
            "signerType": "service",
            "subjectType": "external",
            "subjectId": f"service-{number}",
            "keyType": "p256",
            "publicKey": public_key(key),
            "permissions": PERMISSIONS,
        }
        return str(owner.call("POST", f"/agents/{self.agent}/signers", signer)["id"])

    def _quorum(self, owner: Owner) -> str:
        members = list(self.keys)
        quorum = {"name": "All", "threshold": len(members), "memberSignerIds": members, "permissions": PERMISSIONS}
        return str(owner.call("POST", f"/agents/{self.agent}/key-quorums", quorum)["id"])

    def order(self) -> bytes:
        """An order that all of them authorise."""
        request = Request("POST", f"/vault/{self.agent}/sign", ORDER, str(uuid.uuid4()), str(int(time.time())))
        headers = sign(request, TENANT, self.keys, self.quorum)
        return _sign(self.agent, self.token, **{name.replace("-", "_"): value for name, value in headers.items()})


def measure() -> None:
    """All five kinds of order in turn, and each one's rate beside the plain one's of the same round."""
    with Deployment(**OFF) as deployment:
        owner = Owner(deployment)
        plain = deployment.agents(AGENTS)
        signers = {
            name: ([Signers(owner, *one, count) for one in deployment.agents(AGENTS, f"of-{count}").items()], most)
            for count, (name, most) in KINDS.items()
        }
        kinds = [PLAIN, KEYED, *signers]
        rates: dict[str, list[float]] = {kind: [] for kind in kinds}
        for turn in range(ROUNDS):
            # Each kind is at each place of a round about as often.
            for kind in kinds[turn:] + kinds[:turn]:
                # Signed now, for an order is good for five minutes.
                asked = _plain(kind, plain) if kind in (PLAIN, KEYED) else _orders(*signers[kind])
                figures = load.run(deployment.port, asked, clients=CLIENTS, seconds=SECONDS)
                if kind != PLAIN and figures.asked > len(asked):
                    raise RuntimeError(f"an order of the kind {kind} was sent twice; make more beforehand")
                rates[kind].append(figures.rate)
                print(f"sign, {CLIENTS} clients, {kind:32} {figures}", flush=True)
        for kind in kinds:
            ratio = statistics.median(rate / base for rate, base in zip(rates[kind], rates[PLAIN], strict=True))
            print(
                f"  median, {kind:32} {statistics.median(rates[kind]):6.0f}/s   of the plain one {ratio:.2f}",
                flush=True,
            )


def _plain(kind: str, agents: dict[str, str]) -> list[bytes]:
    if kind == PLAIN:
        return [_sign(*one) for one in agents.items()]
    return [
        _sign(*one, Idempotency_Key=str(uuid.uuid4())) for _ in range(KEYED_ORDERS // AGENTS) for one in agents.items()
    ]


def _orders(signers: list[Signers], most: int) -> list[bytes]:
    return [one.order() for _ in range(most // AGENTS) for one in signers]


def _sign(agent: str, token: str, **headers: str) -> bytes:
    return load.request("POST", f"/vault/{agent}/sign", ORDER, Authorization=f"Bearer {token}", **headers)


if __name__ == "__main__":
    measure()
