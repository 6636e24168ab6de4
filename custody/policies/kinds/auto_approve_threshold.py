"""`auto-approve-threshold`: up to this amount no person is asked. Soft: it never refuses. Spec 1/2.4, decisions 3."""

from typing import Any

import msgspec

from custody.chains.types import Subject
from custody.kit.shapes import DecimalAmount
from custody.policies.assets import NATIVE_OF, parse_amount, parse_asset, told
from custody.policies.moved import moved
from custody.policies.types import Facts


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The config as sent."""

    threshold: DecimalAmount
    asset: str | None = None


class AutoApproveThreshold(msgspec.Struct, frozen=True):
    """The threshold in the smallest unit; `asset` None means the native asset of whatever family is asked."""

    threshold: int
    asset: str | None


def parse(config: dict[str, Any]) -> AutoApproveThreshold:
    """Read the config strictly, or raise."""
    sent = msgspec.convert(config, Config)
    asset = None if sent.asset is None else parse_asset(sent.asset)
    return AutoApproveThreshold(parse_amount(sent.threshold, "threshold"), asset)


def check(rule: AutoApproveThreshold, subject: Subject, facts: Facts) -> tuple[bool, str]:
    """Say whether the order may go without a person, and why."""
    asset = rule.asset or NATIVE_OF[subject.family]
    amount = moved(subject).get(asset, 0)
    if amount <= rule.threshold:
        return True, f"{told(amount, asset)} is at or below the threshold of {told(rule.threshold, asset)}"
    above = f"{told(amount, asset)} is above the threshold of {told(rule.threshold, asset)}"
    if facts.approving:
        return True, f"{above}; a person approved it"
    return False, f"{above}: a person must approve it"


def tightens(old: AutoApproveThreshold, new: AutoApproveThreshold) -> bool:
    """Say whether whatever passes `new` also passes `old`."""
    return new.asset == old.asset and new.threshold <= old.threshold
