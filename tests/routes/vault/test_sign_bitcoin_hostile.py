"""Orders that a caller, a crowd of clients or a database writer can't get signed on Bitcoin, each with its code."""

import asyncio
from base64 import b64encode
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import asyncpg
import httpx
import pytest

from tests.chains.bitcoin.test_psbt_reading import MALFORMED
from tests.chains.bitcoin.wallet import Fields
from tests.fixtures.bitcoin import SOMEBODY, coin, script_of, spend, text
from tests.fixtures.callers import Agent, Tenant, rule
from tests.fixtures.people import Person
from tests.routes.agents.test_backtest import backtest
from tests.routes.vault.bitcoin import LISTED, SCOPE, address, payment, psbt_body, sign_psbt
from tests.routes.vault.transfers import with_signer


def payer_of(owner: Person, tenant: Tenant, *rules: dict[str, Any]) -> Agent:
    """An agent that may sign on regtest under more rules."""
    return with_signer(owner, tenant.agent(LISTED, *rules), "sign_transaction")


@pytest.fixture
def payer(as_owner: Person, tenant: Tenant) -> Agent:
    return payer_of(as_owner, tenant)


def status_and_code(answer: httpx.Response) -> tuple[int, str | None]:
    return answer.status_code, answer.json()["data"].get("code")


def _fields(agent: Agent, inputs: int = 1) -> Fields:
    return Fields(payment(agent, 10_000, inputs=inputs).serialize())


def _text(fields: Fields) -> str:
    return b64encode(fields.raw()).decode()


# Of each code: a scope and a PSBT that get it.
REFUSED: dict[str, Callable[[Agent], tuple[str, str]]] = {
    "bad_wallet_scope": lambda agent: ("bitcoin:regtest:p2wsh:0:0:0", text(payment(agent, 10_000))),
    "psbt_malformed": lambda agent: (SCOPE, b64encode(MALFORMED["a zero byte behind the end"]).decode()),
    "psbt_unproven_input": lambda agent: (
        SCOPE,
        _text(Fields(payment(agent, 10_000, inputs=2).serialize()).drop(1, 0)),
    ),
    "psbt_sighash": lambda agent: (SCOPE, _text(_fields(agent).put(1, b"\3", (3).to_bytes(4, "little")))),
    "psbt_no_own_input": lambda agent: ("bitcoin:regtest:p2wpkh:0:0:1", text(payment(agent, 10_000))),
    "psbt_fee": lambda agent: (SCOPE, text(payment(agent, 10_000, fee=10))),
    "psbt_nonstandard_output": lambda agent: (SCOPE, text(payment(agent, 293))),
    "fee_above_cap": lambda agent: (SCOPE, text(payment(agent, 10_000, fee=100_001))),
    # Ours passes a signature under a key that is none; the second reader stumbles over it.
    "psbt_ambiguous": lambda agent: (SCOPE, _text(_fields(agent).put(1, b"\2" + b"\2" + b"\xff" * 32, b"\x30" * 71))),
}


@pytest.mark.parametrize("code", REFUSED)
def test_a_psbt_that_is_not_right_is_refused_wherever_it_is_shown(code: str, payer: Agent) -> None:
    scope, psbt = REFUSED[code](payer)

    assert status_and_code(sign_psbt(payer, psbt, scope)) == (400, code)
    question = {"kind": "bitcoin", "request": psbt_body(psbt, scope)}
    assert status_and_code(payer.post(f"/vault/{payer.id}/simulate", json=question)) == (400, code)
    assert payer.ok("GET", f"/vault/{payer.id}/history") == []


def test_no_address_was_made_so_nothing_is_this_wallets(as_owner: Person, tenant: Tenant, payer: Agent) -> None:
    fresh = payer_of(as_owner, tenant)

    answer = sign_psbt(fresh, payment(payer, 10_000))

    assert status_and_code(answer) == (400, "psbt_no_own_input")
    assert "bitcoin/address" in answer.json()["error"]


def test_an_address_of_another_network_in_a_whitelist_is_no_approval(as_owner: Person, tenant: Tenant) -> None:
    script = SOMEBODY
    listed = {
        "mainnet": script.address(),
        "regtest": "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080",
    }
    assert script_of(listed["mainnet"]).data == script_of(listed["regtest"]).data
    for network, status in (("mainnet", 403), ("regtest", 200)):
        payer = payer_of(as_owner, tenant, rule("approved-addresses", addresses=[listed[network]]))
        assert sign_psbt(payer, payment(payer, 10_000)).status_code == status


def test_the_limit_is_exact_under_many_clients(as_owner: Person, tenant: Tenant) -> None:
    payer = payer_of(as_owner, tenant, rule("spending-limit", asset="bitcoin", maxPerDay="110000"))
    psbts = [text(payment(payer, 10_000)) for _ in range(64)]

    with ThreadPoolExecutor(64) as crowd:
        answers = list(crowd.map(lambda psbt: sign_psbt(payer, psbt).status_code, psbts))

    assert Counter(answers) == {200: 10, 403: 54}


