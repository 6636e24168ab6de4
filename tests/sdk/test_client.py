"""The client against the running service: it pays, waits, comes back, and says what the rules and people said."""

import asyncio
import inspect
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest
from custody_sdk import (
    AsyncVault,
    BadArgument,
    Failed,
    NameTaken,
    OutcomeUnknown,
    Refused,
    TryLater,
    Vault,
    VaultError,
    Waiting,
    units,
)
from custody_sdk.client import VERSION
from eth_account import Account
from eth_account.messages import encode_defunct, encode_typed_data

from tests.fixtures.callers import ADDRESS, OTHER_ADDRESS, Agent, Tenant, rule
from tests.fixtures.each import each
from tests.fixtures.imports import PROJECT
from tests.fixtures.server import Service
from tests.outside.evm_node import CHAIN_ID, EvmNode
from tests.sdk.conftest import approve, token_of, vault_of

LIMITS = (rule("spending-limit", maxPerTransaction="100"), rule("auto-approve-threshold", threshold="10"))
MAIL = {
    "domain": {"name": "Mail", "version": "1", "chainId": CHAIN_ID},
    "types": {"Mail": [{"name": "number", "type": "uint256"}, {"name": "of", "type": "bytes32"}]},
    "primaryType": "Mail",
    "message": {"number": 2**200, "of": b"\x07" * 32},
}


@pytest.fixture
def payer(tenant: Tenant, evm_node: EvmNode) -> Agent:
    """An agent with a limit and a threshold, and money."""
    agent = tenant.agent(*LIMITS)
    evm_node.fund(agent.evm_address)
    return agent


# ---- paying


def test_a_payment_is_mined_once_however_often_its_name_is_used(payer: Agent, evm_node: EvmNode) -> None:
    before = int(evm_node.rpc("eth_getBalance", OTHER_ADDRESS, "latest"), 16)
    with vault_of(payer) as vault:
        paid = [vault.pay("invoice-1", OTHER_ADDRESS, 5, chain_id=CHAIN_ID) for _ in range(3)]
        found = vault.confirm(paid[0].tx_id)

        assert {one.tx_id for one in paid} == {found["id"]}
        assert (found["status"], found["referenceId"], found["txHash"]) == ("confirmed", "invoice-1", paid[0].tx_hash)
        assert [one["id"] for one in vault.find("invoice-1")] == [found["id"]]
    assert int(evm_node.rpc("eth_getBalance", OTHER_ADDRESS, "latest"), 16) == before + 5


def test_a_name_that_was_another_payment_is_said_to_be_taken(payer: Agent) -> None:
    with vault_of(payer) as vault:
        vault.pay("invoice-1", ADDRESS, 5)

        with pytest.raises(NameTaken, match="new payment needs a new name") as taken:
            vault.pay("invoice-1", ADDRESS, 6)

    assert taken.value.code == "idempotency_mismatch"


def test_a_payment_above_a_limit_is_refused_with_the_reason(payer: Agent) -> None:
    with vault_of(payer) as vault, pytest.raises(Refused, match=r"^policy_refused: .*exceeds the limit of 100") as no:
        vault.pay("invoice-1", ADDRESS, 500)

    assert (no.value.status, no.value.code, len(no.value.reasons)) == (403, "policy_refused", 2)


def test_a_token_is_paid_by_its_name(tenant: Tenant, evm_node: EvmNode) -> None:
    agent = tenant.agent()
    evm_node.fund(agent.evm_address)
    token = evm_node.deploy_erc20(agent.evm_address)
    with vault_of(agent) as vault:
        paid = vault.pay("invoice-1", OTHER_ADDRESS, units("42.50", 6), f"evm:{CHAIN_ID}:{token}")
        vault.confirm(paid.tx_id)

    asked = {"to": token, "data": f"0x70a08231{OTHER_ADDRESS[2:]:0>64}"}
    assert int(evm_node.rpc("eth_call", asked, "latest"), 16) == 42_500_000


def test_five_payments_at_once_are_all_mined(agent: Agent, evm_node: EvmNode) -> None:
    evm_node.fund(agent.evm_address)
    with vault_of(agent) as vault, ThreadPoolExecutor(5) as beside:
        paid = list(beside.map(lambda number: vault.pay(f"invoice-{number}", ADDRESS, 1), range(5)))
        ended = [vault.confirm(one.tx_id)["status"] for one in paid]

    assert ended == ["confirmed"] * 5


