"""PSBTs over HTTP: signed, queued, refused, counted."""

import io
from base64 import b64decode

import pytest
from embit.psbt import PSBT
from embit.transaction import Transaction

from tests.fixtures.bitcoin import SOMEBODY, address_of, hint, script_of, text
from tests.fixtures.callers import Agent, Tenant, rule
from tests.fixtures.people import Person
from tests.routes.vault.bitcoin import LISTED, SCOPE, address, payment, psbt_body, sign_psbt
from tests.routes.vault.transfers import with_signer

TYPES = ("p2wpkh", "p2tr", "p2sh-p2wpkh", "p2pkh")


@pytest.fixture
def payer(as_owner: Person, tenant: Tenant) -> Agent:
    """An agent that may sign on regtest, with a signer that authorises it."""
    return with_signer(as_owner, tenant.agent(LISTED), "sign_transaction")


@pytest.mark.parametrize("kind", TYPES)
def test_a_psbt_is_signed_and_finished(kind: str, payer: Agent) -> None:
    scope = f"bitcoin:regtest:{kind}:0:0:7"
    shown = address(payer, scope)

    answer = sign_psbt(payer, payment(payer, 50_000, scope=scope, inputs=2), scope, finalize=True)

    assert answer.status_code == 200, answer.text
    data = answer.json()["data"]
    done = Transaction.read_from(io.BytesIO(bytes.fromhex(data["finalizedTxHex"])))
    assert (data["txId"], data["feeSats"], data["signedInputs"]) == (done.txid().hex(), "1000", 2)
    assert (data["walletScope"], data["walletAddress"]) == (scope, shown["address"])
    assert (data["addressType"], data["network"]) == (kind, "regtest")
    kept = payer.ok("GET", f"/vault/{payer.id}/transactions/{data['transactionId']}")
    assert (kept["kind"], kept["status"], kept["chainId"]) == ("bitcoin", "signed", None)
    assert kept["signedTransaction"] == data["signedPsbtBase64"]
    assert kept["txHash"] == data["txId"]
    receipt = payer.ok("GET", f"/vault/{payer.id}/transactions/{data['transactionId']}/receipt")["receipt"]
    assert receipt["effects"] == kept["effects"]


def test_an_address_is_the_same_each_time(payer: Agent, tenant: Tenant) -> None:
    first = address(payer)

    assert address(payer) == first
    assert tenant.ok("GET", f"/vault/{payer.id}/bitcoin/address?walletScope={SCOPE}") == first
    assert first["derivationPath"] == "m/84'/1'/0'/0/0"
    assert address(tenant.agent())["address"] != first["address"]


def test_the_limit_counts_payment_and_fee(as_owner: Person, tenant: Tenant) -> None:
    payer = with_signer(
        as_owner, tenant.agent(LISTED, rule("spending-limit", asset="bitcoin", maxPerDay="100000")), "sign_transaction"
    )

    answers = [sign_psbt(payer, payment(payer, amount)) for amount in (60_000, 38_001, 38_000, 1_000)]

    assert [answer.status_code for answer in answers] == [200, 403, 200, 403]


def test_change_counts_nothing_and_a_payment_to_another_own_script_does(as_owner: Person, tenant: Tenant) -> None:
    payer = with_signer(
        as_owner, tenant.agent(LISTED, rule("spending-limit", asset="bitcoin", maxPerTx="20000")), "sign_transaction"
    )
    change = address(payer, "bitcoin:regtest:p2wpkh:0:1:3")
    psbt = payment(payer, 10_000, brings=61_000)
    psbt.outputs[1].script_pubkey = script_of(change["address"])

    without = sign_psbt(payer, text(psbt))
    hint(psbt, 1, change)
    hinted = sign_psbt(payer, text(psbt))

    assert (without.status_code, hinted.status_code) == (403, 200)