async def test_signature_and_coins_are_written_together(payer: Agent, owner: asyncpg.Connection) -> None:
    tx = sign_psbt(payer, payment(payer, 10_000, inputs=3)).json()["data"]["transactionId"]
    refused = sign_psbt(payer, payment(payer, 293))

    assert refused.status_code == 400
    rows = await owner.fetch("SELECT tx_id::text AS tx FROM outpoints WHERE agent_id = $1", payer.id)
    assert [row["tx"] for row in rows] == [tx] * 3
    (amount,) = await owner.fetchrow("SELECT amount FROM psbt_spends WHERE agent_id = $1", payer.id)
    assert amount == 11_000
    spent = await owner.fetchval("SELECT sum(amount) FROM spend WHERE agent_id = $1 AND asset = 'bitcoin'", payer.id)
    assert spent == 11_000


async def test_three_that_conflict_in_turn_free_no_budget(as_owner: Person, tenant: Tenant) -> None:
    """A and B share a coin, A and C another one; B and C can both happen, so all three count."""
    payer = payer_of(as_owner, tenant, rule("spending-limit", asset="bitcoin", maxPerDay="100000"))
    own = script_of(address(payer)["address"])
    first, second = coin(own, 30_000, f"{payer.id} a"), coin(own, 30_000, f"{payer.id} b")
    a = spend([(first, 0), (second, 0)], [(SOMEBODY, 30_000), (own, 29_000)])
    b, c = spend([(first, 0)], [(SOMEBODY, 29_000)]), spend([(second, 0)], [(SOMEBODY, 29_000)])

    answers = [sign_psbt(payer, one) for one in (a, b, c, payment(payer, 9_000), payment(payer, 8_000))]

    assert [answer.status_code for answer in answers] == [200, 200, 200, 403, 200]


def test_a_repeated_request_gets_the_same_answer(payer: Agent) -> None:
    psbt = payment(payer, 10_000)

    first, again = (
        sign_psbt(payer, psbt, key="the same payment", finalize=True),
        sign_psbt(payer, psbt, key="the same payment", finalize=True),
    )
    other = sign_psbt(payer, payment(payer, 11_000), key="the same payment", finalize=True)

    assert first.status_code == 200
    assert (again.json()["data"], again.headers["Idempotency-Replayed"]) == (first.json()["data"], "true")
    assert other.status_code == 409


def test_an_owner_signs_with_a_second_factor_instead_of_a_signer(as_owner: Person, payer: Agent) -> None:
    answer = as_owner.post(f"/vault/{payer.id}/sign-bitcoin-psbt", json=psbt_body(payment(payer, 10_000)))

    assert answer.status_code == 200, answer.text


TAMPERED = {
    "a stranger's account key": (
        "UPDATE bitcoin_accounts b SET public_key = o.public_key, chain_code = o.chain_code, mac = o.mac "
        "FROM bitcoin_accounts o WHERE b.agent_id = {agent} AND o.agent_id = {other} AND b.account = o.account"
    ),
    "another chain code": "UPDATE bitcoin_accounts SET chain_code = sha256(chain_code) WHERE agent_id = {agent}",
    "no MAC": "UPDATE bitcoin_accounts SET mac = '' WHERE agent_id = {agent}",
    "a stranger's root": (
        "UPDATE sealed s SET blob = o.blob FROM sealed o WHERE s.owner = {agent} AND s.purpose = 'bitcoin' "
        "AND o.owner = {other} AND o.purpose = 'bitcoin'"
    ),
    "no root": "DELETE FROM sealed WHERE owner = {agent} AND purpose = 'bitcoin'",
    "another fingerprint": "UPDATE wallets SET address = '00000000' WHERE agent_id = {agent} AND family = 'bitcoin'",
    "no fingerprint": "DELETE FROM wallets WHERE agent_id = {agent} AND family = 'bitcoin'",
}


@pytest.mark.parametrize("how", TAMPERED)
async def test_a_row_that_a_database_writer_changed_signs_nothing(
    how: str, as_owner: Person, tenant: Tenant, payer: Agent, owner: asyncpg.Connection
) -> None:
    other = payer_of(as_owner, tenant)
    address(other)
    psbt = payment(payer, 10_000)
    assert sign_psbt(payer, psbt).status_code == 200
    quoted = {"agent": f"'{payer.id}'", "other": f"'{other.id}'"}

    await owner.execute(TAMPERED[how].format(**quoted))

    assert status_and_code(await asyncio.to_thread(sign_psbt, payer, payment_of(psbt))) == (503, "key_tampered")
    fresh = await asyncio.to_thread(payer.get, f"/vault/{payer.id}/bitcoin/address?walletScope={SCOPE[:-5]}7:0:0")
    assert fresh.status_code in (200, 503)
    if "root" in how or "fingerprint" in how:
        assert status_and_code(fresh) == (503, "key_tampered")


