"""Sealed policy sets of many agents: each is under a MAC with its version, and the agents' own sealed rules name it.

Promise P7: a set that was changed, exchanged, deleted or put back behind the signer's back is refused, and so is every
order of its agents. The set of every agent is named by no rule; that it is gone is known from the journal of versions.
"""

from typing import Final

import msgspec

from custody.kit.cache import Cache
from custody.policies.fleet import EVERY_AGENT
from custody.policies.rules import ParsedRule
from custody.policies.types import Spend
from custody.worker.sealing import Sealer, Tampered, fields, sha256
from signer.policies import RuleSet, read_rows
from signer.rollback_journal import Heads

SET_MAC: Final = "policy-set-mac"
# A set's id is never used again but that of the set of every agent, which a tenant has as long as it lives.
NO_INCARNATION: Final = "-"
# Sets that were checked and parsed: by tenant, id and all that the MAC is made over. The text of one is at most 64 KiB.
_KEPT: Final = 256
_KEPT_SECONDS: Final = 600.0
_read_stored = msgspec.json.Decoder(list[tuple[str, int, str, str, dict[str, tuple[str, str, str]]]]).decode


class StoredSet(msgspec.Struct, frozen=True):
    """A set as it was read, and what its agents spent together of the assets that it limits for all of them."""

    id: str
    version: int
    mac: bytes
    rules: str
    spend: dict[str, tuple[int, int, int]]

    def after(self, charged: dict[str, int]) -> "StoredSet":
        """The same once this was charged."""
        spend = dict(self.spend)
        for asset, amount in charged.items():
            day, week, total = spend.get(asset, (0, 0, 0))
            spend[asset] = day + amount, week + amount, total + amount
        return msgspec.structs.replace(self, spend=spend)


def stored_sets(text: str | None) -> tuple[StoredSet, ...]:
    """The sets that `sets_read` told."""
    return tuple(
        StoredSet(
            set_id,
            version,
            bytes.fromhex(mac),
            rules,
            {asset: (int(day), int(week), int(total)) for asset, (day, week, total) in spend.items()},
        )
        for set_id, version, mac, rules, spend in (_read_stored(text) if text else ())
    )


def content(tenant: str, set_id: str, version: int, rules: str) -> bytes:
    """Encode what a set's MAC is made over."""
    return fields("policy-set", tenant, set_id, version, rules)


class SetSeals:
    """Seals policy sets, and refuses those that are not whole, ours and current."""

    def __init__(self, sealer: Sealer, heads: Heads) -> None:
        self._sealer = sealer
        self.heads = heads
        self._kept: Cache[tuple[str, str, int, bytes, bytes], tuple[ParsedRule, ...]] = Cache(_KEPT, _KEPT_SECONDS)

    def seal(self, tenant: str, set_id: str, version: int, rules: str) -> bytes:
        """The MAC of a set."""
        return self._sealer.mac(SET_MAC, tenant, content(tenant, set_id, version, rules))

    def open(self, tenant: str, set_id: str, version: int, mac: bytes, rules: str) -> tuple[ParsedRule, ...]:
        """The rules of a set, each under the name of the set; Tampered or RolledBack."""
        key = tenant, set_id, version, mac, sha256(rules.encode())
        if (found := self._kept.get(key)) is None:
            self._sealer.check_mac(mac, SET_MAC, tenant, content(tenant, set_id, version, rules))
            found = tuple(
                msgspec.structs.replace(rule, id=f"{set_id}/{rule.id}", policy_set=set_id) for rule in read_rows(rules)
            )
            self._kept.put(key, found)
        # Each time, and only now: a version that nobody sealed must not be remembered.
        self.heads.check(tenant, set_id, NO_INCARNATION, version, of="sets")
        return found

    def of_agent(self, tenant: str, own: RuleSet, stored: tuple[StoredSet, ...]) -> RuleSet:
        """An agent's own rules, those of the set that they name, and those for every agent of the tenant."""
        ids = {one.id for one in stored}
        if EVERY_AGENT not in ids:
            # Where this signer knows of such a set, somebody took it away.
            self.heads.check(tenant, EVERY_AGENT, NO_INCARNATION, 0, of="sets")
        if ids - {EVERY_AGENT} != {rule.covers.policy_set for rule in own.rules} - {None}:
            raise Tampered
        if not stored:
            return own
        sets = [self.open(tenant, one.id, one.version, one.mac, one.rules) for one in stored]
        return msgspec.structs.replace(own, rules=(*own.rules, *(rule for rules in sets for rule in rules)))


def spent_together(stored: tuple[StoredSet, ...]) -> dict[str, dict[str, Spend]]:
    """The spend of all agents of each set together, as the judge sees it."""
    return {one.id: {asset: Spend(*sums) for asset, sums in one.spend.items()} for one in stored}
