"""The callers that see what can be sent: a signature is as good as the act itself to anyone who holds it.

Seen by the agent that asked, and by those who may sign or approve: the tenant's key, its owners and admins. Nobody else
who reads, integrations included, finds signed bytes or a signature in a record.
"""

from typing import Any

import msgspec
from msgspec import UNSET

from custody.chains.families import of_kind
from custody.identity.roles import ADMINS
from custody.kit.callers import AgentCaller, Caller, SessionCaller, TenantCaller
from custody.kit.paging import Listed
from custody.transactions.types import ListedTransaction, Transaction, TransactionPage


def sees_signatures(caller: Caller) -> bool:
    """Say whether the caller is the agent itself, or may sign or approve."""
    if isinstance(caller, SessionCaller):
        return caller.role in ADMINS
    # An app client is a tenant caller too, and no decider.
    return isinstance(caller, AgentCaller) or type(caller) is TenantCaller


def shown_to[T: Transaction | TransactionPage | Listed[ListedTransaction]](caller: Caller, found: T) -> T:
    """The same without what this caller could send."""
    if sees_signatures(caller):
        return found
    shown: Any
    if isinstance(found, Transaction):
        shown = _without(found)
    elif isinstance(found, TransactionPage):
        shown = msgspec.structs.replace(found, transactions=[_without(one) for one in found.transactions])
    else:
        shown = msgspec.structs.replace(found, rows=[_without(one) for one in found.rows])
    return shown  # type: ignore[no-any-return]


def _without[T: Transaction | ListedTransaction](one: T) -> T:
    # Where the hash is the signature, the message stands beside it; once it was sent everybody has both.
    hashed = None if hash_is_secret(one.kind, one.status, broadcast=one.broadcast) else one.tx_hash
    if one.signature is UNSET:
        return msgspec.structs.replace(one, tx_hash=hashed)
    whole = {"finalized_tx_hex": UNSET} if isinstance(one, Transaction) else {}
    return msgspec.structs.replace(one, signature=None, signed_transaction=None, tx_hash=hashed, **whole)


def hash_is_secret(kind: str, status: str, *, broadcast: bool) -> bool:
    """Say whether a transaction's hash would let somebody send it."""
    return of_kind(kind).hash_is_signature and status == "signed" and not broadcast