def test_the_same_transaction_counts_once_and_a_conflicting_one_in_full(as_owner: Person, tenant: Tenant) -> None:
    payer = with_signer(
        as_owner, tenant.agent(LISTED, rule("spending-limit", asset="bitcoin", maxPerDay="62000")), "sign_transaction"
    )
    psbt = payment(payer, 30_000, brings=100_000)
    first = sign_psbt(payer, psbt)
    again = sign_psbt(payer, psbt)
    other = payment(payer, 30_000, brings=100_000)
    other.inputs[0] = psbt.inputs[0]
    other.outputs[0].script_pubkey = script_of(address(tenant.agent())["address"])
    conflicting = sign_psbt(payer, other)
    beyond = sign_psbt(payer, payment(payer, 1_000))

    assert [one.status_code for one in (first, again, conflicting, beyond)] == [200, 200, 200, 403]
    kept = payer.ok("GET", f"/vault/{payer.id}/transactions/{conflicting.json()['data']['transactionId']}")
    assert kept["replacesTxId"] == again.json()["data"]["transactionId"]


@pytest.mark.parametrize(
    "rules",
    [(), (rule("allowed-chains", chains=["bitcoin:mainnet"]),), (rule("rate-limit", maxTxPerHour=10),)],
    ids=["none", "another network", "another rule"],
)
def test_without_a_rule_that_lists_the_network_nothing_is_signed(
    rules: tuple[dict[str, object], ...], as_owner: Person, tenant: Tenant
) -> None:
    payer = with_signer(as_owner, tenant.agent(*rules), "sign_transaction")

    answer = sign_psbt(payer, payment(payer, 10_000))

    assert answer.status_code == 403
    assert [one["type"] for one in answer.json()["data"]["results"] if not one["passed"]] == ["allowed-chains"]


def test_an_agents_token_alone_signs_nothing(tenant: Tenant) -> None:
    agent = tenant.agent(LISTED)

    answer = agent.post(f"/vault/{agent.id}/sign-bitcoin-psbt", json=psbt_body(payment(agent, 10_000)))

    assert (answer.status_code, answer.json()["data"]["code"]) == (403, "signer_required")


def test_a_psbt_above_the_threshold_waits_and_is_fetched_once_approved(as_owner: Person, tenant: Tenant) -> None:
    payer = with_signer(
        as_owner,
        tenant.agent(LISTED, rule("auto-approve-threshold", asset="bitcoin", threshold="20000")),
        "sign_transaction",
    )
    waiting = sign_psbt(payer, payment(payer, 30_000), finalize=True)
    assert waiting.status_code == 202, waiting.text
    tx = waiting.json()["data"]["txId"]

    approved = tenant.ok("POST", f"/vault/{payer.id}/approve/{tx}", {})

    kept = payer.ok("GET", f"/vault/{payer.id}/transactions/{tx}")
    assert kept["status"] == "signed"
    assert kept["txHash"] == approved["txHash"]
    assert PSBT.parse(b64decode(kept["signedTransaction"])).inputs[0].final_scriptwitness


def test_others_pay_beside_us_so_a_person_decides(as_owner: Person, tenant: Tenant) -> None:
    limited = rule("spending-limit", asset="bitcoin", maxPerDay="1000000")
    payer = with_signer(as_owner, tenant.agent(LISTED, limited), "sign_transaction")
    ours, theirs = payment(payer, 10_000), payment(tenant.agent(LISTED), 10_000)
    ours.inputs.append(theirs.inputs[0])
    ours.outputs[1].value += 21_000

    answer = sign_psbt(payer, ours, finalize=True)

    assert answer.status_code == 202, answer.text


def test_simulation_says_what_signing_would_do(payer: Agent) -> None:
    psbt = payment(payer, 10_000)

    said = payer.ok("POST", f"/vault/{payer.id}/simulate", {"kind": "bitcoin", "request": psbt_body(psbt)})

    assert said["decision"] == "sign"
    assert [effect["to"] for effect in said["effects"] if effect["kind"] == "transfer"] == [address_of(SOMEBODY)]
    assert said["fee"] == {"asset": "bitcoin", "max": "1000"}
