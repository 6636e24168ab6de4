"""`spending-limit`: how much of one asset may move per transaction, day and week, and in all."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, ClassVar, Literal, Self

from msgspec import UNSET, Meta, UnsetType

from custody.chains.evm.family import EVM_NATIVE
from custody.chains.types import Subject
from custody.chains.units import SOLANA_RENT
from custody.kit.described import described
from custody.kit.shapes import DecimalAmount
from custody.policies.assets import (
    ASSET_MEANS,
    ASSET_UNIT,
    AssetName,
    native_of,
    natives,
    parse_optional_amount,
    parse_optional_asset,
    say_amount,
)
from custody.policies.kind import Config, Covers, Family, Limit, Rule, Terms, Wants, at_most, sent_or
from custody.policies.moved import moves
from custody.policies.types import Facts, InvalidPolicy, Spend, Window

Percent = Annotated[int, Meta(ge=1, le=100)]
ALERT_PERCENTS = (80, 100)
Scope = Literal["agent", "set"]
_NOTHING = Spend(day=0, week=0)


class SpendingLimit(Terms, frozen=True):
    """The limits in the smallest unit; `asset` None means the native asset of whatever chain family is asked.

    `rent_per_day` is in lamports, and covers rent whatever the asset: None leaves it to the other rules, or a person.
    """

    per_transaction: int | None
    per_day: int | None
    per_week: int | None
    asset: str | None
    alert_percents: tuple[int, ...]
    rent_per_day: int | None = None
    total: int | None = None
    scope: Scope = "agent"

    @property
    def is_shared(self) -> bool:
        """Say whether it is on what all agents of its policy set spend together."""
        return self.scope == "set"

    def check(self, subject: Subject, facts: Facts) -> tuple[bool, str]:
        """Say whether the order fits all limits of its asset, and the one on rent, and why."""
        amounts = moves(subject, facts.worth)
        say = partial(say_amount, units=facts.units, chain_id=subject.chain_id)
        passed, reason = self._check_asset(amounts, subject.family, facts, say)
        rent, most = amounts.get(SOLANA_RENT, 0), self.rent_per_day
        if not passed or not rent or most is None:
            return passed, reason
        spent = facts.spend.get(SOLANA_RENT, _NOTHING).day
        if spent + rent > most:
            return False, f"rent of {_excess(say, SOLANA_RENT, (rent, spent, most), '24 hours', 'day')}"
        return True, f"{reason}, and {say(rent, SOLANA_RENT)} of rent is within its limit"

    def _check_asset(
        self, amounts: dict[str, int], family: Family, facts: Facts, say: Callable[..., str]
    ) -> tuple[bool, str]:
        asset = self.asset or native_of(family)
        amount = amounts.get(asset, 0)
        if not amount:
            return True, f"the order moves no {asset}"
        most = self.per_transaction
        if most is not None and amount > most:
            return False, f"{say(amount, asset)} exceeds the limit of {say(most, asset, brief=True)} per transaction"
        counted = max(amount, facts.floor.get(asset, 0))
        spend = facts.spend.get(asset, _NOTHING)
        if self.per_day is not None and spend.day + counted > self.per_day:
            return False, _excess(say, asset, (counted, spend.day, self.per_day), "24 hours", "day")
        if self.per_week is not None and spend.week + counted > self.per_week:
            return False, _excess(say, asset, (counted, spend.week, self.per_week), "7 days", "week")
        if self.total is not None and spend.total + counted > self.total:
            now, before, limit = (
                say(counted, asset),
                *(say(one, asset, brief=True) for one in (spend.total, self.total)),
            )
            return False, f"{now} now and {before} ever before would exceed the limit of {limit} in all"
        return True, f"{say(amount, asset)} is within the limits"

    def tightens(self, old: Self) -> bool:
        """Say whether each limit on the same asset is at most the old one, with no alert fewer."""
        return (
            self.asset == old.asset
            # A sum over many agents and a sum of one: neither is the other's bound.
            and self.scope == old.scope
            and at_most(self.per_transaction, old.per_transaction)
            and at_most(self.per_day, old.per_day)
            and at_most(self.per_week, old.per_week)
            and at_most(self.total, old.total)
            and at_most(self.rent_per_day, old.rent_per_day)
            and set(old.alert_percents) <= set(self.alert_percents)
        )

    def covers(self) -> Covers:
        """The asset, or every native one; and rent that is limited."""
        return Covers(assets=self._assets())

    def limits(self, family: Family) -> tuple[Limit, ...]:
        """The limits by day and week, and in all; one without an asset limits the native asset of the family."""
        asset = self.asset or native_of(family)
        windows: tuple[tuple[Window, int | None], ...]
        windows = (("day", self.per_day), ("week", self.per_week), ("total", self.total))
        found = tuple(Limit(window, asset, most, self.alert_percents) for window, most in windows if most is not None)
        # Without an asset the rule is about every family; its limit on rent is about one.
        if self.rent_per_day is None or (self.asset is None and family != "solana"):
            return found
        return (*found, Limit("day", SOLANA_RENT, self.rent_per_day, self.alert_percents))

    def wants(self) -> Wants:
        """Ask for what was spent of the asset."""
        return Wants(self._assets(), self._assets() if self.total is not None else frozenset())

    def _assets(self) -> frozenset[str]:
        assets = natives() if self.asset is None else frozenset((self.asset,))
        return assets if self.rent_per_day is None else assets | {SOLANA_RENT}


class SpendingLimitConfig(Config, frozen=True):
    """Amounts are in the smallest unit of the asset. At least one of the four limits is needed."""

    max_per_transaction: Annotated[
        DecimalAmount | UnsetType | None, described("The most in one order.", unit=ASSET_UNIT)
    ] = UNSET
    max_per_tx: Annotated[
        DecimalAmount | UnsetType | None,
        described("Another name for `maxPerTransaction`; given both, they must be equal.", unit=ASSET_UNIT),
    ] = UNSET
    max_per_day: Annotated[
        DecimalAmount | UnsetType | None, described("The most in any 24 hours, this order included.", unit=ASSET_UNIT)
    ] = UNSET
    max_per_week: Annotated[
        DecimalAmount | UnsetType | None, described("The most in any 7 days, this order included.", unit=ASSET_UNIT)
    ] = UNSET
    max_total: Annotated[
        DecimalAmount | UnsetType | None,
        described("The most in the agent's whole life, this order included.", unit=ASSET_UNIT),
    ] = UNSET
    asset: Annotated[AssetName | UnsetType | None, described(ASSET_MEANS)] = UNSET
    max_rent_per_day: Annotated[
        DecimalAmount | UnsetType | None,
        described(
            "Solana: the most rent in any 24 hours for token accounts that orders create, this order included. "
            "Up to it no person is asked because of the rent.",
            unit="lamports",
        ),
    ] = UNSET
    alert_percents: Annotated[
        Annotated[tuple[Percent, ...], Meta(max_length=20)] | UnsetType,
        described(
            "Shares of the limits by day and week and in all that raise `spend.threshold` when an order crosses them.",
            unit="percent",
            default=list(ALERT_PERCENTS),
        ),
    ] = UNSET

    scope: Annotated[
        Scope | UnsetType,
        described(
            "`agent`: each agent by itself. `set`, in the rules of a policy set alone: all agents of the set together.",
            default="agent",
        ),
    ] = UNSET

    def terms(self) -> SpendingLimit:
        """The limits as integers."""
        per_transaction, alias = sent_or(self.max_per_transaction, None), sent_or(self.max_per_tx, None)
        if per_transaction is not None and alias not in (None, per_transaction):
            raise InvalidPolicy("`maxPerTransaction` and its alias `maxPerTx` differ; give one of them")
        single = per_transaction if alias is None else alias
        per_day, per_week = sent_or(self.max_per_day, None), sent_or(self.max_per_week, None)
        total = sent_or(self.max_total, None)
        if single is None and per_day is None and per_week is None and total is None:
            raise InvalidPolicy("give at least one of `maxPerTransaction`, `maxPerDay`, `maxPerWeek`, `maxTotal`")
        asset, rent = parse_optional_asset(self.asset), sent_or(self.max_rent_per_day, None)
        if rent is not None and asset is not None and not asset.startswith("solana:"):
            raise InvalidPolicy("`maxRentPerDay` is for rules on Solana; leave it out, or give an `asset` of Solana")
        return SpendingLimit(
            parse_optional_amount(single, "maxPerTransaction"),
            parse_optional_amount(per_day, "maxPerDay"),
            parse_optional_amount(per_week, "maxPerWeek"),
            asset,
            tuple(sorted(set(sent_or(self.alert_percents, ALERT_PERCENTS)))),
            parse_optional_amount(rent, "maxRentPerDay"),
            parse_optional_amount(total, "maxTotal"),
            sent_or(self.scope, "agent"),
        )


class SpendingLimitRule(Rule, frozen=True, kw_only=True, tag="spending-limit"):
    """Limits on one asset per transaction, day and week, and in all. An order above a limit is refused."""

    keeps_limits: ClassVar[bool] = True

    config: Annotated[SpendingLimitConfig, described("Settings of the rule.")]


def _excess(say: Callable[..., str], asset: str, amounts: tuple[int, int, int], window: str, per: str) -> str:
    now, before, most = say(amounts[0], asset), *(say(amount, asset, brief=True) for amount in amounts[1:])
    # One coin's symbol stands for all of them.
    mixed = "; the coins of all EVM chains count together" if asset == EVM_NATIVE and not now.endswith(" wei") else ""
    return (
        f"{now} now and {before} in the last {window} would exceed the limit of {most} per {per} "
        f"(the hour at the edge of the window counts in full{mixed})"
    )
