"""`delay`: an order waits for a time in which a person may stop it, and is signed by itself then. Soft.

Time stands in for no person: what has no bound waits for one, and so does whatever another rule asks a person about.
"""

from functools import partial
from typing import Annotated, ClassVar, Final, Self

from msgspec import UNSET, Meta, UnsetType

from custody.chains.types import Subject
from custody.kit.described import described
from custody.kit.shapes import DecimalAmount
from custody.policies.assets import (
    ASSET_MEANS,
    ASSET_UNIT,
    AssetName,
    native_of,
    parse_amount,
    parse_optional_asset,
    say_amount,
)
from custody.policies.kind import Config, Rule, Terms
from custody.policies.moved import limitless, moves
from custody.policies.types import Facts, InvalidPolicy

TYPE: Final = "delay"
MOST_MINUTES: Final = 10_080


class Delay(Terms, frozen=True):
    """The minutes, and up to which amount an order need not wait; `above` None: every order waits."""

    minutes: int
    above: int | None
    asset: str | None

    def check(self, subject: Subject, facts: Facts) -> tuple[bool, str]:
        """Say whether the order waited long enough, or need not wait, and why."""
        above = ""
        if any(effect.kind == "unread" or (limitless(effect) and not effect.revokes) for effect in subject.effects):
            # No amount says that it need not wait, and no time that nobody minds it.
            why = "it does what has no bound"
            return (
                facts.approving,
                f"{why}; a person approved it" if facts.approving else f"{why}: a person must decide",
            )
        if self.above is not None:
            asset = self.asset or native_of(subject.family)
            say = partial(say_amount, units=facts.units, chain_id=subject.chain_id)
            amount = moves(subject, facts.worth).get(asset, 0)
            most = say(self.above, asset, brief=True)
            if amount <= self.above:
                return True, f"{say(amount, asset)} is at or below {most}: it need not wait"
            above = f"{say(amount, asset)} is above {most}: "
        if facts.approving:
            return True, f"{above}a person approved it before the delay was over"
        span = f"{self.minutes:,} minute{'s' if self.minutes > 1 else ''}"
        if facts.waited >= self.minutes * 60:
            return True, f"{above}it waited {span}, and nobody stopped it"
        return False, f"{above}it is signed after {span} unless somebody denies it"

    def tightens(self, old: Self) -> bool:
        """Say whether it waits as long or longer, and no amount need not wait that had to."""
        if self.minutes < old.minutes:
            return False
        return self.above is None or (old.above is not None and self.asset == old.asset and self.above <= old.above)


class DelayConfig(Config, frozen=True):
    """The amount is in the smallest unit of the asset."""

    minutes: Annotated[
        Annotated[int, Meta(ge=1, le=MOST_MINUTES)],
        described("The time that an order waits before it is signed by itself.", unit="minutes"),
    ]
    above: Annotated[
        DecimalAmount | UnsetType | None,
        described("Up to this amount an order need not wait. Without it: every order waits.", unit=ASSET_UNIT),
    ] = UNSET
    asset: Annotated[AssetName | UnsetType | None, described(ASSET_MEANS)] = UNSET

    def terms(self) -> Delay:
        """The minutes, and the amount as an integer."""
        if not self.above:
            if self.asset:
                raise InvalidPolicy("`asset` says what `above` counts: give `above`, or leave it out")
            return Delay(self.minutes, None, None)
        return Delay(self.minutes, parse_amount(self.above, "above"), parse_optional_asset(self.asset))


class DelayRule(Rule, frozen=True, kw_only=True, tag="delay"):
    """An order waits for some minutes, in which a person may deny it; then it is signed by itself. It never refuses."""

    hard: ClassVar[bool] = False

    config: Annotated[DelayConfig, described("Settings of the rule.")]
