"""The adapters with the libraries that they are for, in the lowest and the newest versions, on the local chain."""

from collections.abc import Callable
from typing import Any

import pytest
from solders.keypair import Keypair

from tests.fixtures.callers import ADDRESS, Agent, Tenant, rule
from tests.fixtures.server import SOLANA_CHAIN
from tests.outside.evm_node import CHAIN_ID, EvmNode, running_evm_node
from tests.outside.lying_node import running_lying_node
from tests.outside.seller import running_seller
from tests.outside.solana_node import SolanaNode
from tests.sdk.typescript.built import SDK, SETS
from tests.sdk.typescript.conftest import Programs

pytestmark = pytest.mark.parametrize("libraries", SETS)

USDC, SELLER = "0x" + "05dc" * 10, "0x" + "51" * 20
Scripts = Callable[[str, Agent], Programs]
LIMITS = (rule("spending-limit", maxPerTransaction="100"), rule("auto-approve-threshold", threshold="10"))
# What an account and a signer refuse before they ask anybody.
UNASKED = ("creation", "blobs", "handed_over", "legacy", "listed")


def test_viem_and_ethers_pay_by_the_vault_and_five_at_once_are_mined(
    scripts: Scripts, libraries: str, tenant: Tenant, evm_node: EvmNode
) -> None:
    agent = tenant.agent(*LIMITS)
    evm_node.fund(agent.evm_address)

    said = scripts(libraries, agent).result_of("evm", evm_node.url, ADDRESS, str(CHAIN_ID))

    assert (said["chain"], said["own"], said["node"]) == (hex(CHAIN_ID), agent.evm_address, True)
    assert (said["viem"], said["ethers"]) == (["success"] * 5, [1] * 5)
    assert (said["account"], said["counted"]) == (["success"] * 2, ["success"] * 5)
    assert (said["signer"], said["managed"]) == (1, [1] * 5)
    # The number that viem and ethers know, and our word.
    assert said["viem_ends"] == {
        "refused": ["TransactionExecutionError", 4001, "policy_refused"],
        "waiting": ["TransactionExecutionError", -32002, "approval_required"],
        **{name: ["TransactionExecutionError", 4200, "unsupported"] for name in ("creation", "legacy", "listed")},
    }
    assert said["ethers_ends"]["refused"] == ["ACTION_REJECTED", 4001, "policy_refused"]
    assert said["ethers_ends"]["waiting"][1:] == [-32002, "approval_required"]
    assert said["ethers_ends"]["message"][1:] == [4200, "unsupported"]
    wrong = {name: one[1:] for name, one in said["raw"].items()}
    assert wrong == {
        **{name: [-32000, "bad_transaction"] for name in ("other_from", "other_chain")},
        **{name: [4200, "unsupported"] for name in ("blobs", "handed_over", "personal_sign", "eth_sign")},
        **{name: [4200, "unsupported"] for name in ("eth_signTransaction", "wallet_sendCalls", "nothing")},
        "others_document": [-32000, "bad_document"],
    }
    for ends in (said["account_ends"], said["signer_ends"]):
        found = {name: one[2] for name, one in ends.items()}
        assert (found["refused"], found["waiting"]) == ("policy_refused", "approval_required")
        assert {name: found[name] for name in UNASKED} == dict.fromkeys(UNASKED, "unsupported")
        assert (found["other_from"], found["no_nonce"]) == ("bad_transaction", "bad_transaction")
    assert said["account_ends"]["hash"][2] == "unsupported"
    # An account of the lowest viem has no such method at all.
    handed_over = said["account_ends"]["authorization"]
    assert handed_over == (["TypeError", None, None] if libraries == "lowest" else ["BadArgument", None, "unsupported"])


def test_documents_and_messages_are_signed_as_viem_and_ethers_read_them(
    scripts: Scripts, libraries: str, agent: Agent
) -> None:
    said = scripts(libraries, agent).result_of("documents", str(CHAIN_ID))

    assert said == {name: [True] * 3 for name in ("documents", "texts", "bytes")} | {"own": agent.evm_address}


