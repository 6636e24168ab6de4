"""Signatures, priced calls and payments of one agent against one budget of exactly 100 millionths of a dollar."""

import asyncio
import itertools
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from typing import Any

import asyncpg
import msgspec

from tests.fixtures.callers import Agent, Tenant
from tests.fixtures.safes import token_of
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import greet
from tests.promises.races import LIMIT_IN_DOLLARS, TOKEN, TRIES, Clients, Request, order_of
from tests.routes.orders import SELLER, payment_demand, payment_offer

# What one unit of a signature and of a payment is worth here.
_CHAIN = 10
_HOST = "api.example.com"
# Seconds; longer than the signer takes to say that it does not know.
_HEARD = 60.0
KINDS = ("signature", "call", "payment")
Message = tuple[str, dict[str, Any]]


class Buyer:
    """An agent, and the routes by which it calls and pays."""

    def __init__(self, tenant: Tenant, agent: Agent, micro_usd: int) -> None:
        self.agent = agent
        self._amount = micro_usd
        called = {"hostPattern": _HOST, "injectAs": "none", "costMicroUsd": micro_usd}
        self._called: str = tenant.ok("POST", "/secrets/routes", called)["id"]
        paid = {"hostPattern": _HOST, "maxPerCall": {TOKEN: "100"}, "payTo": [SELLER]}
        self._paid: str = tenant.ok("POST", "/payment-routes", paid)["id"]

    def order(self) -> Request:
        """Ask the api for a signature."""
        return order_of(self.agent, self._amount, chainId=_CHAIN)

    def call(self) -> Message:
        """Ask the signer, as a proxy, to charge a call."""
        return "ChargeCall", {"route": self._called, "call": str(uuid.uuid4())}

    def payment(self) -> Message:
        """Ask the signer, as a proxy, to pay for a call."""
        demand = payment_demand(payment_offer(amount=str(self._amount), network=f"eip155:{_CHAIN}"))
        request = {"method": "GET", "host": _HOST, "path": "/weather", "body_hash": sha256().hexdigest()}
        order = {"tx_id": str(uuid.uuid4()), "demand": msgspec.json.encode(demand), "request": request}
        return "PayForRoute", {"route": self._paid, **order}

    def ask(self, service: Service, messages: Sequence[Message]) -> None:
        """Ask one after the other, as a proxy does on one connection; what is not known in time is asked again."""
        proof = {"kind": "agent", "value": token_of(self.agent)}
        with greet(service, "proxy") as wire:
            wire.settimeout(_HEARD)
            for name, body in messages:
                for _ in range(TRIES):
                    answer = wire.ask(name, body, proof)
                    if answer.get("kind") != "Unavailable":
                        break
                assert answer["type"] in ("Charged", "RoutePaid", "Refused") or answer["code"] == "budget_exceeded"


async def race_kinds(services: Sequence[Service], tenant: Tenant, clients: int) -> Agent:
    """Of each kind more than there is room for, a third of the clients each; until all is spent one always fits."""
    buyer, service_of, third = Buyer(tenant, tenant.agent(LIMIT_IN_DOLLARS), 1), itertools.cycle(services), clients // 3
    each = -(-110 // third)

    def ask(make: Callable[[], Message]) -> asyncio.Future[None]:
        return loop.run_in_executor(pool, buyer.ask, next(service_of), [make() for _ in range(each)])

    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(2 * third) as pool:
        await asyncio.gather(
            Clients(services, clients - 2 * third).do(buyer.agent, [buyer.order() for _ in range(110)]),
            *(ask(make) for _ in range(third) for make in (buyer.call, buyer.payment)),
        )
    return buyer.agent


async def race_two(services: Sequence[Service], tenant: Tenant, kinds: tuple[str, str]) -> Agent:
    """One of a kind at one signer and one of another at the other, each of 60, at once."""
    buyer = Buyer(tenant, tenant.agent(LIMIT_IN_DOLLARS), 60)
    makes = {"call": buyer.call, "payment": buyer.payment}
    await asyncio.gather(
        *(
            Clients([service], 1).do(buyer.agent, [buyer.order()])
            if kind == "signature"
            else asyncio.to_thread(buyer.ask, service, [makes[kind]()])
            for service, kind in zip(services, kinds, strict=True)
        )
    )
    return buyer.agent


async def came_to(owner: asyncpg.Connection, agent: Agent) -> dict[str, int]:
    """The sum of each kind, by the tables of orders and of charges."""
    return {kind: int(await owner.fetchval(query, agent.id) or 0) for kind, query in _SUMS.items()}


_SUMS = {
    "signature": "SELECT sum(value) FROM transactions WHERE agent_id = $1 AND signature IS NOT NULL AND kind = 'evm'",
    "call": "SELECT sum(micro_usd) FROM call_charges WHERE agent_id = $1",
    "payment": "SELECT sum((one.effect->>'amount')::numeric) "
    "FROM transactions, jsonb_array_elements(effects::jsonb) AS one (effect) "
    "WHERE agent_id = $1 AND signature IS NOT NULL AND kind = 'x402'",
}
