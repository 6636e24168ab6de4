"""An address of an agent's Bitcoin wallet, with what a wallet that only watches is made of."""

from typing import Annotated

import msgspec

from custody.chains.bitcoin.descriptors import of_account, of_address
from custody.chains.bitcoin.scope import parse_scope
from custody.kit.callers import AgentCaller, TenantCaller
from custody.kit.described import described
from custody.kit.refs import AgentRef
from custody.kit.shapes import WalletScopeText
from custody.ports import Ports
from custody.protocol.signer.bitcoin import FindBitcoinAddress, FoundBitcoinAddress


class AddressQuery(msgspec.Struct, frozen=True, rename="camel"):
    """The address that is asked for."""

    wallet_scope: Annotated[WalletScopeText, described("`bitcoin:<network>:<type>:<account>:<change>:<index>`.")]


class BitcoinAddress(FoundBitcoinAddress, frozen=True, rename="camel", kw_only=True):
    """One address, the key that spends from it, and output descriptors (BIP-380) of it and of its whole account."""

    descriptor: Annotated[
        str, described("All addresses of the account, for receiving and change (BIP-389), such as `wpkh(.../<0;1>/*)`.")
    ]
    receive_descriptor: Annotated[
        str, described("The addresses of the account for receiving alone, for wallets that take two descriptors.")
    ]
    change_descriptor: Annotated[str, described("The addresses of the account for change alone.")]
    address_descriptor: Annotated[
        str, described("This address alone: a wallet made of it builds PSBTs that one request signs.")
    ]


async def get(ports: Ports, caller: TenantCaller | AgentCaller, ref: AgentRef, query: AddressQuery) -> BitcoinAddress:
    """The address of a scope; the first that is asked for makes the agent's root."""
    asked = await ports.workers.ask(FindBitcoinAddress(ref.agent, query.wallet_scope), caller)
    found = asked.answer
    scope = parse_scope(found.wallet_scope)
    account, receive, change = (
        of_account(scope, found.fingerprint, found.account_xpub, branch) for branch in ("<0;1>", "0", "1")
    )
    return BitcoinAddress(
        **msgspec.structs.asdict(found),
        descriptor=account,
        receive_descriptor=receive,
        change_descriptor=change,
        address_descriptor=of_address(scope, found.fingerprint, bytes.fromhex(found.public_key)),
    )
