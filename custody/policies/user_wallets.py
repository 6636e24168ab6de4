"""The rules that a person's wallet begins with, and gets back when a key is imported into it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from custody.kit import ids
from custody.policies.kinds import PolicyRule
from custody.policies.rules import parse
from custody.policies.types import InvalidPolicy

VARIABLE: Final = "SERVICE_USER_WALLET_POLICIES_FILE"
_BUILT_IN: Final = b'[{"type": "rate-limit", "enabled": true, "config": {"maxTxPerHour": 60, "maxTxPerDay": 500}}]'


def default_policies(environment: Mapping[str, str]) -> tuple[PolicyRule, ...]:
    """The rules of the operator's file, or the built-in ones; ValueError with the variable's name for a bad file."""
    path = environment.get(VARIABLE, "").strip()
    try:
        content = Path(path).read_bytes() if path else _BUILT_IN
        rules = msgspec.json.decode(content, type=list[PolicyRule])
        parse(rules, ids.new_uuid)
    except (OSError, msgspec.MsgspecError, InvalidPolicy) as problem:
        raise ValueError(f"{VARIABLE}: {problem}") from problem
    return tuple(rules)
