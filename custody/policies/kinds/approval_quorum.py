"""`approval-quorum`: how many of which people must vote before an order is signed. Soft: it never refuses."""

from collections.abc import Mapping, Set
from functools import partial
from typing import Annotated, ClassVar, Final, Self

import msgspec
from msgspec import UNSET, Meta, UnsetType

from custody.chains.types import Subject
from custody.chains.units import USD
from custody.kit.described import described
from custody.kit.shapes import DecimalAmount, Digest, Uuid
from custody.policies.assets import (
    ASSET_MEANS,
    ASSET_UNIT,
    AssetName,
    native_of,
    parse_amount,
    parse_optional_asset,
    say_amount,
)
from custody.policies.kind import Config, Rule, Terms, at_most
from custody.policies.moved import lacks_price, limitless, moves
from custody.policies.types import Facts, InvalidPolicy

MAX_APPROVERS: Final = 16
MAX_KEYS: Final = 8


class ApprovalQuorum(Terms, frozen=True):
    """The threshold, and by which keys each named person may vote; `above` None means every order."""

    threshold: int
    approvers: Mapping[str, frozenset[str]]
    above: int | None
    asset: str | None

    def check(self, subject: Subject, facts: Facts) -> tuple[bool, str]:
        """Say whether enough named people voted for the order, or none need to, and why."""
        below = self._below(subject, facts)
        if below is not None:
            return True, below
        have = len(self.voters(facts.votes))
        said = f"{have} of {self.threshold} votes needed, from {len(self.approvers)} named approvers"
        return have >= self.threshold, said

    def voters(self, votes: Set[tuple[str, str]]) -> frozenset[str]:
        """The named people with a vote by one of their keys, out of votes by person and fingerprint."""
        return frozenset(user for user, key in votes if key in self.approvers.get(user, frozenset()))

    def tightens(self, old: Self) -> bool:
        """Say whether every order needs at least as many votes, out of no more people and keys."""
        same = self.above is None or self.asset == old.asset
        named = all(keys <= old.approvers.get(user, frozenset()) for user, keys in self.approvers.items())
        return self.threshold >= old.threshold and named and same and self._reaches(old)

    def at_end(self) -> Self:
        """Give the same for every order: votes are still what lets one pass."""
        return msgspec.structs.replace(self, above=None)

    def _reaches(self, old: Self) -> bool:
        """Say whether no order needed votes before and needs none now."""
        return self.above is None if old.above is None else self.above is None or at_most(self.above, old.above)

    def _below(self, subject: Subject, facts: Facts) -> str | None:
        """Why the order needs no votes, or None. What no amount can judge needs them, whatever the asset."""
        if self.above is None:
            return None
        if any(effect.kind == "unread" or limitless(effect) for effect in subject.effects):
            return None
        asset = self.asset or native_of(subject.family)
        if asset == USD and any(lacks_price(effect, subject, facts.worth) for effect in subject.effects):
            return None
        amount = moves(subject, facts.worth).get(asset, 0)
        if amount > self.above:
            return None
        say = partial(say_amount, units=facts.units, chain_id=subject.chain_id)
        return f"{say(amount, asset)} is at or below {say(self.above, asset, brief=True)}, so no vote is needed"


class ApproverConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """One named person, and the keys by which their votes count."""

    user_id: Annotated[Uuid, described("The person, an owner or admin of the tenant.")]
    keys: Annotated[
        tuple[Digest, ...],
        Meta(min_length=1, max_length=MAX_KEYS),
        described("Fingerprints of their approver keys: SHA-256 of the public key's SPKI, in hex."),
    ]


class ApprovalQuorumConfig(Config, frozen=True):
    """The threshold, the approvers, and the orders that need them."""

    threshold: Annotated[
        int, Meta(ge=1, le=MAX_APPROVERS), described("Number of the named people who must vote for an order.")
    ]
    approvers: Annotated[
        tuple[ApproverConfig, ...], Meta(min_length=1, max_length=MAX_APPROVERS), described("People who may vote.")
    ]
    above: Annotated[
        DecimalAmount | UnsetType | None,
        described("Only orders that move more need votes. Without it: every order.", unit=ASSET_UNIT),
    ] = UNSET
    asset: Annotated[AssetName | UnsetType | None, described(f"The asset of `above`: {ASSET_MEANS}")] = UNSET

    def terms(self) -> ApprovalQuorum:
        """The approvers by person; InvalidPolicy where a person or a key is named twice, or too few are named."""
        approvers = {one.user_id: frozenset(one.keys) for one in self.approvers}
        keys = [key for one in self.approvers for key in one.keys]
        if len(approvers) < len(self.approvers):
            raise InvalidPolicy("`approvers` names one person twice; list all their keys in one entry")
        if len(set(keys)) < len(keys):
            raise InvalidPolicy("`approvers` names one key twice; each key belongs to one person")
        if self.threshold > len(approvers):
            raise InvalidPolicy(f"`threshold` is {self.threshold}, but only {len(approvers)} approvers are named")
        above = None if self.above is None or self.above is UNSET else parse_amount(self.above, "above")
        if above is None and self.asset not in (None, UNSET):
            raise InvalidPolicy("`asset` is the asset of `above`: send `above` too")
        return ApprovalQuorum(self.threshold, approvers, above, parse_optional_asset(self.asset))


class ApprovalQuorumRule(Rule, frozen=True, kw_only=True, tag="approval-quorum"):
    """A quorum of named people who must vote, each with their own key. Set by a person alone; only votes loosen it."""

    hard: ClassVar[bool] = False

    config: Annotated[ApprovalQuorumConfig, described("Settings of the rule.")]
