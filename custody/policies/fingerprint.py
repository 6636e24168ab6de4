"""The hash by which a rule set is known in receipts. Normative text: docs/receipts.md."""

import hashlib
from collections.abc import Sequence

import msgspec

from custody.policies.rules import ParsedRule


def policy_hash(rules: Sequence[ParsedRule]) -> bytes:
    """SHA-256 of the set's canonical JSON: what `GET .../policies` answers, in stored order."""
    return hashlib.sha256(canonical_set(rules)).digest()


def canonical_set(rules: Sequence[ParsedRule]) -> bytes:
    """The set as an array of {config, enabled, id, type}: keys sorted, no spaces, every value as it was given."""
    return msgspec.json.encode(
        [
            {"config": msgspec.Raw(rule.config.encode()), "enabled": rule.enabled, "id": rule.id, "type": rule.type}
            for rule in rules
        ]
    )
