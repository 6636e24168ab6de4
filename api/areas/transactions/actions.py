"""Wallet actions: orders as what was asked for, where the transaction may name only a contract."""

from typing import Annotated, Literal

import msgspec

from custody.kit.described import Id, Instant, described
from custody.kit.errors import NotFound
from custody.policies.types import Result

ActionStatus = Literal["pending_approval", "rejected", "signed", "broadcast", "failed"]


class ActionAbsent(NotFound):
    """No such wallet action; a transaction of another route is found among the agent's transactions."""


class TransferAction(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A transfer and what became of it."""

    id: Annotated[Id, described("The action's id, which is that of its transaction.")]
    action_id: Annotated[Id, described("The same as `id`.")]
    type: Annotated[Literal["transfer"], described("Kind of action.")] = "transfer"
    agent_id: Annotated[str, described("The agent.")]
    status: Annotated[ActionStatus, described("Progress; stays `broadcast` once it is final on the chain.")]
    chain_id: Annotated[int, described("The chain.")]
    caip2: Annotated[str, described("The chain by its CAIP-2 name, such as `eip155:8453`.")]
    from_: Annotated[str | None, described("The agent's wallet.")] = msgspec.field(name="from")
    to: Annotated[str, described("Recipient of the amount.")]
    value: Annotated[str, described("The amount in wei, or in the smallest unit of the token.")]
    token: Annotated[str, described("`native`, or the address of the ERC-20 token.")]
    broadcast: Annotated[bool, described("True to have the service send the transaction to a node.")]
    reference_id: Annotated[str | None, described("The caller's own reference.")]
    tx_id: Annotated[Id, described("The transaction, with its bytes and its receipt.")]
    tx_hash: Annotated[str | None, described("The hash of the transaction, once it is signed.")]
    policy_results: Annotated[list[Result], described("Result of each rule for the transfer.")]
    created_at: Annotated[Instant, described("Time of the request.")]


class Found(msgspec.Struct, frozen=True):
    """An action, and why its order is in its state."""

    action: TransferAction
    detail: str | None
