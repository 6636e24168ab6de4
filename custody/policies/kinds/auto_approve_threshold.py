"""`auto-approve-threshold`: up to this amount no person is asked. Soft: it never refuses."""

from functools import partial
from typing import Annotated, ClassVar, Self

from msgspec import UNSET, UnsetType

from custody.chains.types import Subject
from custody.kit.described import described
from custody.kit.shapes import DecimalAmount
from custody.policies.assets import (
    ASSET_MEANS,
    ASSET_UNIT,
    AssetName,
    native_of,
    natives,
    parse_amount,
    parse_optional_asset,
    say_amount,
)
from custody.policies.kind import Config, Covers, Rule, Terms
from custody.policies.moved import moves
from custody.policies.types import Facts


class AutoApproveThreshold(Terms, frozen=True):
    """The threshold in the smallest unit; `asset` None means the native asset of whatever family is asked."""

    threshold: int
    asset: str | None

    def check(self, subject: Subject, facts: Facts) -> tuple[bool, str]:
        """Say whether the order may go without a person, and why."""
        asset = self.asset or native_of(subject.family)
        amount = moves(subject, facts.worth).get(asset, 0)
        say = partial(say_amount, units=facts.units, chain_id=subject.chain_id)
        amounts = say(amount, asset), say(self.threshold, asset, brief=True)
        if amount <= self.threshold:
            return True, f"{amounts[0]} is at or below the threshold of {amounts[1]}"
        above = f"{amounts[0]} is above the threshold of {amounts[1]}"
        if facts.approving:
            return True, f"{above}; a person approved it"
        return False, f"{above}: a person must approve it"

    def tightens(self, old: Self) -> bool:
        """Say whether the threshold of the same asset is at most the old one."""
        return self.asset == old.asset and self.threshold <= old.threshold

    def covers(self) -> Covers:
        """The asset, or every native one."""
        return Covers(assets=natives() if self.asset is None else frozenset((self.asset,)))


class AutoApproveThresholdConfig(Config, frozen=True):
    """The amount is in the smallest unit of the asset."""

    threshold: Annotated[DecimalAmount, described("An order that moves more waits for a person.", unit=ASSET_UNIT)]
    asset: Annotated[AssetName | UnsetType | None, described(ASSET_MEANS)] = UNSET

    def terms(self) -> AutoApproveThreshold:
        """The threshold as an integer."""
        return AutoApproveThreshold(parse_amount(self.threshold, "threshold"), parse_optional_asset(self.asset))


class AutoApproveThresholdRule(Rule, frozen=True, kw_only=True, tag="auto-approve-threshold"):
    """Up to this amount of one asset no person is asked. An order above it is queued, never refused."""

    hard: ClassVar[bool] = False

    config: Annotated[AutoApproveThresholdConfig, described("Settings of the rule.")]
