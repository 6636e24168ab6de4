"""A call that has a price and is paid for by x402: what it counts at each moment, and what a kill leaves of it."""

import asyncio
import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from ops import places
from tests.fixtures.callers import new_tenant, rule
from tests.fixtures.deployments import database_apart, deploy, owner_of
from tests.fixtures.eventually import soon
from tests.fixtures.safes import FORMAT, NOBODY, Safe, code_of, token_of
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import greet
from tests.routes.orders import CHAIN, SELLER, TOKEN_CONTRACT
from tests.routes.orders import payment_demand as demand
from tests.routes.orders import payment_offer as offer

UNPRICED = "0x" + "34" * 20
ASSETS = [f"evm:{CHAIN}:{token}" for token in (TOKEN_CONTRACT, UNPRICED)]
PRICES = {"form": "openai", "input": 1_000_000, "output": 2_000_000}
# What a call costs, at most what a metered one does, and what is paid for it: in millionths of a dollar.
COST, MOST, PAID = 3, 10, 60


@pytest.fixture(scope="module")
def apart(postgres_home: places.Home, worker_id: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("paid")
    tokens = f'[{{address = "{TOKEN_CONTRACT}", symbol = "USDX", decimals = 6}}]'
    (folder / "chains.toml").write_text(f"[[chains]]\nid = {CHAIN}\ntokens = {tokens}\n")
    (folder / "prices.toml").write_text(f'"{ASSETS[0]}" = "1"\n')
    settings = {f"SERVICE_{name.upper()}_FILE": str(folder / f"{name}.toml") for name in ("chains", "prices")}
    with deploy(database_apart(postgres_home, f"{worker_id}_paid"), **settings) as service:
        yield service


class Paying(Safe):
    """A tenant whose routes price and pay, and an agent with a thousand millionths of a dollar a day."""

    def __init__(self, service: Service, tenant: Any) -> None:
        super().__init__(service, tenant)
        self.agent = tenant.agent(rule("spending-limit", maxPerDay="1000", asset="usd"))
        self.priced = self.make_route(self.secret, costMicroUsd=COST, **FORMAT)
        self.metered = self.make_route(self.secret, maxMicroUsd=MOST, usage=PRICES, **FORMAT)
        self.payer = self.pay_route(payTo=[SELLER])

    def pay_route(self, **changed: Any) -> str:
        fields = {"hostPattern": "api.example.com", "maxPerCall": dict.fromkeys(ASSETS, "100"), **changed}
        made: str = self.tenant.ok("POST", "/payment-routes", fields)["id"]
        return made

    def charge(self, route: str | None = None) -> str:
        """Charge a call, as the proxy does before it leaves; gives its id."""
        call = str(uuid.uuid4())
        with greet(self.service, "proxy") as wire:
            answer = wire.ask("ChargeCall", {"route": route or self.priced, "call": call}, self.proof)
        assert answer["type"] == "Charged", answer
        return call

    def pay(self, call: str | None, key: str | None = None, route: str | None = None, **changed: Any) -> Any:
        """Pay what its 402 demands."""
        message = {
            "route": route or self.payer,
            "tx_id": str(uuid.uuid4()),
            "demand": json.dumps(demand(offer(**changed))).encode(),
            "request": {"method": "GET", "host": "api.example.com", "path": "/weather", "body_hash": "0" * 64},
            "charge": call,
        }
        named: dict[str, Any] = {}
        if key is not None:
            hashed = {"key_hash": key.encode().ljust(32), "fingerprint": b"f" * 32}
            named = {"idempotency": {"route": "PROXY", **hashed}}
        with greet(self.service, "proxy") as wire:
            return wire.ask("PayForRoute", message, self.proof, **named)

    @property
    def proof(self) -> dict[str, str]:
        return {"kind": "agent", "value": token_of(self.agent)}

    def end(self, call: str, **counts: int) -> int:
        """Say what a metered call used; gives what came back."""
        with greet(self.service, "proxy") as wire:
            answer = wire.ask("EndCharge", {"tenant": self.tenant.id, "call": call, "counts": counts})
        returned: int = answer["returned"]
        return returned

    async def spending(self) -> int:
        """The dollars that count for it, in the hours and for its life."""
        async with owner_of(self.service.database) as owner:
            found = [
                await owner.fetchval(
                    f"SELECT COALESCE(sum(amount), 0) FROM {table} WHERE tenant_id = $1 AND agent_id = $2"
                    " AND asset = 'usd'",
                    self.tenant.id,
                    self.agent.id,
                )
                for table in ("spend", "spend_totals")
            ]
        assert found[0] == found[1]
        return int(found[0])


@pytest.fixture
def safe(apart: Service) -> Iterator[Paying]:
    with new_tenant(apart) as tenant:
        yield Paying(apart, tenant)


async def test_a_paid_call_charges_what_it_pays_and_not_its_cost_besides(safe: Paying) -> None:
    call = safe.charge()
    before = await safe.spending()

    paid = safe.pay(call)

    assert (before, paid["type"], paid["amount"]) == (COST, "RoutePaid", str(PAID))
    assert await safe.spending() == PAID
    # The control: a call that nobody pays for keeps its charge, and a payment without a call takes none.
    safe.charge()
    safe.pay(None)
    assert await safe.spending() == 2 * PAID + COST


async def test_of_a_metered_call_that_is_paid_nothing_more_comes_back(safe: Paying) -> None:
    call = safe.charge(safe.metered)
    before = await safe.spending()
    safe.pay(call)

    assert (before, safe.end(call, input=1), await safe.spending()) == (MOST, 0, PAID)

    ended = safe.charge(safe.metered)
    assert safe.end(ended, input=1) == MOST - 1
    safe.pay(ended)
    assert await safe.spending() == 2 * PAID + 1


async def test_a_call_that_is_not_paid_stays_charged(safe: Paying) -> None:
    refused = safe.pay(safe.charge(), amount="101")
    unpayable = safe.pay(safe.charge(), network="eip155:1")
    absent = safe.pay(safe.charge(), route=NOBODY)
    asked = safe.pay(safe.charge(), route=safe.pay_route(), amount="50")

    assert code_of(refused)[1] == "payment_refused"
    assert [code_of(unpayable)[1], code_of(absent)[1]] == ["offer_unpayable", "payment_route_absent"]
    assert asked["type"] == "Queued"
    assert await safe.spending() == 4 * COST


async def test_a_payment_without_a_price_in_dollars_leaves_the_cost(safe: Paying) -> None:
    # No rule in dollars, or a person would be asked.
    safe.agent = safe.tenant.agent()

    paid = safe.pay(safe.charge(), asset=UNPRICED)

    assert paid["type"] == "RoutePaid"
    assert await safe.spending() == COST


async def test_one_payment_gives_one_charge_back(safe: Paying) -> None:
    first = safe.pay(safe.charge(), key="same")
    again = safe.pay(safe.charge(), key="same")

    assert first["tx_id"] == again["tx_id"]
    # A repetition is a call that leaves, and the payment has given back another's charge.
    assert await safe.spending() == PAID + COST


async def test_a_payment_that_a_person_approved_pays_for_the_call_that_fetches_it(safe: Paying) -> None:
    route = safe.pay_route(priority=1)
    waiting = safe.pay(safe.charge(), key="approved", route=route)
    assert waiting["type"] == "Queued"
    safe.tenant.ok("POST", f"/approvals/{waiting['approval_id']}/approve", {})
    assert await safe.spending() == COST + PAID

    fetched = safe.pay(safe.charge(), key="approved", route=route)

    assert (fetched["type"], fetched["tx_id"]) == ("RoutePaid", waiting["tx_id"])
    # The call that was asked about left, and stays charged.
    assert await safe.spending() == COST + PAID


async def test_only_a_charge_of_this_agent_comes_back(safe: Paying) -> None:
    call = safe.charge()
    payer = safe.agent
    safe.agent = other = safe.tenant.agent(rule("spending-limit", maxPerDay="1000", asset="usd"))

    safe.pay(call)
    safe.pay(NOBODY)
    assert await safe.spending() == 2 * PAID
    safe.agent = payer
    assert await safe.spending() == COST
    assert other.id != payer.id


_WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%exchange_charge%'"


@pytest.mark.parametrize("broken", ["the signer", "its connection"])
async def test_a_break_between_payment_and_exchange_leaves_too_much(safe: Paying, apart: Service, broken: str) -> None:
    call = safe.charge()
    async with owner_of(apart.database) as owner, owner_of(apart.database) as holder:
        async with holder.transaction():
            await holder.execute("SELECT FROM call_charges WHERE id = $1 FOR UPDATE", call)
            under_way = asyncio.create_task(asyncio.to_thread(_outcome_of, safe, call))
            pid = await soon(lambda: owner.fetchval(_WAITING))
            # Committed, and not yet answered.
            assert await safe.spending() == COST + PAID
            if broken == "the signer":
                apart.kill("signer")
            else:
                await owner.execute("SELECT pg_terminate_backend($1)", pid)
        outcome = await under_way
        gone = "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)"
        await soon(lambda: owner.fetchval(gone, pid))
    if broken == "the signer":
        apart.start("signer")

    assert outcome == ("gone" if broken == "the signer" else "RoutePaid")
    left = await safe.spending()
    assert left in ((PAID, COST + PAID) if broken == "the signer" else (COST + PAID,))
    # Asked again, as a client does whose answer was lost, it is one payment, and one charge comes back.
    assert safe.pay(call, key="broken")["type"] == "RoutePaid"
    assert await safe.spending() == PAID


def _outcome_of(safe: Paying, call: str) -> str:
    try:
        found: str = safe.pay(call, key="broken")["type"]
    except (OSError, TypeError, EOFError):
        return "gone"
    return found
