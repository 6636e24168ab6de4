"""What is asked and answered before anything is done. Decisions 10."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from custody.policies.types import Decision, PolicyRule, Result

Need = Literal["approval", "funds", "rpc"]


class Fee(msgspec.Struct, frozen=True):
    """The most that the network can take, in the smallest unit."""

    asset: str
    max: str


class Remaining(msgspec.Struct, frozen=True, rename="camel"):
    """A rolling limit and what is left of it right now, from the ledger that enforces it."""

    policy_id: str
    window: str
    asset: str
    limit: str
    spent: str
    remaining: str


class Simulated(msgspec.Struct, frozen=True):
    """What signing would do now. `needed`: what stands between the order and the chain, if no rule refuses it."""

    decision: Decision
    results: list[Result]
    effects: list[dict[str, Any]]
    fee: Fee | None
    budgets: list[Remaining]
    needed: list[Need]


class Backtest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule set, and how far back it is tried."""

    policies: list[PolicyRule]
    days: Annotated[int, Meta(ge=1, le=90)]


class Changed(msgspec.Struct, frozen=True, rename="camel"):
    """One past request that these rules would have decided otherwise."""

    tx_id: str
    was: Decision
    now: Decision
    results: list[Result]


class Backtested(msgspec.Struct, frozen=True):
    """How many requests were tried, and the changed ones, newest first; `truncated`: older ones were left out."""

    examined: int
    changed: list[Changed]
    truncated: bool
