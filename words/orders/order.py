"""One order, whether it waits for a person, was decided, or is only tried out; and what is known around it. Pure."""

from dataclasses import dataclass, field

from words.shapes import Approval, Budget, Effect, PolicyResult, TokenFunds, Transaction, Votes


@dataclass(frozen=True)
class Order:
    """An agent's order."""

    agent_id: str
    kind: str
    chain_id: int | None
    to_address: str | None
    value: str | None
    effects: list[Effect]
    policy_results: list[PolicyResult]
    agent_name: str = ""
    tx_id: str = ""
    status: str = ""
    asked_at: str | None = None
    expires_at: str | None = None
    release_at: str | None = None
    digest: str = ""
    votes: Votes | None = None
    caip2: str | None = None


@dataclass(frozen=True)
class Known:
    """Findings about the context of an order; empty where it found nothing.

    `names` are addresses (as in effects; EVM ones in lower case) with what they are called here: an agent of this
    tenant, or an entry of an approved list. `past` are earlier transactions of the agent with the same destination,
    newest first, None while they are not known. `data` is what was signed or is to be: calldata, typed data, message.
    Lists that the agent itself set give no names: their addresses are `self_listed`, and their rules `own_rules`.
    `names_known` says that an address without a name is a stranger and not only one that could not be looked up;
    `past_complete` that there is no earlier past than the one looked through, which was `looked_through` orders, of
    which `past` are only those with the same parties; `searched` says which orders these are. `frozen` is a sentence,
    empty if it is not.
    """

    names: dict[str, str] = field(default_factory=dict)
    self_listed: frozenset[str] = frozenset()
    own_rules: frozenset[str] = frozenset()
    tokens: dict[str, TokenFunds] = field(default_factory=dict)
    budgets: list[Budget] = field(default_factory=list)
    past: list[Transaction] | None = None
    data: object = None
    trouble: str = ""
    # The same for a person about to decide, in one fixed sentence; empty if nothing is in doubt.
    doubt: str = ""
    names_known: bool = False
    past_complete: bool = True
    looked_through: int = 0
    searched: str = "orders to the same place"
    frozen: str = ""
    transaction: Transaction | None = None


def of_approval(item: Approval) -> Order:
    """The order behind an item of the queue."""
    return Order(
        item.agent_id,
        item.kind,
        item.chain_id,
        item.to_address,
        item.value,
        [*item.effects],
        [*item.policy_results],
        agent_name=item.agent_name,
        tx_id=item.tx_id,
        status=item.status,
        asked_at=item.requested_at,
        expires_at=item.expires_at,
        release_at=item.release_at,
        digest=item.digest,
        votes=item.votes,
    )


def of_transaction(transaction: Transaction, agent_name: str = "") -> Order:
    """The order behind a transaction."""
    return Order(
        transaction.agent_id,
        transaction.kind,
        transaction.chain_id,
        transaction.to_address,
        transaction.value,
        transaction.effects,
        transaction.policy_results,
        agent_name=agent_name,
        tx_id=transaction.id,
        status=transaction.status,
        asked_at=transaction.created_at,
        caip2=transaction.caip2,
    )
