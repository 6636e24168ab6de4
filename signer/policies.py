"""Sealed policy sets: one head per agent commits to every rule (promise P7)."""

import functools

import msgspec

from custody.kit import ids
from custody.policies.fingerprint import policy_hash
from custody.policies.rules import ParsedRule, parse
from custody.policies.types import PolicyRule
from signer.heads import Heads
from signer.sealing import Sealer, Tampered, fields, sha256

POLICY_MAC = "policy-mac"
Row = tuple[str, str, bool, str]  # id, type, enabled, config as stored

_rows_decoder = msgspec.json.Decoder(list[Row])


class RuleSet(msgspec.Struct, frozen=True):
    """A whole set as the judge takes it, and the hash by which receipts know it."""

    rules: tuple[ParsedRule, ...]
    hash: bytes


class PolicySeals:
    """Seals rule sets, and refuses a set whose head is not ours or older than one already seen."""

    def __init__(self, sealer: Sealer, heads: Heads) -> None:
        self._sealer = sealer
        self.heads = heads

    def seal(self, tenant: str, agent: str, incarnation: str, version: int, rows: list[Row]) -> bytes:
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
        head_version, count, mac = head
        content = content_of_stored(tenant, agent, incarnation, (head_version, count), version, rules)
        self._sealer.check_mac(mac, POLICY_MAC, tenant, content)
        self.heads.check(tenant, agent, incarnation, version)
        return _parsed(rules)


def row_of(rule: ParsedRule) -> Row:
    """A rule as it is stored."""
    return rule.id, rule.type, rule.enabled, rule.config


def content_of_stored(
    tenant: str, agent: str, incarnation: str, head: tuple[int | None, int | None], version: int, rules: str
) -> bytes:
    """What the MAC of a stored set is made over; Tampered where head, agent and rules do not hang together."""
    rows = _rows_decoder.decode(rules)
    if head != (version, len(rows)):
        raise Tampered
    return _content(tenant, agent, incarnation, version, rows)


def _content(tenant: str, agent: str, incarnation: str, version: int, rows: list[Row]) -> bytes:
    # Each rule is hashed with its place, so that their order cannot be changed either.
    hashes = sorted(
        sha256(fields(place, rule_id, kind, int(enabled), config))
        for place, (rule_id, kind, enabled, config) in enumerate(rows)
    )
    return fields("policy-head", tenant, agent, incarnation, version, len(rows), *hashes)


@functools.lru_cache(maxsize=4096)
def _parsed(rules: str) -> RuleSet:
    # Keyed by the exact text that was just authenticated, so a cached set is always the stored one.
    stored = [
        PolicyRule(id=i, type=t, enabled=e, config=msgspec.json.decode(c)) for i, t, e, c in _rows_decoder.decode(rules)
    ]
    parsed = parse(stored, ids.new_uuid)
    return RuleSet(parsed, policy_hash(parsed))
