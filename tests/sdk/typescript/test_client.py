"""The client against the running service: it pays, waits, comes back, and says what the rules and people said."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from eth_account import Account
from eth_account.messages import encode_defunct, encode_typed_data

from tests.fixtures.callers import ADDRESS, OTHER_ADDRESS, Agent, Tenant, rule
from tests.fixtures.each import each
from tests.fixtures.eventually import eventually
from tests.fixtures.server import Service
from tests.outside.evm_node import CHAIN_ID, EvmNode
from tests.sdk.conftest import approve, token_of, vault_of
from tests.sdk.typescript.conftest import Client, Thrown, bigint

LIMITS = (rule("spending-limit", maxPerTransaction="100"), rule("auto-approve-threshold", threshold="10"))
KEPT = {"to": ADDRESS, "value": "1", "broadcast": False}


@pytest.fixture
def capped_agent(tenant: Tenant, evm_node: EvmNode) -> Agent:
    """An agent with a limit and a threshold, and money."""
    agent = tenant.agent(*LIMITS)
    evm_node.fund(agent.evm_address)
    return agent


def of(client: Client, agent: Agent, **given: object) -> Client:
    """The client with the agent's token."""
    return client.make(str(agent.base_url), token_of(agent), **given)


# ---- paying


def test_a_payment_is_mined_once_however_often_its_name_is_used(
    client: Client, capped_agent: Agent, evm_node: EvmNode
) -> None:
    before = int(evm_node.rpc("eth_getBalance", OTHER_ADDRESS, "latest"), 16)
    of(client, capped_agent)

    paid = [client.call("vault.pay", "invoice-1", OTHER_ADDRESS, 5, "evm:native", {"chainId": CHAIN_ID})] * 3
    found = client.call("vault.confirm", paid[0]["txId"])

    assert (found["status"], found["referenceId"], found["txHash"]) == ("confirmed", "invoice-1", paid[0]["txHash"])
    assert [one["id"] for one in client.call("vault.find", "invoice-1")] == [found["id"]]
    assert int(evm_node.rpc("eth_getBalance", OTHER_ADDRESS, "latest"), 16) == before + 5


@each("amount", [5, "5", bigint(5)], ids=repr)
def test_two_clients_in_two_languages_make_one_payment(client: Client, capped_agent: Agent, amount: object) -> None:
    before = len(capped_agent.ok("GET", f"/vault/{capped_agent.id}/history"))
    name = f"invoice-{before}"
    of(client, capped_agent)
    with vault_of(capped_agent) as vault:
        theirs = vault.pay(name, ADDRESS, 5, chain_id=CHAIN_ID)
        ours = client.call("vault.pay", name, ADDRESS, amount, "evm:native", {"chainId": CHAIN_ID})
        token = f"evm:{CHAIN_ID}:{OTHER_ADDRESS}"
        asked = [client.call("vault.check", ADDRESS, 7, token), vault.check(ADDRESS, 7, token)]

        assert (ours["txId"], ours["txHash"]) == (theirs.tx_id, theirs.tx_hash)
        # The control: another amount under this name is told from it, by either.
        with pytest.raises(Thrown, match="new payment needs a new name") as taken:
            client.call("vault.pay", name, ADDRESS, 6, "evm:native", {"chainId": CHAIN_ID})
    assert (taken.value.name, taken.value.code) == ("NameTaken", "idempotency_mismatch")
    assert asked[0] == asked[1]
    assert len(capped_agent.ok("GET", f"/vault/{capped_agent.id}/history")) == before + 1


def test_both_languages_ask_alike_for_messages_and_documents(client: Client, agent: Agent) -> None:
    document = {
        "domain": {"name": "Mail", "version": "1", "chainId": CHAIN_ID},
        "types": {"Mail": [{"name": "number", "type": "uint256"}, {"name": "of", "type": "bytes32"}]},
        "primaryType": "Mail",
        "message": {"number": 2**200, "of": b"\x07" * 32},
    }
    spelled = {**document, "message": {"number": bigint(2**200), "of": b"\x07" * 32}}
    of(client, agent)
    with vault_of(agent) as vault:
        theirs = [
            vault.sign_typed_data("mail-1", document),
            vault.sign_message("login-1", "I own this wallet."),
            vault.sign_message("login-2", b"\xff\x00not text"),
            vault.sign_message("login-3", b"\xff", "solana"),
        ]
    ours = [
        client.call("vault.signTypedData", "mail-1", spelled),
        client.call("vault.signMessage", "login-1", "I own this wallet."),
        client.call("vault.signMessage", "login-2", b"\xff\x00not text"),
        client.call("vault.signMessage", "login-3", b"\xff", "solana"),
    ]

    assert [(one["txId"], one["signature"]) for one in ours] == [(one.tx_id, one.signature) for one in theirs]
    signer = Account.recover_message(encode_typed_data(full_message=document), signature=ours[0]["signature"])
    assert signer == agent.evm_address
    said = Account.recover_message(encode_defunct(text="I own this wallet."), signature=ours[1]["signature"])
    assert said == agent.evm_address


