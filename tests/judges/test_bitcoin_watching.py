"""Wallets that only watch, made of our descriptors: other libraries find our addresses and build our PSBTs."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import bdkpython as bdk
import pytest
from embit.descriptor import Descriptor
from embit.descriptor.checksum import add_checksum
from embit.networks import NETWORKS as THEIR_NETWORKS

from tests.chains.bitcoin.wallet import TYPES
from tests.fixtures.bitcoin import SOMEBODY, THEIRS, address_of, coin, script_of
from tests.fixtures.callers import Agent, Tenant
from tests.fixtures.people import Person
from tests.fixtures.server import Service
from tests.outside.processes import PROJECT
from tests.routes.vault.bitcoin import LISTED, address, sign_psbt
from tests.routes.vault.transfers import with_signer

kernel = pytest.importorskip("pbk", reason="py-bitcoinkernel has no wheel for this interpreter or machine")
NETWORKS = ("mainnet", "testnet", "signet", "regtest")
DESCRIPTORS = ("descriptor", "receiveDescriptor", "changeDescriptor", "addressDescriptor")
SOMEBODYS = bdk.Script(SOMEBODY.data)


@pytest.fixture
def payer(as_owner: Person, tenant: Tenant) -> Agent:
    return with_signer(as_owner, tenant.agent(LISTED), "sign_transaction")


def read(text: str, network: str = "regtest") -> bdk.Descriptor:
    """A descriptor as BDK reads it, which looks at its checksum."""
    return bdk.Descriptor(text, bdk.NetworkKind.MAIN if network == "mainnet" else bdk.NetworkKind.TEST)


def theirs(network: str) -> bdk.Network:
    return getattr(bdk.Network, {"mainnet": "BITCOIN"}.get(network, network.upper()))


@pytest.mark.parametrize("network", NETWORKS)
def test_two_libraries_derive_our_addresses_from_a_descriptor(network: str, tenant: Tenant) -> None:
    agent = tenant.agent()
    for kind in TYPES:
        for change, index in ((0, 0), (0, 7), (1, 0), (1, 2**31 - 1)):
            shown = address(agent, f"bitcoin:{network}:{kind}:2:{change}:{index}")
            branches = read(shown["descriptor"], network).to_single_descriptors()
            alone = read(shown["changeDescriptor" if change else "receiveDescriptor"], network)
            one, both = (Descriptor.from_string(shown[name]) for name in ("addressDescriptor", "descriptor"))

            found = [
                str(branches[change].derive_address(index, theirs(network))),
                str(alone.derive_address(index, theirs(network))),
                str(read(shown["addressDescriptor"], network).derive_address(0, theirs(network))),
                both.derive(index, branch_index=change).address(THEIR_NETWORKS[THEIRS[network]]),
                one.address(THEIR_NETWORKS[THEIRS[network]]),
            ]

            assert found == [shown["address"]] * 5
            assert [add_checksum(shown[name].partition("#")[0]) for name in DESCRIPTORS] == [
                shown[name] for name in DESCRIPTORS
            ]
            assert shown["accountXpub"][:4] == ("xpub" if network == "mainnet" else "tpub")
            assert shown["accountXpub"] in shown["descriptor"]


def test_a_descriptor_with_another_checksum_is_refused(tenant: Tenant) -> None:
    text = address(tenant.agent())["descriptor"]
    other = text[:-1] + ("q" if text[-1] != "q" else "p")

    with pytest.raises(bdk.DescriptorError):
        read(other)


def fund(wallet: bdk.Wallet, *scripts: Any) -> Any:
    """The same wallet, with a coin of 60,000 sat at each script; gives the coins back."""
    coins = [coin(script, 60_000, f"watched {script.data.hex()}") for script in scripts]
    wallet.apply_unconfirmed_txs([bdk.UnconfirmedTx(tx=bdk.Transaction(one.serialize()), last_seen=1) for one in coins])
    return coins


def build(wallet: bdk.Wallet, amount: int) -> str:
    """A PSBT of the wallet that pays somebody, with its change."""
    builder = bdk.TxBuilder().add_recipient(SOMEBODYS, bdk.Amount.from_sat(amount))
    return builder.fee_absolute(bdk.Amount.from_sat(400)).finish(wallet).serialize()


def verdicts_of_core(raw: bytes, coins: list[Any]) -> list[bool]:
    """Ask Bitcoin Core's consensus code whether it takes each input of a transaction that spends these coins."""
    transaction = kernel.Transaction(raw)
    spent = {one.txid(): one.vout[0] for one in coins}
    order = [spent[bytes.fromhex(str(one.previous_output.txid))] for one in bdk.Transaction(raw).input()]
    outputs = [kernel.TransactionOutput(kernel.ScriptPubkey(one.script_pubkey.data), one.value) for one in order]
    computed = kernel.script.PrecomputedTransactionData(transaction, outputs)
    flags = kernel.ScriptVerificationFlags.ALL
    return [
        kernel.ScriptPubkey(one.script_pubkey.data).verify(one.value, transaction, computed, place, flags)
        for place, one in enumerate(order)
    ]


