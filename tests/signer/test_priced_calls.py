"""Priced calls at the signer: charged at the sealed price, once, and within the agent's dollars."""

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ops import places
from tests.fixtures.callers import Agent, new_tenant, rule
from tests.fixtures.deployments import database_apart, deploy, owner_of
from tests.fixtures.safes import FORMAT, NOBODY, Safe, code_of, tamper, token_of
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import greet

LIMIT = rule("spending-limit", maxPerDay="10", asset="usd")
PRICES = {"form": "openai", "input": 1_000_000, "output": 2_000_000}


@pytest.fixture(scope="module")
def apart(postgres_home: places.Home, worker_id: str) -> Iterator[Service]:
    """A deployment whose rows this file may spoil."""
    with deploy(database_apart(postgres_home, f"{worker_id}_calls")) as service:
        yield service


class Priced(Safe):
    """A tenant with an agent that may spend ten millionths of a dollar, and a route whose calls cost three."""

    def __init__(self, service: Service, tenant: Any) -> None:
        super().__init__(service, tenant)
        self.agent = tenant.agent(LIMIT)
        self.priced = self.make_route(self.secret, costMicroUsd=3, **FORMAT)

    def charge(self, route: str | None = None, *, call: str | None = None, agent: Agent | None = None) -> Any:
        """Charge a call, as the proxy does."""
        proof = {"kind": "agent", "value": token_of(agent or self.agent)}
        with greet(self.service, "proxy") as wire:
            return wire.ask("ChargeCall", {"route": route or self.priced, "call": call or str(uuid.uuid4())}, proof)

    def end(self, call: str, **counts: Any) -> Any:
        """Say what a metered call used."""
        with greet(self.service, "proxy") as wire:
            try:
                return wire.ask("EndCharge", {"tenant": self.tenant.id, "call": call, "counts": counts})
            except TypeError:
                # What is no message of the protocol ends the connection.
                return {"returned": 0}

    async def spending(self) -> int:
        """The dollars that count for it, by the table."""
        async with owner_of(self.service.database) as owner:
            found = await owner.fetchval(
                "SELECT sum(amount) FROM spend WHERE tenant_id = $1 AND agent_id = $2 AND asset = 'usd'",
                self.tenant.id,
                self.agent.id,
            )
        return int(found or 0)


@pytest.fixture
def safe(apart: Service) -> Iterator[Priced]:
    """One of this test's own."""
    with new_tenant(apart) as tenant:
        yield Priced(apart, tenant)


async def test_calls_are_charged_at_the_sealed_price_until_the_budget_is_used_up(safe: Priced) -> None:
    answers = [safe.charge() for _ in range(4)]

    assert [code_of(answer) for answer in answers] == [("Charged", "")] * 3 + [("Forbidden", "budget_exceeded")]
    assert [answer["micro_usd"] for answer in answers[:3]] == [3, 3, 3]
    assert "0.000003 USD now and 0.000009 USD in the last 24 hours" in answers[3]["message"]
    assert 0 < answers[3]["context"]["retry_after"] <= 3601
    assert await safe.spending() == 9


async def test_a_call_is_charged_once_however_often_it_is_asked_for(safe: Priced) -> None:
    call = str(uuid.uuid4())

    answers = [code_of(safe.charge(call=call)) for _ in range(3)]

    assert answers == [("Charged", "")] * 3
    assert await safe.spending() == 3


async def test_a_free_call_and_a_refused_one_cost_nothing(safe: Priced) -> None:
    dear = safe.make_route(safe.secret, costMicroUsd=2**63 - 1, **FORMAT)

    free, refused = safe.charge(safe.route), safe.charge(dear)

    assert (code_of(free), free["micro_usd"]) == (("Charged", ""), 0)
    assert code_of(refused) == ("Forbidden", "budget_exceeded")
    assert await safe.spending() == 0


async def test_a_call_above_the_threshold_is_refused_and_not_queued(safe: Priced) -> None:
    safe.agent = safe.tenant.agent(rule("auto-approve-threshold", threshold="2", asset="usd"))

    refused = safe.charge()

    assert code_of(refused) == ("Forbidden", "budget_exceeded")
    assert refused["context"]["retry_after"] is None


