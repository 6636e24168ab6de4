"""Pays for a call where a payment route says so: what is kept for it, and the one question to the signer.

The proxy chooses nothing: it hands over what the upstream demands, byte for byte, and the signer reads it again, judges
it by the route as it was sealed and by the agent's rules, and makes the payment (docs/proxy.md).
"""

import base64
import hashlib
import re
import time
from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Final

import msgspec

from custody.kit import ids
from custody.kit.callers import AgentCaller, IdempotencyKey
from custody.kit.errors import CustodyError, Invalid, NotFound
from custody.payments.demand import read_answer
from custody.protocol.client import SignerClient
from custody.protocol.signer.outcomes import Queued, Refused
from custody.protocol.signer.payment_routes import PaidRequest, PayForRoute
from proxy_addon import refuse
from proxy_addon.inject import one_name
from proxy_addon.refuse import Refusal

# Bytes of a request's body that are held so that it can be sent again with a payment.
MAX_PAID_BODY: Final = 2**20
# Bytes of a 402's body that are read.
MAX_DEMAND_BODY: Final = 64 * 2**10
# Payments of an agent that a host took and asked again for, in so many seconds, pause its payments there.
MAX_NOT_ACCEPTED: Final = 3
PAUSE_SECONDS: Final = 600.0
_PAUSED: Final = 10_000
# Of an answer: the demand, and what the upstream says became of the payment, by both versions of x402.
DEMAND: Final = b"payment-required"
_CLAIMS: Final = (b"payment-response", b"x-payment-response")
# Of a request: the agent pays by itself.
_OWN: Final = frozenset((b"payment-signature", b"x-payment"))
PAYMENT: Final = b"X-Service-Payment"
SKIPPED: Final = b"X-Service-Payment-Skipped"
# Why nothing is paid for a request.
BODY_TOO_LARGE: Final = "body_too_large"
_NOTHING_ACCEPTABLE: Final = "offer_unpayable"
_WAIT_SECONDS: Final = 5
_KEY: Final = re.compile(rb"[\x21-\x7e]{8,255}")
Headers = Sequence[tuple[bytes, bytes]]


class BadIdempotencyKey(Invalid):
    """Idempotency-Key must have 8 to 255 printable ASCII characters."""


class Paid(msgspec.Struct, frozen=True):
    """A payment that was committed: the header that carries it, and what it is."""

    tx_id: str
    name: str
    value: str
    amount: str
    asset: str

    def __repr__(self) -> str:
        return f"Paid({self.tx_id})"