def test_transactions_of_solanas_libraries_are_signed_as_they_were_asked_for(
    scripts: Scripts, libraries: str, tenant: Tenant, solana_node: SolanaNode
) -> None:
    agent = tenant.agent(rule("auto-approve-threshold", threshold="100"))
    blockhash = solana_node.rpc("getLatestBlockhash")["value"]["blockhash"]

    said = scripts(libraries, agent).result_of("solana", blockhash, str(SOLANA_CHAIN), str(Keypair().pubkey()))

    assert said == {
        "order": [True, "7", SOLANA_CHAIN],
        "web3js": [True] * 5,
        "legacy": True,
        "sponsored": [True, True],
        "token": True,
        "nobody": True,
        "wrapped": [True] * 21,
        "unread": "BadArgument solana_unsupported",
        "unreadable": ["BadArgument bad_transaction"] * 6,
        "kit": [True] * 5,
        "kit_lifetime": True,
        "kit_waiting": "Waiting approval_required",
    }


def test_a_call_is_bought_by_our_payer_and_by_their_client(scripts: Scripts, libraries: str, tenant: Tenant) -> None:
    agent = tenant.agent(rule("approved-addresses", addresses=[SELLER], mode="whitelist"))
    with running_evm_node("py-evm") as node, running_seller(node, USDC, SELLER, 20_000) as seller:
        node.rpc("dev_fund", agent.evm_address, "1000000", "USDC")

        said = scripts(libraries, agent).result_of("purchase", seller.url)

        assert (said["unpaid"], said["again"]) == (402, 402)
        assert said["paid"] == said["theirs"] == [200, {"quote": "A penny saved."}]
        assert len(seller.settled) == 2


def test_the_agent_of_ten_lines_pays_waits_and_says_why_not(
    scripts: Scripts, libraries: str, tenant: Tenant, evm_node: EvmNode
) -> None:
    agent = tenant.agent(
        rule("spending-limit", maxPerTransaction="100000000"), rule("auto-approve-threshold", threshold="50000000")
    )
    evm_node.fund(agent.evm_address)
    program = scripts(libraries, agent)

    def pays(name: str, amount: str) -> tuple[int, str]:
        agent_program = (SDK / "examples/agent.mjs").read_text()
        ended = program.run(agent_program, name, ADDRESS, amount, ASSET="evm:native", WAIT="1")
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
    if method == "eth_fillTransaction":
        # Newer nodes answer all at once, and newer libraries ask for it.
        worst = dict.fromkeys(("gas", "maxFeePerGas", "maxPriorityFeePerGas"), WORST)
        return result | {"tx": result["tx"] | worst | {"chainId": "0x1", "nonce": "0x3e8"}}
    told = {"eth_chainId": "0x1", "eth_getTransactionCount": "0x3e8", "eth_estimateGas": WORST}
    return (told | {"eth_maxPriorityFeePerGas": WORST, "eth_gasPrice": WORST}).get(method, result)


def test_a_node_that_lies_moves_no_payment_to_another_chain_or_place(
    scripts: Scripts, libraries: str, agent: Agent, evm_node: EvmNode
) -> None:
    evm_node.fund(agent.evm_address)
    with running_lying_node(evm_node.url) as liar:
        liar.lie = lies
        said = scripts(libraries, agent).result_of("lied_to", liar.url, ADDRESS, str(CHAIN_ID))

    # By the provider nonce, fees and gas are the service's: the payment is mined as if nobody had lied.
    assert (said["provider"], said["chain"], said["estimated"]) == ("confirmed", hex(CHAIN_ID), WORST)
    # An account and a signer sign for the chain that their library was told, unless they were made for one.
    for library in ("viem", "ethers"):
        assert said[f"{library}_any_chain"] == [1, 1000, "BadArgument fee_above_cap", "signed"], library
        assert said[f"{library}_one_chain"] == [1, 1000, *["BadArgument bad_transaction"] * 2], library
