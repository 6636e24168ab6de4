"""Questions and answers before anything is done."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from custody.kit.described import Id, described
from custody.policies.kinds import PolicyRule
from custody.policies.types import Decision, Result
from custody.protocol.signer.simulation import Fee, Remaining

Need = Literal["approval", "funds", "rpc"]


class Simulated(msgspec.Struct, frozen=True):
    """The outcome of signing the order now. `needed`: requirements still missing, if no rule refuses it."""

    decision: Annotated[Decision, described("Decision on the order.")]
    results: Annotated[list[Result], described("Result of each rule for the order.")]
    effects: Annotated[list[dict[str, Any]], described("Effects of the order, decoded from the bytes to be signed.")]
    fee: Annotated[Fee | None, described("The highest possible network fee; null if there is none.")]
    budgets: Annotated[list[Remaining], described("The rolling limits that the order counts against.")]
    needed: Annotated[list[Need], described("Missing requirements for the order to go on chain.")]


class Backtest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule set, and how far back it is tested."""

    policies: Annotated[list[PolicyRule], described("The rules to try.")]
    days: Annotated[int, Meta(ge=1, le=90), described("Number of days to look back.")]


class Changed(msgspec.Struct, frozen=True, rename="camel"):
    """One past request that these rules would have decided differently."""

    tx_id: Annotated[Id, described("The transaction.")]
    was: Annotated[Decision, described("The decision at the time.")]
    now: Annotated[Decision, described("The decision by these rules.")]
    results: Annotated[list[Result], described("Result of each of these rules.")]


class Backtested(msgspec.Struct, frozen=True):
    """The number of replayed requests, and those decided differently, newest first; `truncated`: older ones omitted."""

    examined: Annotated[int, described("Number of requests replayed.")]
    changed: Annotated[list[Changed], described("Those decided differently, newest first.")]
    truncated: Annotated[bool, described("True if older requests were left out.")]