async def test_five_payments_at_once_on_one_loop_are_all_mined(agent: Agent, evm_node: EvmNode) -> None:
    evm_node.fund(agent.evm_address)
    async with AsyncVault(str(agent.base_url), token_of(agent)) as vault:
        paid = await asyncio.gather(*(vault.pay(f"invoice-{number}", ADDRESS, 1) for number in range(5)))
        ended = await asyncio.gather(*(vault.confirm(one.tx_id) for one in paid))

    assert [one["status"] for one in ended] == ["confirmed"] * 5


def test_many_threads_with_one_name_make_one_payment(agent: Agent) -> None:
    order = {"to": ADDRESS, "value": "1", "broadcast": False}
    with vault_of(agent) as vault, ThreadPoolExecutor(8) as beside:
        made = list(beside.map(lambda _: vault.send("invoice-1", order), range(8)))  # type: ignore[arg-type]

    assert len({one.tx_id for one in made}) == 1
    assert len(agent.ok("GET", f"/vault/{agent.id}/history")) == 1


# ---- waiting


def test_an_order_that_waits_is_signed_when_a_person_says_so(tenant: Tenant, payer: Agent) -> None:
    with vault_of(payer) as vault, ThreadPoolExecutor(1) as beside:
        with pytest.raises(Waiting) as waiting:
            vault.pay("invoice-1", ADDRESS, 50)
        ended = beside.submit(vault.pay, "invoice-1", ADDRESS, 50, wait=60)
        with pytest.raises(Waiting):
            vault.resume(waiting.value.tx_id)
        approve(tenant, waiting.value.approval_id)

        assert ended.result().tx_id == waiting.value.tx_id
        assert vault.resume(waiting.value.tx_id).tx_hash == ended.result().tx_hash
        # The name tells the same from then on.
        assert vault.pay("invoice-1", ADDRESS, 50).tx_hash == ended.result().tx_hash


def test_a_wait_that_is_over_says_so_and_the_order_goes_on(payer: Agent) -> None:
    with vault_of(payer) as vault:
        with pytest.raises(Waiting) as waiting:
            vault.pay("invoice-1", ADDRESS, 50, wait=0.6)

        assert vault.transaction(waiting.value.tx_id)["status"] == "pending_approval"
        with pytest.raises(Waiting):
            vault.confirm(waiting.value.tx_id, 0.1)


def test_a_denied_order_is_refused_in_the_persons_words(tenant: Tenant, payer: Agent) -> None:
    with vault_of(payer) as vault:
        with pytest.raises(Waiting) as waiting:
            vault.pay("invoice-1", ADDRESS, 50)
        tenant.ok("POST", f"/approvals/{waiting.value.approval_id}/deny", {"reason": "Not this one."})

        with pytest.raises(Refused, match="Not this one"):
            vault.wait(waiting.value.tx_id, 5)
        with pytest.raises(Refused) as again:
            vault.pay("invoice-1", ADDRESS, 50)

    assert again.value.code == "approval_denied"


def test_an_agent_takes_back_what_waits(payer: Agent) -> None:
    with vault_of(payer) as vault:
        with pytest.raises(Waiting) as waiting:
            vault.pay("invoice-1", ADDRESS, 50)
        tx_id = waiting.value.tx_id

        assert vault.withdraw(tx_id) == vault.withdraw(tx_id)
        with pytest.raises(Refused, match="withdrawn"):
            vault.resume(tx_id)


def test_a_rate_that_is_spent_says_when_to_come_back(tenant: Tenant) -> None:
    agent = tenant.agent(rule("rate-limit", maxTxPerHour=1))
    order = {"to": ADDRESS, "value": "1", "broadcast": False}
    with vault_of(agent, patience=1) as vault:
        vault.send("invoice-1", order)  # type: ignore[arg-type]
        with pytest.raises(TryLater) as later:
            vault.send("invoice-2", order)  # type: ignore[arg-type]

    assert later.value.retry_after > 1000


