"""The adapters with the libraries that they are for, in the lowest and the newest versions, on the local chain."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.callers import ADDRESS, Agent, Tenant, rule
from tests.fixtures.server import SOLANA_CHAIN
from tests.outside.evm_node import CHAIN_ID, EvmNode, running_evm_node
from tests.outside.lying_node import running_lying_node
from tests.outside.seller import running_seller
from tests.outside.solana_node import SolanaNode
from tests.sdk.conftest import SDK, Program
from tests.sdk.installed import SETS

pytestmark = [pytest.mark.long, pytest.mark.parametrize("libraries", SETS)]

USDC, SELLER = "0x" + "05dc" * 10, "0x" + "51" * 20
Programs = Callable[[str, Agent], Program]


def test_web3_pays_by_the_vault_and_five_at_once_are_mined(
    programs: Programs, libraries: str, tenant: Tenant, evm_node: EvmNode
) -> None:
    agent = tenant.agent()
    evm_node.fund(agent.evm_address)
    token = evm_node.deploy_erc20(agent.evm_address)
    limits = [
        rule("spending-limit", maxPerTransaction="100", **of) for of in ({}, {"asset": f"evm:{CHAIN_ID}:{token}"})
    ]
    rules = [*limits, rule("auto-approve-threshold", threshold="10")]
    tenant.ok("PUT", f"/agents/{agent.id}/policies", rules)

    said = programs(libraries, agent).last_line("web3_payments", evm_node.url, ADDRESS, token)

    assert said["accounts"] == [agent.evm_address]
    assert (said["mined"], said["on_a_loop"]) == ([1] * 5, [1] * 5)
    assert said["refused"] == "Refused policy_refused"
    assert said["waiting"] == "Waiting approval_required"
    for name in ("creation", "legacy", "access_list", "eth_sign"):
        assert said[name] == "BadArgument unsupported", name
    assert said["other_from"] == "BadArgument bad_transaction"


def test_an_account_of_eth_account_signs_what_was_asked_for(
    programs: Programs, libraries: str, agent: Agent, evm_node: EvmNode
) -> None:
    evm_node.fund(agent.evm_address)

    said = programs(libraries, agent).last_line("account", evm_node.url, ADDRESS, str(CHAIN_ID))

    for name in ("own", "again", "message", "document"):
        assert said[name] is True, name
    assert (said["status"], said["by_web3"], said["whole"]) == (1, 1, 65)
    for name in ("blobs", "blob_fields", "authorizations", "legacy", "creation"):
        assert said[name] == "BadArgument unsupported", name
    assert said["other_from"] == said["no_nonce"] == "BadArgument bad_transaction"
    assert said["hash"] == said["key"] == said["bytes"] == "NoKey no_key"


def test_a_call_is_bought_by_our_payer_and_by_their_client(programs: Programs, libraries: str, tenant: Tenant) -> None:
    agent = tenant.agent(rule("approved-addresses", addresses=[SELLER], mode="whitelist"))
    with running_evm_node("py-evm") as node, running_seller(node, USDC, SELLER, 20_000) as seller:
        node.rpc("dev_fund", agent.evm_address, "1000000", "USDC")

        said = programs(libraries, agent).last_line("x402_purchase", seller.url)

        assert (said["unpaid"], said["again"], said["on_a_loop"]) == (402, 402, 200)
        assert said["paid"] == said["theirs"] == [200, {"quote": "A penny saved."}]
        assert len(seller.settled) == 3


def test_a_transaction_of_solders_is_signed_as_it_was_asked_for(
    programs: Programs, libraries: str, agent: Agent, solana_node: SolanaNode
) -> None:
    blockhash = solana_node.rpc("getLatestBlockhash")["value"]["blockhash"]

    said = programs(libraries, agent).last_line("solana_wallet", blockhash, str(SOLANA_CHAIN))

    assert said == {
        "order": [True, "7"],
        "signed": True,
        "same": True,
        "token": True,
        "nobody": True,
        "sponsored": [True, True],
        "unread": "solana_unsupported",
    }


def test_tools_of_ten_lines_pay_and_say_what_to_do(
    programs: Programs, libraries: str, tenant: Tenant, evm_node: EvmNode
) -> None:
    agent = tenant.agent(rule("spending-limit", maxPerTransaction="100"))
    evm_node.fund(agent.evm_address)

    said = programs(libraries, agent)
    said.environment["ASSET"] = "evm:native"
    told = said.last_line("tools", str(SDK / "examples"), ADDRESS)

    assert told["langchain"][0].startswith("paid: 0x")
    assert told["langchain"][1].startswith("Refused: policy_refused:")
    # The same name for another amount: the tool of the other framework is told that it is taken.
    assert told["agents"].startswith("NameTaken: idempotency_mismatch: ")
    assert told["schema"] == ["amount", "payment_name", "to"]
    assert told["described"]


def test_the_agent_of_ten_lines_pays_waits_and_says_why_not(
    programs: Programs, libraries: str, tenant: Tenant, evm_node: EvmNode
) -> None:
    agent = tenant.agent(
        rule("spending-limit", maxPerTransaction="100000000"), rule("auto-approve-threshold", threshold="50000000")
    )
    evm_node.fund(agent.evm_address)
    program = programs(libraries, agent)

    def pays(name: str, amount: str) -> tuple[int, str]:
        ended = program.run(Path(SDK / "examples/agent.py"), name, ADDRESS, amount, ASSET="evm:native", WAIT="1")
        return ended.returncode, ended.stdout + ended.stderr

    assert pays("invoice-1", "42.50") == (0, "confirmed\n")
    assert pays("invoice-2", "80")[1].startswith("a person decides: ")
    refused, why = pays("invoice-3", "200")
    assert (refused, "not paid: policy_refused: " in why, "exceeds the limit" in why) == (1, True, True)


WORST = hex(2**80)


def lies(method: str, _: list[Any], result: Any) -> Any:
    """A node that names another chain, another nonce, and gas and fees beyond all measure."""
    if method == "eth_getBlockByNumber":
        return result | {"baseFeePerGas": WORST}
    told = {"eth_chainId": "0x1", "eth_getTransactionCount": "0x3e8", "eth_estimateGas": hex(2**24)}
    return (told | {"eth_maxPriorityFeePerGas": WORST, "eth_gasPrice": WORST}).get(method, result)


def test_a_node_that_lies_moves_no_payment_to_another_chain_and_pays_nobodys_fees(
    programs: Programs, libraries: str, tenant: Tenant, evm_node: EvmNode
) -> None:
    agent = tenant.agent()
    evm_node.fund(agent.evm_address)
    with running_lying_node(evm_node.url) as liar:
        liar.lie = lies
        said = programs(libraries, agent).last_line("lied_to", liar.url, ADDRESS, str(CHAIN_ID))

    # The control: the libraries were lied to.
    assert (said["chain"], said["estimated"]) == (1, 2**24)
    mined = evm_node.rpc("eth_getTransactionByHash", said["hash"])
    assert (int(mined["chainId"], 16), int(mined["nonce"], 16), int(mined["gas"], 16) < 2**17) == (CHAIN_ID, 0, True)
    # An account signs for the chain that it is told, unless it was made for one.
    assert said["any_chain"] == ["BadArgument fee_above_cap", "signed"]
    assert said["one_chain"] == ["BadArgument bad_transaction"] * 2


def test_no_adapter_shows_the_token_in_a_repr_a_pickle_a_log_or_a_traceback_with_its_locals(
    programs: Programs, libraries: str, tenant: Tenant, evm_node: EvmNode
) -> None:
    agent = tenant.agent(rule("spending-limit", maxPerTransaction="100"))
    evm_node.fund(agent.evm_address)

    # What runs the program looks for the token in all that it prints.
    said = programs(libraries, agent).last_line("shown", evm_node.url, ADDRESS)

    assert (said["shown"], any(said["copied"]), said["held"]) == (8, False, True)
    assert said["web3"] == ["Refused", True]
    assert said["account"][0] in ("Refused", "BadArgument")