def test_five_payments_at_once_are_all_mined(client: Client, agent: Agent, evm_node: EvmNode) -> None:
    evm_node.fund(agent.evm_address)
    of(client, agent)

    paid = client.many(*(("vault.pay", f"invoice-{number}", ADDRESS, 1) for number in range(5)))
    ended = client.many(*(("vault.confirm", one["txId"]) for one in paid))

    assert [one["status"] for one in ended] == ["confirmed"] * 5


def test_many_calls_with_one_name_make_one_payment(client: Client, agent: Agent) -> None:
    of(client, agent)

    made = client.many(*[("vault.send", "invoice-1", KEPT)] * 20)

    assert len({one["txId"] for one in made}) == 1
    assert len(agent.ok("GET", f"/vault/{agent.id}/history")) == 1


def test_a_payment_above_a_limit_is_refused_with_the_reason(client: Client, capped_agent: Agent) -> None:
    with pytest.raises(Thrown, match=r"Refused policy_refused: .*exceeds the limit of 100") as refused:
        of(client, capped_agent).call("vault.pay", "invoice-1", ADDRESS, 500)

    assert (refused.value.status, refused.value.code, len(refused.value.said["reasons"])) == (403, "policy_refused", 2)


def test_a_token_is_paid_in_its_smallest_units(client: Client, agent: Agent, evm_node: EvmNode) -> None:
    evm_node.fund(agent.evm_address)
    token = evm_node.deploy_erc20(agent.evm_address)
    amount = client.call("units", "42.50", 6)

    paid = of(client, agent).call("vault.pay", "invoice-1", OTHER_ADDRESS, amount, f"evm:{CHAIN_ID}:{token}")
    client.call("vault.confirm", paid["txId"])

    asked = {"to": token, "data": f"0x70a08231{OTHER_ADDRESS[2:]:0>64}"}
    assert int(evm_node.rpc("eth_call", asked, "latest"), 16) == 42_500_000


# ---- waiting


def test_an_order_that_waits_is_signed_when_a_person_says_so(
    client: Client, tenant: Tenant, capped_agent: Agent
) -> None:
    of(client, capped_agent)
    with pytest.raises(Thrown) as waiting:
        client.call("vault.pay", "invoice-1", ADDRESS, 50)
    tx_id, approval_id = waiting.value.said["txId"], waiting.value.said["approvalId"]
    with ThreadPoolExecutor(1) as beside:
        ended = beside.submit(client.call, "vault.pay", "invoice-1", ADDRESS, 50, "evm:native", {"waitMs": 60_000})
        approve(tenant, approval_id)
        paid = ended.result()

    assert (waiting.value.name, waiting.value.code) == ("Waiting", "approval_required")
    assert paid["txId"] == tx_id
    assert client.call("vault.resume", tx_id)["txHash"] == paid["txHash"]
    # The name tells the same from then on, in the other language too.
    with vault_of(capped_agent) as vault:
        assert vault.pay("invoice-1", ADDRESS, 50).tx_hash == paid["txHash"]


def test_a_wait_that_is_over_says_so_and_the_order_goes_on(client: Client, capped_agent: Agent) -> None:
    of(client, capped_agent)
    with pytest.raises(Thrown) as waiting:
        client.call("vault.pay", "invoice-1", ADDRESS, 50, "evm:native", {"waitMs": 600})

    assert client.call("vault.transaction", waiting.value.said["txId"])["status"] == "pending_approval"
    for call in (("vault.resume",), ("vault.wait", 100), ("vault.confirm", 100)):
        with pytest.raises(Thrown, match="Waiting"):
            client.call(call[0], waiting.value.said["txId"], *call[1:])


def test_an_order_that_a_person_denies_is_refused_in_their_words(
    client: Client, tenant: Tenant, capped_agent: Agent
) -> None:
    of(client, capped_agent)
    with pytest.raises(Thrown) as waiting:
        client.call("vault.pay", "invoice-1", ADDRESS, 50)
    tenant.ok("POST", f"/approvals/{waiting.value.said['approvalId']}/deny", {"reason": "Not this one."})

    with pytest.raises(Thrown, match=r"Refused .*Not this one"):
        client.call("vault.wait", waiting.value.said["txId"], 5_000)
    with pytest.raises(Thrown) as again:
        client.call("vault.pay", "invoice-1", ADDRESS, 50)

    assert (again.value.name, again.value.code) == ("Refused", "approval_denied")