def test_a_payment_that_fails_on_the_chain_is_no_success(agent: Agent, evm_node: EvmNode) -> None:
    evm_node.fund(agent.evm_address)
    # A contract that takes no coins: it reverts whatever it is sent.
    contract = evm_node.deploy(bytes.fromhex("60006000fd"))
    order = {"to": contract, "value": "1", "gasLimit": "100000", "chainId": CHAIN_ID}
    with vault_of(agent) as vault:
        paid = vault.send("invoice-1", order)  # type: ignore[arg-type]
        with pytest.raises(Failed):
            vault.confirm(paid.tx_id)


def test_a_frozen_agent_is_refused_for_good(tenant: Tenant, agent: Agent) -> None:
    tenant.ok("POST", f"/agents/{agent.id}/freeze", {"reason": "Lost."})
    with vault_of(agent) as vault, pytest.raises(Refused) as frozen:
        vault.pay("invoice-1", ADDRESS, 1)

    assert (frozen.value.status, frozen.value.code) == (423, "frozen")


# ---- signing, and looking


def test_a_message_and_a_document_are_signed_by_the_wallet(vault: Vault) -> None:
    wallet = vault.wallet()["walletAddress"]

    said = vault.sign_message("login-1", "I own this wallet.")
    raw = vault.sign_message("login-2", b"\xff\x00not text")
    document = vault.sign_typed_data("mail-1", MAIL)

    assert Account.recover_message(encode_defunct(text="I own this wallet."), signature=said.signature) == wallet
    assert Account.recover_message(encode_defunct(b"\xff\x00not text"), signature=raw.signature) == wallet
    # A number beyond 2^53 and bytes went as text, and are what was signed.
    assert Account.recover_message(encode_typed_data(full_message=MAIL), signature=document.signature) == wallet


def test_a_solana_message_is_signed_from_text_and_from_bytes(vault: Vault) -> None:
    signed = [vault.sign_message(f"login-{at}", one, "solana") for at, one in enumerate(("hello", b"hello"))]

    assert signed[0].signature == signed[1].signature
    assert signed[0].tx_id != signed[1].tx_id


def test_a_check_tells_what_would_become_of_a_payment_and_signs_nothing(payer: Agent) -> None:
    with vault_of(payer) as vault:
        told = [vault.check(ADDRESS, amount, chain_id=CHAIN_ID)["decision"] for amount in (5, 50, 500)]

    assert told == ["sign", "queue", "refuse"]
    assert payer.ok("GET", f"/vault/{payer.id}/history") == []


def test_an_agent_sees_itself_its_money_and_what_it_may_call(vault: Vault, agent: Agent, evm_node: EvmNode) -> None:
    evm_node.fund(agent.evm_address, 7)

    assert vault.me()["agentId"] == vault.agent == agent.id
    assert vault.balance(CHAIN_ID)["balances"]["native"] == "7"
    assert vault.tokens(CHAIN_ID)["tokens"] == []
    assert vault.apis() == []
    assert vault.dashboard()["pendingApprovals"] == 0


def test_a_transaction_of_another_agent_is_not_there(vault: Vault, tenant: Tenant) -> None:
    other = tenant.agent()
    theirs = other.sign().json()["data"]["txId"]

    with pytest.raises(VaultError) as absent:
        vault.resume(theirs)

    assert (absent.value.status, absent.value.code) == (404, "transaction_absent")


def test_a_revoked_token_ends_a_client(tenant: Tenant, agent: Agent, vault: Vault) -> None:
    assert vault.me()["agentId"] == agent.id
    tenant.ok("DELETE", f"/agents/{agent.id}/tokens")

    with pytest.raises(VaultError) as ended:
        vault.pay("invoice-1", ADDRESS, 1)

    assert ended.value.status == 401


# ---- arguments


@each(
    "amount",
    ["1.5", "1e18", "-1", -1, "", "0x10", "9" * 79, str(2**256), 1.5, True, None, "٣", b"5"],
    ids=repr,
)
def test_an_amount_that_is_no_whole_number_is_refused_before_any_request(amount: object) -> None:
    with Vault("http://127.0.0.1:9", "t", agent="a") as vault, pytest.raises(BadArgument, match="smallest units"):
        vault.pay("invoice-1", ADDRESS, amount)  # type: ignore[arg-type]


