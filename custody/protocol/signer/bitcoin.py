"""Addresses of an agent's Bitcoin wallet."""

from typing import Annotated

import msgspec

from custody.chains.bitcoin.refusals import BadWalletScope
from custody.identity.roles import READERS
from custody.kit.described import described
from custody.kit.shapes import AgentId, WalletScopeText
from custody.protocol.command import AGENT, TENANT, Command, command, refuses
from custody.protocol.signer import order_refusals, refusals


class FoundBitcoinAddress(msgspec.Struct, frozen=True, rename="camel"):
    """One address, the key that spends from it, where that key lies below the agent's root, and its account."""

    wallet_scope: Annotated[
        str, described("The scope in its one spelling: `bitcoin:<network>:<type>:<account>:<change>:<index>`.")
    ]
    address: Annotated[str, described("Address for payments.")]
    address_type: Annotated[str, described("`p2wpkh`, `p2tr`, `p2sh-p2wpkh` or `p2pkh`.")]
    network: Annotated[str, described("`mainnet`, `testnet`, `signet` or `regtest`.")]
    public_key: Annotated[
        str, described("The compressed public key in hex, 33 bytes; of `p2tr` the internal key, before its tweak.")
    ]
    derivation_path: Annotated[str, described("The path below the agent's root, such as `m/84'/0'/0'/0/3`.")]
    fingerprint: Annotated[str, described("The fingerprint of the root, for `bip32Derivs` of a PSBT, 8 hex digits.")]
    account_xpub: Annotated[
        str,
        described(
            "The public key of the account (BIP-32), `xpub...` on mainnet and `tpub...` elsewhere. Anyone who has it "
            "sees every address of the account, and spends from none."
        ),
    ]


@command("signer", proofs=TENANT | AGENT, roles=READERS, repeatable=True, audit=("wallet.created",))
@refuses(order_refusals.AgentAbsent, BadWalletScope, order_refusals.KeyTampered, refusals.TooManyAccounts)
class FindBitcoinAddress(Command[FoundBitcoinAddress], frozen=True):
    """One address of an agent; the first one asked for makes its root, and the first of an account its key."""

    agent: AgentId
    wallet_scope: WalletScopeText
