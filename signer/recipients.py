"""The recipients that a person let an agent's orders reach, for rules of the type `new-recipient`.

Each row is under a MAC and is written in the transaction of the signature that the person approved: what somebody
planted is as new. Nothing is read or written of an agent without such a rule.
"""

from typing import Any, Final

import msgspec

from custody.kit.errors import CustodyError
from custody.kit.refs import AgentRef
from custody.policies.kinds.new_recipient import TYPE, recipients_of
from custody.policies.types import MOST_OWNERS_TRIED, Recipient
from custody.worker.sealing import Sealer, Tampered, fields
from signer.ledger import Facts, Reached, Record
from signer.signing_attempt import Judged, SigningAttempt

RECIPIENT_MAC: Final = "recipient-mac"
# Of those who were paid last, whose may be an account that an order pays into; beside them a rule has some of its own.
_OWNERS: Final = 64
_READ = "SELECT * FROM recipients_read($1, $2, $3, $4, $5, $6, $7)"


def content(tenant: str, agent: str, incarnation: str, kind: str, name: str) -> bytes:
    """Encode what the MAC of a recipient is made over."""
    return fields("recipient", tenant, agent, incarnation, kind, name)


class Recipients:
    """The rows of one database, vouched for by the master key."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer

    async def read(self, connection: Any, attempt: SigningAttempt, facts: Facts) -> Facts:
        """Add those of the order's recipients that are known."""
        if not any(f'"{TYPE}"' in text for text in (facts.rules, *(one.rules for one in facts.sets))):
            return facts
        try:
            subject = attempt.kind.effects(attempt.draft, facts).subject
        except (CustodyError, Tampered):
            # It is refused where it is judged, which says why.
            return facts
        found, _ = recipients_of(subject, frozenset(), 0)
        ref, kinds, names = attempt.ref, [kind for kind, _ in found], [name for _, name in found]
        newest = _OWNERS if any(effect.unowned for effect in subject.effects) else 0
        place = f"{subject.caip2}:"
        rows = await connection.fetch(_READ, ref.tenant, ref.agent, facts.incarnation, kinds, names, place, newest)
        known = frozenset((row["kind"], row["name"]) for row in rows if self._is_whole(ref, facts.incarnation, row))
        return msgspec.structs.replace(facts, recipients=known)

    def note(self, judged: Judged, made: Record) -> Record:
        """Add whom a person lets the order reach."""
        attempt, facts = judged.attempt, judged.facts
        if (
            made.told.status != "signed"
            or not attempt.way.is_approved
            or not any(rule.type == TYPE for rule in judged.rules.rules)
        ):
            return made
        found, _ = recipients_of(judged.decoded.subject, facts.recipients, MOST_OWNERS_TRIED)
        fresh = [one for one in found if one not in facts.recipients]
        macs = [self._seal(attempt.ref, facts.incarnation, one) for one in fresh]
        reached = Reached([kind for kind, _ in fresh], [name for _, name in fresh], macs)
        return msgspec.structs.replace(made, reached=reached) if fresh else made

    def _seal(self, ref: AgentRef, incarnation: str, one: Recipient) -> bytes:
        return self._sealer.mac(RECIPIENT_MAC, ref.tenant, content(ref.tenant, ref.agent, incarnation, *one))

    def _is_whole(self, ref: AgentRef, incarnation: str, row: Any) -> bool:
        said = content(ref.tenant, ref.agent, incarnation, row["kind"], row["name"])
        try:
            self._sealer.check_mac(row["mac"], RECIPIENT_MAC, ref.tenant, said)
        except Tampered:
            return False
        return True