@each("name", ["", "ab", "a" * 65, "two words", "a\nb", "naïve", None, 5], ids=repr)
def test_a_name_that_is_none_is_refused_before_any_request(name: object) -> None:
    with Vault("http://127.0.0.1:9", "t", agent="a") as vault, pytest.raises(BadArgument, match="THIS payment"):
        vault.pay(name, ADDRESS, 1)  # type: ignore[arg-type]


@each("asset", ["usdc", "solana:native", "evm:0x1", "evm:1:0x12", "evm:native ", ""], ids=repr)
def test_an_asset_that_cannot_be_paid_so_is_refused_before_any_request(asset: str) -> None:
    with Vault("http://127.0.0.1:9", "t", agent="a") as vault, pytest.raises(BadArgument):
        vault.pay("invoice-1", ADDRESS, 1, asset)


def test_a_token_of_another_chain_than_was_named_is_refused() -> None:
    with Vault("http://127.0.0.1:9", "t", agent="a") as vault, pytest.raises(BadArgument, match="is on chain 1"):
        vault.pay("invoice-1", ADDRESS, 1, f"evm:1:{ADDRESS}", chain_id=2)


@each("amount", ["42.5", "0", "0.000001", "115792089237316195423570985008687907853269984665640564039457.584007"])
def test_units_are_exact(amount: str) -> None:
    assert units(amount, 6) == int(Decimal(amount).scaleb(6).to_integral_exact())


@each("amount", ["0.0000001", "-1", "NaN", "Infinity", "", "1,5", "1e80", 42.5, 1], ids=repr)
def test_units_round_nothing(amount: object) -> None:
    with pytest.raises(BadArgument):
        units(amount, 6)  # type: ignore[arg-type]


# ---- both clients


def test_both_clients_have_the_same_methods_which_say_the_same() -> None:
    def methods_of(client: type) -> dict[str, tuple[str, str | None]]:
        names = [name for name in vars(client) if not name.startswith("_")]
        found = {}
        for name in names:
            one = inspect.getattr_static(client, name)
            one = one.fget if isinstance(one, property) else getattr(one, "__func__", one)
            found[name.removeprefix("a") if name == "aclose" else name] = (str(inspect.signature(one)), one.__doc__)
        return found

    sync, asynchronous = methods_of(Vault), methods_of(AsyncVault)

    assert {**sync, "agent": None} == {**asynchronous, "agent": None}


async def test_the_client_that_is_awaited_waits_resumes_and_says_the_same(tenant: Tenant, payer: Agent) -> None:
    async with AsyncVault(str(payer.base_url), token_of(payer)) as vault:
        with pytest.raises(Waiting) as waiting:
            await vault.pay("invoice-1", ADDRESS, 50)
        ended = asyncio.ensure_future(vault.wait(waiting.value.tx_id, 60))
        await asyncio.to_thread(approve, tenant, waiting.value.approval_id)
        with pytest.raises(Refused):
            await vault.pay("invoice-2", ADDRESS, 500)

        assert (await ended).tx_id == waiting.value.tx_id
        assert (await vault.check(ADDRESS, 5))["decision"] == "sign"
        assert (await vault.me())["agentId"] == await vault.agent() == payer.id


def test_the_version_is_the_services() -> None:
    assert PROJECT["project"]["version"] == VERSION


def test_a_client_of_the_environment_reads_the_token_from_its_file(
    agent: Agent, service: Service, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = f"{tmp_path}/token"
    with open(file, "w") as written:
        written.write(f"{token_of(agent)}\n")
    monkeypatch.setenv("SERVICE_URL", service.url)
    monkeypatch.delenv("SERVICE_AGENT_TOKEN", raising=False)
    monkeypatch.setenv("SERVICE_AGENT_TOKEN_FILE", file)

    with Vault.from_environment() as vault:
        assert vault.me()["agentId"] == agent.id

    monkeypatch.delenv("SERVICE_AGENT_TOKEN_FILE")
    with pytest.raises(BadArgument, match="SERVICE_AGENT_TOKEN_FILE"):
        Vault.from_environment()


def test_a_service_that_is_away_leaves_the_outcome_unknown() -> None:
    with (
        Vault("http://127.0.0.1:9", "t", agent="a", patience=0) as vault,
        pytest.raises(OutcomeUnknown, match=r"Nobody knows whether it happened: call again with the same name"),
    ):
        vault.pay("invoice-1", ADDRESS, 1)