def test_an_agent_takes_back_what_waits(client: Client, capped_agent: Agent) -> None:
    of(client, capped_agent)
    with pytest.raises(Thrown) as waiting:
        client.call("vault.pay", "invoice-1", ADDRESS, 50)
    tx_id = waiting.value.said["txId"]

    assert client.call("vault.withdraw", tx_id) == client.call("vault.withdraw", tx_id)
    with pytest.raises(Thrown, match="withdrawn"):
        client.call("vault.resume", tx_id)


def test_a_rate_that_is_spent_says_when_to_come_back(client: Client, tenant: Tenant) -> None:
    of(client, tenant.agent(rule("rate-limit", maxTxPerHour=1)), patienceMs=1_000)
    client.call("vault.send", "invoice-1", KEPT)

    with pytest.raises(Thrown, match="TryLater") as later:
        client.call("vault.send", "invoice-2", KEPT)

    assert later.value.said["retryAfter"] > 1000


def test_a_payment_that_fails_on_the_chain_is_no_success(client: Client, agent: Agent, evm_node: EvmNode) -> None:
    evm_node.fund(agent.evm_address)
    # A contract that takes no coins: it reverts whatever it is sent.
    contract = evm_node.deploy(bytes.fromhex("60006000fd"))
    order = {"to": contract, "value": "1", "gasLimit": "100000", "chainId": CHAIN_ID}
    paid = of(client, agent).call("vault.send", "invoice-1", order)

    with pytest.raises(Thrown, match="Failed failed: "):
        client.call("vault.confirm", paid["txId"])


def test_a_frozen_agent_is_refused_for_good(client: Client, tenant: Tenant, agent: Agent) -> None:
    tenant.ok("POST", f"/agents/{agent.id}/freeze", {"reason": "Lost."})

    with pytest.raises(Thrown) as frozen:
        of(client, agent).call("vault.pay", "invoice-1", ADDRESS, 1)

    assert (frozen.value.name, frozen.value.status, frozen.value.code) == ("Refused", 423, "frozen")


# ---- looking


def test_an_agent_sees_itself_its_money_and_what_it_may_call(
    client: Client, capped_agent: Agent, evm_node: EvmNode
) -> None:
    of(client, capped_agent)

    assert client.call("vault.me")["agentId"] == client.call("vault.agent") == capped_agent.id
    assert int(client.call("vault.balance", CHAIN_ID)["balances"]["native"]) > 0
    assert client.call("vault.tokens", CHAIN_ID)["tokens"] == client.call("vault.apis") == []
    assert client.call("vault.dashboard")["pendingApprovals"] == 0
    told = [client.call("vault.check", ADDRESS, amount)["decision"] for amount in (5, 50, 500)]
    assert told == ["sign", "queue", "refuse"]
    assert capped_agent.ok("GET", f"/vault/{capped_agent.id}/history") == []


def test_a_client_of_the_environment_reads_the_token_from_its_file(
    client: Client, agent: Agent, service: Service, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text(f"{token_of(agent)}\n")
    with pytest.raises(Thrown, match="SERVICE_AGENT_TOKEN_FILE"):
        client.call("environment")
    client.call("set", {"SERVICE_URL": service.url, "SERVICE_AGENT_TOKEN_FILE": str(file)})

    client.call("environment")

    assert client.call("vault.me")["agentId"] == agent.id


@each("amount", [42.5, -1, "1e3", 2**53, "0x1", "", None, {"$": "number", "value": "NaN"}, bigint(2**256)], ids=repr)
def test_an_amount_that_is_not_exact_is_refused_before_asking(client: Client, amount: object) -> None:
    client.make("http://127.0.0.1:9", "t", agent="a")

    with pytest.raises(Thrown, match="BadArgument bad_amount: amount must be whole smallest units") as refused:
        client.call("vault.pay", "invoice-1", ADDRESS, amount)

    assert refused.value.status == 0


@each("amount", ["0.0000001", "-1", "NaN", "", "1,5", "1e80", 42.5, 1, ".5", "5.", "9" * 78, "9" * 300], ids=repr)
def test_units_round_nothing(client: Client, amount: object) -> None:
    with pytest.raises(Thrown, match="bad_amount"):
        client.call("units", amount, 6)


@each("amount", ["42.5", "0", "0.000001", "00.100000000"])
def test_units_are_exact(client: Client, amount: str) -> None:
    assert int(client.call("units", amount, 6)) == round(float(amount) * 10**6)


def test_a_call_that_is_given_up_ends_and_its_order_stays(client: Client, capped_agent: Agent) -> None:
    of(client, capped_agent)
    with pytest.raises(Thrown, match="TimeoutError"):
        client.call("abort", "invoice-1", ADDRESS, 50)

    assert (
        eventually(lambda: capped_agent.ok("GET", f"/vault/{capped_agent.id}/history"))[0]["status"]
        == "pending_approval"
    )