class Payment:
    """The way in which a request may be paid for, and how far that is."""

    __slots__ = ("_caller", "_route", "_target", "charge", "claim", "digest", "key", "paid", "settled", "skipped")

    def __init__(self, route: str, caller: AgentCaller, target: tuple[str, str, str]) -> None:
        """`target` is method, host and path, with its query."""
        self._route, self._caller, self._target = route, caller, target
        # The agent's own, so that a request which it repeats is paid once.
        self.key: str | None = None
        self.digest = hashlib.sha256(b"").hexdigest()
        # Of a priced call: its charge, which comes back once it is paid for.
        self.charge: str | None = None
        # Why it cannot be paid for; whether its one 402 was looked at.
        self.skipped: str | None = None
        self.settled = False
        self.paid: Paid | None = None
        # Hash of what the upstream says became of the payment.
        self.claim: str | None = None

    @property
    def is_open(self) -> bool:
        """True while a 402 would be looked at."""
        return not self.settled and self.skipped is None

    def note_body(self, body: bytes) -> None:
        """Take note of the agent's body, before anything is put into it."""
        self.digest = hashlib.sha256(body).hexdigest()

    def headers(self) -> list[tuple[bytes, bytes]]:
        """Tell the agent what was paid."""
        paid = self.paid
        if paid is None:
            return []
        return [(PAYMENT, f"{paid.tx_id}; amount={paid.amount}; asset={paid.asset}".encode())]

    def note_answer(self, headers: Headers) -> None:
        """Take note of what the upstream says became of the payment."""
        said = [value for name, value in headers if name.lower() in _CLAIMS]
        if said and self.paid is not None:
            self.claim = hashlib.sha256(said[0]).hexdigest()

    async def ask(self, signer: SignerClient, demand: bytes) -> Paid | Refusal | None:
        """Have the signer pay. None: nothing that is offered is acceptable."""
        method, host, path = self._target
        bound = [self._route, method, host, path, self.digest]
        key = None
        if self.key is not None:
            hashed = [hashlib.sha256(part).digest() for part in (self.key.encode(), msgspec.json.encode(bound))]
            key = IdempotencyKey("PROXY", *hashed)
        message = PayForRoute(
            route=self._route,
            tx_id=ids.new_uuid(),
            demand=demand,
            request=PaidRequest(method=method, host=host, path=path.partition("?")[0], body_hash=self.digest),
            charge=self.charge,
        )
        caller = msgspec.structs.replace(self._caller, idempotency=key)
        try:
            answer = (await signer.ask(message, caller)).answer
        except CustodyError as problem:
            # The route ends meanwhile, or nothing on offer is acceptable: the demand is not ours to pay.
            if isinstance(problem, NotFound) or problem.code == _NOTHING_ACCEPTABLE:
                return None
            return refuse.from_error(problem)
        if isinstance(answer, Queued):
            wait = None if key is None else _WAIT_SECONDS
            return refuse.approval_required(answer.approval_id, answer.tx_id, wait)
        if isinstance(answer, Refused):
            return refuse.payment_refused(answer.reason, answer.tx_id, answer.room.seconds if answer.room else None)
        return Paid(answer.tx_id, answer.header, answer.value, answer.amount, answer.asset)


class Payer:
    """Pays for what an upstream demands, and no more where it takes payments and gives nothing for them."""

    def __init__(self, signer: SignerClient) -> None:
        self._signer = signer
        # By tenant, agent and host: when a payment was not accepted.
        self._not_accepted: OrderedDict[tuple[str, str, str], deque[float]] = OrderedDict()

    async def pay(self, payment: Payment, place: tuple[str, str, str], headers: Headers, body: bytes) -> Refusal | None:
        """Pay what a 402 demands, where it can be read and is acceptable; why not, where the agent is told.

        `place` is tenant, agent and host.
        """
        payment.settled = True
        named = [value.decode("latin-1") for name, value in headers if name.lower() == DEMAND]
        demand = read_answer(named, body)
        if demand is None:
            return None
        if (wait := self._pause(place)) is not None:
            return refuse.payments_paused(wait)
        found = await payment.ask(self._signer, base64.b64decode(named[0]) if named else body)
        if isinstance(found, Refusal):
            return found
        payment.paid = found
        return None

    def note_not_accepted(self, place: tuple[str, str, str]) -> None:
        """Take note of an upstream that took a payment and demands another one."""
        times = self._not_accepted.setdefault(place, deque(maxlen=MAX_NOT_ACCEPTED))
        times.append(time.monotonic())
        self._not_accepted.move_to_end(place)
        if len(self._not_accepted) > _PAUSED:
            self._not_accepted.popitem(last=False)

    def _pause(self, place: tuple[str, str, str]) -> int | None:
        times = self._not_accepted.get(place)
        if times is None or len(times) < MAX_NOT_ACCEPTED:
            return None
        left = times[0] + PAUSE_SECONDS - time.monotonic()
        return None if left <= 0 else max(1, int(left))


def pays_itself(headers: Headers) -> bool:
    """Say whether an agent brings a payment of its own."""
    return any(one_name(name) in _OWN for name, _ in headers)


def key_in(headers: Headers) -> str | None:
    """Find the agent's `Idempotency-Key`, or BadIdempotencyKey."""
    found = [value for name, value in headers if name.lower() == b"idempotency-key"]
    if not found:
        return None
    if len(found) > 1 or _KEY.fullmatch(found[0]) is None:
        raise BadIdempotencyKey
    return found[0].decode()


def without_demand(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers without a demand, which a client of x402 would pay once more."""
    return [(name, value) for name, value in headers if name.lower() != DEMAND]
