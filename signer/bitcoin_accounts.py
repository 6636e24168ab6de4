"""Addresses of agents: the root is made when the first is asked for, an account key with the account's first.

An account's public half is kept, so that an order is judged without opening the root.
"""

from typing import Any, Final

import msgspec

from custody.chains.bitcoin.addresses import address_of
from custody.chains.bitcoin.keys import account_of, child, extended_key
from custody.chains.bitcoin.scope import parse_scope
from custody.chains.bitcoin.scripts import script_of
from custody.chains.bitcoin.types import Account, WalletScope
from custody.kit.errors import Forbidden
from custody.kit.logs import logger
from custody.kit.refs import AgentRef
from custody.protocol.refusals import BadProof, TokenRevoked
from custody.protocol.signer.bitcoin import FindBitcoinAddress, FoundBitcoinAddress
from custody.protocol.signer.order_refusals import AgentAbsent, KeyTampered
from custody.protocol.signer.refusals import TooManyAccounts
from custody.worker.audited import vet
from custody.worker.call import Call
from custody.worker.proven import ProvenAgent, ProvenTenant
from custody.worker.sealing import Context, Tampered
from signer.agents import make_wallet
from signer.bitcoin_seals import ACCOUNT_MAC, account_content, check
from signer.context import Signer
from signer.ledger import PsbtFacts
from signer.wallets.bitcoin import BITCOIN_KEYS

log = logger(__name__)
# Four types on four networks, and some accounts of each.
MAX_ACCOUNTS: Final = 128
_READ = "SELECT * FROM bitcoin_account_read($1, $2, $3)"
_LOCK = "SELECT lock_agent($1, $2)"
_ADD_WALLET = (
    "INSERT INTO wallets (tenant_id, agent_id, family, address, created_at) VALUES ($1, $2, $3, $4, service_now())"
)
_ADD_ROOT = (
    "INSERT INTO sealed (tenant_id, owner_kind, owner, purpose, key_version, blob) VALUES ($1, 'agent', $2, $3, $4, $5)"
)
_TELL = "SELECT audit_append($1, $2, $3, 'agent', $4, $5, $6)"
_ADD_ACCOUNT = (
    "INSERT INTO bitcoin_accounts (tenant_id, agent_id, account, public_key, chain_code, mac) "
    "VALUES ($1, $2, $3, $4, $5, $6)"
)


async def find(
    signer: Signer, message: FindBitcoinAddress, call: Call[ProvenAgent] | Call[ProvenTenant]
) -> FoundBitcoinAddress:
    """One address of an agent; what it follows from is made where it is not there yet."""
    caller = call.caller
    if isinstance(caller, ProvenAgent) and caller.agent != message.agent:
        raise Forbidden("An agent may ask only for addresses of its own wallet.", code="other_agent")
    scope, ref = parse_scope(message.wallet_scope), AgentRef(caller.tenant, message.agent)
    async with signer.pool.acquire() as connection:
        row = await connection.fetchrow(_READ, ref.tenant, ref.agent, scope.account_name)
    _admit(caller, row)
    if row["public_key"] is None:
        async with signer.pool.acquire() as connection, connection.transaction():
            await connection.execute(_LOCK, ref.tenant, ref.agent)
            # Once more under the lock: of two who ask at once, the second finds what the first made.
            row = await connection.fetchrow(_READ, ref.tenant, ref.agent, scope.account_name)
            _admit(caller, row)
            account, fingerprint = await _make(signer, connection, ref, scope, row, call)
    else:
        account = _read_account(signer, ref, str(row["incarnation"]), scope.account_name, row)
        fingerprint = row["fingerprint"]
    key = child(account, scope.change, scope.index)
    return FoundBitcoinAddress(
        wallet_scope=scope.text,
        address=address_of(script_of(scope.address_type, key), scope.network) or "",
        address_type=scope.address_type,
        network=scope.network.name,
        public_key=key.hex(),
        derivation_path=scope.path,
        fingerprint=fingerprint or "",
        account_xpub=extended_key(account, scope),
    )


def _admit(caller: ProvenAgent | ProvenTenant, row: Any) -> None:
    if row is None:
        # A token of an agent that is gone proves nothing any more.
        raise BadProof if isinstance(caller, ProvenAgent) else AgentAbsent
    if isinstance(caller, ProvenAgent) and (caller.incarnation, caller.epoch) != (
        str(row["incarnation"]),
        row["token_epoch"],
    ):
        raise TokenRevoked


async def _make(
    signer: Signer, connection: Any, ref: AgentRef, scope: WalletScope, row: Any, call: Call[Any]
) -> tuple[Account, str]:
    """The account, made where it is absent, and the fingerprint of the root, made where that is."""
    incarnation, name = str(row["incarnation"]), scope.account_name
    if row["public_key"] is not None:
        return _read_account(signer, ref, incarnation, name, row), row["fingerprint"]
    if row["accounts"] >= MAX_ACCOUNTS:
        raise TooManyAccounts
    blob, fingerprint, family = row["blob"], row["fingerprint"], BITCOIN_KEYS.family
    context = Context(ref.tenant, "agent", ref.agent, family, incarnation)
    if (blob is None) is not (fingerprint is None):
        # One without the other: a new root in place of one that is lost would lead people to fund what it cannot spend.
        raise KeyTampered
    if blob is None:
        wallet = make_wallet(signer, context)
        blob, fingerprint = wallet.blob, wallet.address
        await connection.execute(_ADD_WALLET, ref.tenant, ref.agent, family, fingerprint)
        await connection.execute(_ADD_ROOT, ref.tenant, ref.agent, family, signer.sealer.key_version, blob)
        actor = ("agent", ref.agent) if isinstance(call.caller, ProvenAgent) else ("system", call.caller.principal)
        about = msgspec.json.encode({"family": family, "fingerprint": fingerprint}).decode()
        await connection.execute(_TELL, *actor, vet("wallet.created"), ref.agent, about, call.origin_row)
    try:
        root = BITCOIN_KEYS.open(signer.sealer.open(blob, context))
        if BITCOIN_KEYS.address(root) != fingerprint:
            raise Tampered
    except (Tampered, ValueError):
        log.error("key refused", extra={"tenant": ref.tenant, "agent": ref.agent})
        raise KeyTampered from None
    account = account_of(root, scope.account_path)
    content = account_content(ref.tenant, ref.agent, incarnation, name, account.public_key, account.chain_code)
    mac = signer.sealer.mac(ACCOUNT_MAC, ref.tenant, content)
    await connection.execute(_ADD_ACCOUNT, ref.tenant, ref.agent, name, account.public_key, account.chain_code, mac)
    return account, fingerprint


def _read_account(signer: Signer, ref: AgentRef, incarnation: str, name: str, row: Any) -> Account:
    """Read the account of a row; KeyTampered unless it is this agent's."""
    found = PsbtFacts(row["public_key"], row["chain_code"], row["mac"], None, None)
    check(signer.sealer, ref, incarnation, name, found)
    return Account(found.public_key, found.chain_code)
