"""A rule as it is sent, the facts an order is judged on, and the verdict. Spec 1/2.4, decisions 3."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from custody.kit.errors import Invalid
from custody.kit.shapes import AgentId

PolicyId = AgentId
EmptyPolicy = Literal["allow", "deny"]
Uncovered = Literal["queue", "allow", "refuse"]
Decision = Literal["sign", "queue", "refuse"]
Window = Literal["day", "week"]


class InvalidPolicy(Invalid):
    """The policy set is not valid."""


class PolicyRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One rule as callers send and receive it; `config` depends on `type`."""

    id: PolicyId | None = None
    type: Annotated[str, Meta(max_length=64)]
    enabled: bool
    config: dict[str, Any]


class Result(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What one rule said; `policy_id` is None for what the judge itself says."""

    type: str
    passed: bool
    reason: str
    policy_id: str | None = None


class Spend(msgspec.Struct, frozen=True):
    """What was signed of one asset in the rolling 24 hours and 7 days; the hour at the edge counts in full."""

    day: int
    week: int


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a rule may know beside the order itself; read by the signer, never sent by a caller.

    `spend` leaves out the nonce slot that the order takes over, and an asset without spend may be absent. `floor`
    is what that slot already counted, so an asset counts the larger of floor and order. `approving` says a person
    has approved this order: soft rules no longer queue it, hard rules judge it as ever.
    """

    now: datetime
    spend: Mapping[str, Spend] = {}
    floor: Mapping[str, int] = {}
    orders_last_hour: int = 0
    orders_last_day: int = 0
    empty_policy: EmptyPolicy = "allow"
    uncovered: Uncovered = "queue"
    approving: bool = False


class Alert(msgspec.Struct, frozen=True):
    """A `spend.threshold` that signing this order crosses; `spent` includes the order."""

    window: Window
    asset: str
    spent: int
    limit: int
    percent: int


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The decision over one order, and why.

    `charges` is what the order counts as spend once it is signed; a queued order holds no budget.
    """

    decision: Decision
    results: tuple[Result, ...]
    charges: dict[str, int]
    rate_limited: bool = False
    retry_after: int | None = None
    alerts: tuple[Alert, ...] = ()
