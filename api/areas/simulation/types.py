"""What is asked and answered before anything is done."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from custody.kit.described import Id, described
from custody.policies.kinds import PolicyRule
from custody.policies.types import Decision, Result
from custody.protocol.signer.orders import Fee, Remaining

Need = Literal["approval", "funds", "rpc"]


class Simulated(msgspec.Struct, frozen=True):
    """What signing would do now. `needed`: what the order still lacks to go on chain, if no rule refuses it."""

    decision: Annotated[Decision, described("What would be done with the order.")]
    results: Annotated[list[Result], described("What each rule says of the order.")]
    effects: Annotated[list[dict[str, Any]], described("What the order does, decoded from the bytes to be signed.")]
    fee: Annotated[Fee | None, described("The highest possible network fee; null if there is none.")]
    budgets: Annotated[list[Remaining], described("The rolling limits that the order counts against.")]
    needed: Annotated[list[Need], described("What the order still lacks to go on chain.")]


class Backtest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule set, and how far back it is tested."""

    policies: Annotated[list[PolicyRule], described("The rules to try.")]
    days: Annotated[int, Meta(ge=1, le=90), described("How many days back.")]


class Changed(msgspec.Struct, frozen=True, rename="camel"):
    """One past request that these rules would have decided differently."""

    tx_id: Annotated[Id, described("The transaction.")]
    was: Annotated[Decision, described("What was decided then.")]
    now: Annotated[Decision, described("What these rules would decide.")]
    results: Annotated[list[Result], described("What each of these rules says.")]


class Backtested(msgspec.Struct, frozen=True):
    """The number of replayed requests, and those decided differently, newest first; `truncated`: older ones omitted."""

    examined: Annotated[int, described("How many requests were replayed.")]
    changed: Annotated[list[Changed], described("Those decided differently, newest first.")]
    truncated: Annotated[bool, described("Whether older requests were left out.")]