def payment_of(psbt: Any) -> str:
    """The same PSBT with another sequence, so that it is another transaction."""
    psbt.inputs[0].sequence = 7
    return text(psbt)


async def test_a_queued_psbt_that_is_swapped_is_not_signed(
    as_owner: Person, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    payer = payer_of(as_owner, tenant, rule("auto-approve-threshold", asset="bitcoin", threshold="1"))
    waiting, other = (sign_psbt(payer, payment(payer, amount)).json()["data"]["txId"] for amount in (10_000, 20_000))

    await owner.execute(
        "UPDATE transactions t SET order_text = o.order_text, data = o.data FROM transactions o "
        "WHERE t.id = $1::uuid AND o.id = $2::uuid",
        waiting,
        other,
    )

    assert tenant.post(f"/vault/{payer.id}/approve/{waiting}", json={}).status_code == 503
    assert tenant.post(f"/vault/{payer.id}/approve/{other}", json={}).status_code == 200


def test_rules_tightened_meanwhile_refuse_what_waits(as_owner: Person, tenant: Tenant) -> None:
    queued = rule("auto-approve-threshold", asset="bitcoin", threshold="1")
    payer = payer_of(as_owner, tenant, queued)
    waiting = sign_psbt(payer, payment(payer, 10_000)).json()["data"]["txId"]
    tighter = rule("spending-limit", asset="bitcoin", maxPerTransaction="5000")
    tenant.ok("PUT", f"/agents/{payer.id}/policies", [LISTED, queued, tighter])

    assert tenant.post(f"/vault/{payer.id}/approve/{waiting}", json={}).status_code == 403
    assert payer.ok("GET", f"/vault/{payer.id}/transactions/{waiting}")["status"] == "pending_approval"


def test_a_refused_order_whose_text_was_not_kept_has_no_receipt(as_owner: Person, tenant: Tenant) -> None:
    payer = payer_of(as_owner, tenant, rule("spending-limit", maxPerTransaction="1", asset="bitcoin"))
    refused = sign_psbt(payer, payment(payer, 10_000, fee=3_000, inputs=20))
    data = "0xdeadbeef" + "00" * 3_000
    blocked = tenant.agent(rule("approved-addresses", addresses=[]))
    long = blocked.sign(value=1, data=data)
    for agent, answer in ((payer, refused), (blocked, long)):
        assert answer.status_code == 403, answer.text
        tx = answer.json()["data"]["txId"]
        assert status_and_code(agent.get(f"/vault/{agent.id}/transactions/{tx}/receipt")) == (409, "not_signed")


def test_one_root_is_made_however_many_ask_at_once(as_owner: Person, tenant: Tenant) -> None:
    agent = tenant.agent()
    scopes = [f"bitcoin:regtest:p2wpkh:{number % 4}:0:0" for number in range(16)]

    with ThreadPoolExecutor(16) as crowd:
        found = list(crowd.map(lambda scope: address(agent, scope), scopes))

    assert len({one["fingerprint"] for one in found}) == 1
    assert len({one["address"] for one in found}) == 4
    made = as_owner.ok("GET", "/audit/events?action=wallet.created")["data"]
    assert len([one for one in made if agent.id in str(one)]) == 1


def test_accounts_of_an_agent_are_bounded(tenant: Tenant) -> None:
    agent = tenant.agent()
    for number in range(128):
        address(agent, f"bitcoin:regtest:p2wpkh:{number}:0:0")

    beyond = agent.get(f"/vault/{agent.id}/bitcoin/address?walletScope=bitcoin:regtest:p2tr:0:0:0")

    assert status_and_code(beyond) == (409, "too_many_accounts")
    assert address(agent, "bitcoin:regtest:p2wpkh:5:1:77")["derivationPath"] == "m/84'/1'/5'/1/77"


def test_other_rules_are_tried_on_past_psbts(as_owner: Person, tenant: Tenant) -> None:
    limit = rule("spending-limit", asset="bitcoin", maxPerDay="40000")
    payer = payer_of(as_owner, tenant, limit)
    small, large = (sign_psbt(payer, payment(payer, amount)) for amount in (10_000, 35_000))
    assert (small.status_code, large.status_code) == (200, 403)

    assert backtest(tenant, payer, LISTED, limit)["changed"] == []
    found = backtest(tenant, payer, LISTED, rule("spending-limit", asset="bitcoin", maxPerDay="10000"))

    assert [(one["was"], one["now"]) for one in found["changed"]] == [("sign", "refuse")]


def test_spend_of_bitcoin_is_on_the_dashboard(as_owner: Person, tenant: Tenant) -> None:
    payer = payer_of(as_owner, tenant, rule("spending-limit", asset="bitcoin", maxPerDay="100000"))
    assert sign_psbt(payer, payment(payer, 10_000)).status_code == 200

    shown = tenant.ok("GET", f"/dashboard/{payer.id}")

    assert "11000" in str(shown)