async def test_rules_on_anything_but_dollars_and_times_say_nothing_of_a_call(safe: Priced) -> None:
    allowed = [
        rule("spending-limit", maxPerDay="1"),
        rule("auto-approve-threshold", threshold="0"),
        rule("rate-limit", maxTxPerHour=1),
        rule("approved-addresses", addresses=["0x" + "11" * 20]),
        rule("allowed-chains", chains=[1]),
    ]
    another_day = (datetime.now(UTC).isoweekday() + 3) % 7
    free, closed = safe.tenant.agent(*allowed), safe.tenant.agent(rule("time-window", allowedDays=[another_day]))

    answers = [code_of(safe.charge(agent=agent)) for agent in (free, free, closed)]

    assert answers == [("Charged", "")] * 2 + [("Forbidden", "budget_exceeded")]


async def test_a_price_that_was_nothing_for_a_while_is_charged_once_it_is_set(safe: Priced) -> None:
    free = safe.charge(safe.route)
    safe.do("ChangeCredentialRoute", route=safe.route, changes={"costMicroUsd": 3})
    dear = safe.charge(safe.route)
    # Known at its price, and free since: the proxy asks for a call that was admitted before.
    safe.do("ChangeCredentialRoute", route=safe.route, changes={"costMicroUsd": 0})
    freed = safe.charge(safe.route)
    safe.do("ChangeCredentialRoute", route=safe.route, changes={"enabled": False})
    disabled = safe.charge(safe.route)

    assert [code_of(answer) for answer in (free, dear, freed)] == [("Charged", "")] * 3
    assert [answer["micro_usd"] for answer in (free, dear, freed)] == [0, 3, 0]
    assert code_of(disabled) == ("Forbidden", "route_disabled")
    assert await safe.spending() == 3


@pytest.mark.parametrize("what", ["agents", "tenants"])
async def test_a_frozen_agent_or_tenant_is_charged_nothing(safe: Priced, apart: Service, what: str) -> None:
    safe.charge()
    frozen = {"agents": safe.agent.id, "tenants": safe.tenant.id}[what]
    await tamper(apart, f"UPDATE {what} SET frozen_at = now() WHERE id = {{frozen}}", frozen=frozen)

    assert code_of(safe.charge()) == ("Frozen", "frozen")
    assert await safe.spending() == 3


async def test_a_route_that_reveals_nothing_charges_nothing(safe: Priced, apart: Service) -> None:
    safe.agent = safe.tenant.agent(rule("spending-limit", maxPerDay="100", asset="usd"))
    known = safe.charge()
    safe.do("ChangeCredentialRoute", route=safe.priced, changes={"enabled": False})
    disabled = safe.charge()
    safe.do("ChangeCredentialRoute", route=safe.priced, changes={"enabled": True, "agents": ["another"]})
    not_theirs = safe.charge()
    safe.do("ChangeCredentialRoute", route=safe.priced, changes={"agents": []})
    again = safe.charge()
    await tamper(
        apart,
        "UPDATE credential_routes SET fields = replace(fields, '\"costMicroUsd\":3', '\"costMicroUsd\":1')"
        " WHERE id = {route}::uuid",
        route=safe.priced,
    )
    tampered = safe.charge()
    safe.do("DeleteCredentialRoute", route=safe.priced)
    deleted = safe.charge()
    safe.do("RevokeAgentTokens", agent=safe.agent.id)
    revoked = safe.charge(safe.make_route(safe.secret, costMicroUsd=1, **FORMAT))

    assert code_of(known) == code_of(again) == ("Charged", "")
    assert code_of(disabled) == ("Forbidden", "route_disabled")
    assert code_of(not_theirs) == code_of(deleted) == ("NotFound", "credential_route_absent")
    # The price that was sealed under this MAC, whatever the row says now.
    assert (code_of(tampered), tampered["micro_usd"]) == (("Charged", ""), 3)
    assert code_of(revoked) == ("BadProof", "token_revoked")
    assert code_of(safe.charge(NOBODY)) == ("BadProof", "token_revoked")


async def test_sixty_four_clients_spend_exactly_the_budget(safe: Priced) -> None:
    safe.agent = safe.tenant.agent(rule("spending-limit", maxPerDay="300", asset="usd"))

    with ThreadPoolExecutor(64) as pool:
        answers = list(pool.map(lambda _: code_of(safe.charge())[1], range(200)))

    assert answers.count("") == 100
    assert await safe.spending() == 300
    assert set(answers) == {"", "budget_exceeded"}


