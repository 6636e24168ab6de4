"""Sealed policy sets: one head per agent commits to every rule (promise P7)."""

from collections import OrderedDict
from typing import NamedTuple

import msgspec

from custody.kit import ids
from custody.kit.cache import Cache
from custody.policies.fingerprint import policy_hash
from custody.policies.rules import ParsedRule, load_rule, read
from custody.policies.sources import split_type, stored_type
from custody.worker.sealing import Sealer, Tampered, fields, sha256
from signer.rollback_journal import Heads

POLICY_MAC = "policy-mac"

# Of the sets that were read last, so much text is kept beside what it was parsed into.
MAX_KEPT_CHARACTERS = 8 * 1024 * 1024
# Of so many sets it is remembered that their heads are ours, each for a few hundred bytes.
_CHECKED = 8_192
_CHECKED_SECONDS = 600.0


class RuleRow(NamedTuple):
    """A rule as it is stored: the SQL type `rule`."""

    id: str
    type: str
    enabled: bool
    config: str


_rows_decoder = msgspec.json.Decoder(list[RuleRow])


class RuleSet(msgspec.Struct, frozen=True):
    """A whole set as the judge takes it, and the hash by which receipts know it."""

    rules: tuple[ParsedRule, ...]
    hash: bytes


class PolicySeals:
    """Seals rule sets, and refuses a set whose head is not ours or older than one already seen."""

    def __init__(self, sealer: Sealer, heads: Heads) -> None:
        self._sealer = sealer
        self.heads = heads
        # By everything that the head's MAC is made over, and the MAC.
        self._checked: Cache[tuple[object, ...], bool] = Cache(_CHECKED, _CHECKED_SECONDS)
        self._kept: OrderedDict[str, RuleSet] = OrderedDict()
        self._kept_characters = 0

    def seal(self, tenant: str, agent: str, incarnation: str, version: int, rows: list[RuleRow]) -> bytes:
        """The head's MAC."""
        return self._sealer.mac(POLICY_MAC, tenant, _content(tenant, agent, incarnation, version, rows))

    def open(
        self,
        tenant: str,
        agent: str,
        incarnation: str,
        head: tuple[int | None, int | None, bytes | None],
        version: int,
        rules: str,
    ) -> RuleSet:
        """The rules of a set that is whole, ours and current; Tampered or RolledBack otherwise.

        A missing head is a refusal: deleting rules is loosening too.
        """
        key = (tenant, agent, incarnation, head, version, sha256(rules.encode()))
        if key not in self._checked:
            head_version, count, mac = head
            content = content_of_stored(tenant, agent, incarnation, (head_version, count), version, rules)
            self._sealer.check_mac(mac, POLICY_MAC, tenant, content)
            self._checked.put(key, True)
        # Each time, and only now: what is newer is remembered, and a version that nobody sealed must not be.
        self.heads.check(tenant, agent, incarnation, version)
        return self._parse(rules)

    def _parse(self, rules: str) -> RuleSet:
        # Keyed by the exact text that was just authenticated, so a kept set is always the stored one.
        if (kept := self._kept.get(rules)) is not None:
            self._kept.move_to_end(rules)
            return kept
        parsed = self._kept[rules] = _parse(rules)
        self._kept_characters += len(rules)
        while self._kept_characters > MAX_KEPT_CHARACTERS:
            self._kept_characters -= len(self._kept.popitem(last=False)[0])
        return parsed


def row_of(rule: ParsedRule) -> RuleRow:
    """A rule as it is stored."""
    return RuleRow(rule.id, stored_type(rule), rule.enabled, rule.config)


def content_of_stored(
    tenant: str, agent: str, incarnation: str, head: tuple[int | None, int | None], version: int, rules: str
) -> bytes:
    """Encode what the MAC of a stored set is made over; Tampered where head, agent and rules do not hang together."""
    rows = _rows_decoder.decode(rules)
    if head != (version, len(rows)):
        raise Tampered
    return _content(tenant, agent, incarnation, version, rows)


def _content(tenant: str, agent: str, incarnation: str, version: int, rows: list[RuleRow]) -> bytes:
    # Each rule is hashed with its place, so that their order cannot be changed either.
    hashes = sorted(
        sha256(fields(place, rule_id, kind, int(enabled), config))
        for place, (rule_id, kind, enabled, config) in enumerate(rows)
    )
    return fields("policy-head", tenant, agent, incarnation, version, len(rows), *hashes)


def _parse(rules: str) -> RuleSet:
    # Keyed by the exact text that was just authenticated, so a cached set is always the stored one.
    parsed = read_rows(rules)
    return RuleSet(parsed, policy_hash(parsed))


def read_rows(rules: str) -> tuple[ParsedRule, ...]:
    """Read rules from their stored rows."""
    rows = [(i, *split_type(t), e, c) for i, t, e, c in _rows_decoder.decode(rules)]
    known = read([load_rule(i, t, e, c) for i, t, _, e, c in rows], ids.new_uuid)
    return tuple(msgspec.structs.replace(rule, by_agent=row[2]) for rule, row in zip(known, rows, strict=True))