@pytest.mark.parametrize("single", [False, True], ids=["of the account", "of one address"])
@pytest.mark.parametrize("kind", TYPES)
def test_a_watching_wallet_builds_a_psbt_that_we_sign_and_core_accepts(kind: str, single: bool, payer: Agent) -> None:
    scope = f"bitcoin:regtest:{kind}:0:0:0"
    shown = address(payer, scope)
    store = bdk.Persister.new_in_memory()
    if single:
        wallet = bdk.Wallet.create_single(read(shown["addressDescriptor"]), theirs("regtest"), store)
    else:
        wallet = bdk.Wallet.create_from_two_path_descriptor(read(shown["descriptor"]), theirs("regtest"), store)
    coins = fund(wallet, script_of(shown["address"]))

    answer = sign_psbt(payer, build(wallet, 20_000), scope, finalize=True)

    assert answer.status_code == 200, answer.text
    data = answer.json()["data"]
    assert verdicts_of_core(bytes.fromhex(data["finalizedTxHex"]), coins) == [True]
    kept = payer.ok("GET", f"/vault/{payer.id}/transactions/{data['transactionId']}")
    # What comes back to the wallet is known as change, so it counts nothing.
    assert [(one["kind"], one["amount"]) for one in kept["effects"]] == [("transfer", "20000"), ("fee", "400")]


def test_coins_of_two_addresses_are_signed_by_two_requests_and_finished_by_the_wallet(payer: Agent) -> None:
    first, second = (address(payer, f"bitcoin:regtest:p2wpkh:0:0:{index}") for index in (0, 1))
    network, store = theirs("regtest"), bdk.Persister.new_in_memory()
    wallet = bdk.Wallet(read(first["receiveDescriptor"]), read(first["changeDescriptor"]), network, store)
    wallet.reveal_addresses_to(bdk.KeychainKind.EXTERNAL, 1)
    coins = fund(wallet, script_of(first["address"]), script_of(second["address"]))
    psbt = build(wallet, 90_000)

    for shown in (first, second):
        answer = sign_psbt(payer, psbt, shown["walletScope"])
        assert answer.status_code == 200, answer.text
        psbt = answer.json()["data"]["signedPsbtBase64"]

    ended = bdk.Psbt(psbt).finalize()
    assert ended.errors is None
    assert verdicts_of_core(bytes(ended.psbt.extract_tx().serialize()), coins) == [True, True]


def test_the_program_of_the_page_builds_a_psbt_that_one_request_signs(
    service: Service, payer: Agent, tmp_path: Path
) -> None:
    page = (PROJECT / "docs/bitcoin.md").read_text()
    _, program = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    shown = address(payer)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "SERVICE_URL": service.url,
        "AGENT": payer.id,
        "SERVICE_AGENT_TOKEN": payer.headers["Authorization"].removeprefix("Bearer "),
        "FUNDING": str(coin(script_of(shown["address"]), 100_000, "watching page")),
        "TO": address_of(SOMEBODY),
    }

    ended = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr
    answer = sign_psbt(payer, ended.stdout.strip(), finalize=True)
    assert (answer.status_code, answer.json()["data"]["feeSats"]) == (200, "500"), answer.text
    assert [name for name in DESCRIPTORS if name not in page] == []