async def test_the_rest_of_a_metered_calls_charge_comes_back_once(safe: Priced) -> None:
    route = safe.make_route(safe.secret, maxMicroUsd=10, usage=PRICES, **FORMAT)
    call = str(uuid.uuid4())
    full = safe.charge(route, call=call), safe.charge()

    first, second = safe.end(call, input=2, output=1), safe.end(call, input=0, output=0)

    assert (full[0]["micro_usd"], code_of(full[1])) == (10, ("Forbidden", "budget_exceeded"))
    assert (first["returned"], second["returned"]) == (6, 0)
    assert await safe.spending() == 4
    assert code_of(safe.charge()) == ("Charged", "")


async def test_calls_count_in_a_budget_for_life_that_no_waiting_fills_again(safe: Priced, apart: Service) -> None:
    safe.agent = safe.tenant.agent(rule("spending-limit", maxTotal="14", asset="usd"))
    route = safe.make_route(safe.secret, maxMicroUsd=10, usage=PRICES, **FORMAT)
    call = str(uuid.uuid4())
    assert code_of(safe.charge(route, call=call)) == ("Charged", "")
    assert safe.end(call, input=2, output=1)["returned"] == 6
    async with owner_of(apart.database) as owner:
        # As if it had been weeks ago.
        await owner.execute("DELETE FROM spend WHERE agent_id = $1", safe.agent.id)

    answers = [safe.charge() for _ in range(4)]

    assert [code_of(answer)[1] for answer in answers] == ["", "", "", "budget_exceeded"]
    assert "0.000003 USD now and 0.000013 USD ever before" in answers[3]["message"]
    assert answers[3].get("context", {}).get("retry_after") is None


@pytest.mark.parametrize(
    "counts", [{"input": 11}, {"input": 10**12}, {"input": -5}, {"output": 10**18}, {"input": "1"}]
)
async def test_no_count_gives_back_more_than_nothing_beyond_the_charge(safe: Priced, counts: dict[str, Any]) -> None:
    route = safe.make_route(safe.secret, maxMicroUsd=10, usage=PRICES, **FORMAT)
    call = str(uuid.uuid4())
    safe.charge(route, call=call)

    answer = safe.end(call, **counts)

    assert answer["returned"] == 0
    assert await safe.spending() == 10


async def test_nothing_comes_back_of_a_fixed_price_or_to_another_tenant(safe: Priced, apart: Service) -> None:
    calls = [str(uuid.uuid4()) for _ in range(2)]
    safe.charge(call=calls[0])
    with new_tenant(apart) as tenant:
        foreign = Priced(apart, tenant)
        route = foreign.make_route(foreign.secret, maxMicroUsd=10, usage=PRICES, **FORMAT)
        foreign.charge(route, call=calls[1])

        answers = [safe.end(call)["returned"] for call in (calls[0], calls[1], NOBODY)]

        assert answers == [0, 0, 0]
        assert (await safe.spending(), await foreign.spending()) == (3, 10)


_CLOCK = "CREATE OR REPLACE FUNCTION service_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$ SELECT {} $$"


async def test_the_oldest_hour_of_dollars_counts_a_minute_longer(safe: Priced, apart: Service) -> None:
    top = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    async with owner_of(apart.database) as owner:
        await owner.execute(
            "INSERT INTO spend (tenant_id, agent_id, incarnation, asset, hour, amount)"
            " SELECT tenant_id, id, incarnation, 'usd', $2, 8 FROM agents WHERE id = $1",
            safe.agent.id,
            top - timedelta(hours=25),
        )
        try:
            # A call whose charge is in that bucket left up to half a minute into the next hour.
            answers = []
            for seconds in (0, 59, 61):
                moment = top + timedelta(seconds=seconds)
                await owner.execute(_CLOCK.format(f"timestamptz '{moment.isoformat()}'"))
                answers.append(code_of(safe.charge())[1])
        finally:
            await owner.execute(_CLOCK.format("clock_timestamp()"))

    assert answers == ["budget_exceeded", "budget_exceeded", ""]
